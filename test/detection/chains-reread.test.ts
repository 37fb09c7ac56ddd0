/** The repair of what a node that lied has left in the database: it left logs out, misstated amounts and invented payments. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encodeNativePayment } from '../../src/demo/network/demo-contracts.ts'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { encodeBatch } from '../support/chains/contract-calls.ts'
import {
  invents,
  misstates,
  omits,
  type Receipt,
  together,
  topicOf,
  withoutBlooms,
  withoutProof,
} from '../support/chains/lies.ts'
import { type Meddle, type RpcProxy, startRpcProxy } from '../support/chains/rpc-proxy.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import {
  addAccount,
  canonical,
  configOf,
  detect,
  makeRequest,
  paymentsOf,
  storeRequest,
  unmatchedOf,
} from '../support/detection.ts'
import { rowsOf, runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const COIN = 10n ** 18n

let database: TestDatabase
let knex: Knex
let chain: TestChain
let liar: RpcProxy
let honest: RpcProxy
let folder: string
let account: Account
let detection: Detection
let environment: Record<string, string>

beforeAll(async () => {
  ;[database, chain, folder] = await Promise.all([
    createTestDatabase(),
    startTestChain({ chainId: 31_562 }),
    makeTempFolder('reread'),
  ])
  knex = database.knex
  ;[liar, honest] = await Promise.all([startRpcProxy(chain.rpcUrl), startRpcProxy(chain.rpcUrl)])
  const file = join(folder, 'chains.json')
  const rpcUrls = [liar.url, honest.url]
  await writeFile(file, JSON.stringify({ chains: [{ ...chain.config({ name: 'BASE', finalityDepth: 3 }), rpcUrls }] }))
  environment = { DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: file }
  account = await addAccount(knex, 'shop')
  detection = detect(knex, [configOf(chain, 'BASE', { rpcUrls: [liar.url] })])
})
afterAll(async () => {
  await Promise.all([liar, honest].map((proxy) => proxy?.stop()))
  await Promise.all([chain?.stop(), database?.drop(), rm(folder, { recursive: true, force: true })])
})

let requests = 0
const payeeOf = (index: number) => canonical(`0x${keccak256(new TextEncoder().encode(`reread ${index}`)).slice(-40)}`)
async function request(): Promise<PaymentRequest> {
  const made = makeRequest({
    payee: payeeOf(requests++),
    network: 'BASE',
    paymentCurrency: 'ETH-BASE',
    amount: '1',
  })
  return storeRequest(knex, account, made)
}
async function pay({ payee, paymentReference }: PaymentRequest, from = chain.wallets[0]): Promise<Hex> {
  const payment = { kind: 'NATIVE', to: payee as Hex, amount: COIN, paymentReference } as const
  return (await chain.pay(from, payment)).transactionHash
}
const factsOf = async (wanted: PaymentRequest) =>
  (await paymentsOf(knex, account, wanted)).map(({ amount, status, txHash, final }) => [amount, status, txHash, final])
/** A node that fails at traces. */
const refusesTraces =
  (message: string): Meddle =>
  ({ method }) =>
    method.startsWith('debug_') ? Promise.resolve({ rpcError: { code: -32000, message } }) : undefined
const withoutTraces = refusesTraces('execution timeout')
const pruned = refusesTraces('required historical state unavailable')
const headNumber = async () => Number((await chain.client.head()).number)
const reread = (...words: string[]) => runCommand(environment, ['chains', 'reread', 'BASE', ...words])

it('adds what a node leaves out, corrects what it misstates, and removes what it invents, whoever is asked first', async () => {
  const before = await headNumber()
  const [paid, omitted, misstated, unpaid] = [await request(), await request(), await request(), await request()]
  const stranger = makeRequest({ payee: payeeOf(999), network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1' })
  const hashes = [await pay(paid), await pay(omitted), await pay(misstated), await pay(stranger)]
  const model = (await chain.client.rpc.call('eth_getTransactionReceipt', [hashes[0]])) as Receipt
  liar.meddle(
    together(omits(omitted), omits(stranger), misstates(misstated, COIN / 2n), invents(unpaid, model), withoutBlooms),
  )
  await chain.mine({ blocks: 4 })
  await detection.scanOnce()
  expect(await factsOf(omitted)).toEqual([])
  expect(await factsOf(misstated)).toEqual([['0.5', 'PARTIAL', hashes[2], true]])
  expect(await factsOf(unpaid)).toEqual([['1', 'CONFIRMED', keccak256(topicOf(unpaid)), true]])

  const to = (await headNumber()) - 3
  const range = ['--from', String(before), '--to', String(to)]
  const stored = async () => [
    await knex('payments').orderBy('id'),
    await knex('unmatched_events').orderBy('tx_hash'),
    await knex('audit_log').where({ action: 'REREAD_RANGE' }),
  ]
  const untouched = await stored()
  const trial = await reread(...range, '--dry-run')
  expect(trial).toMatchObject({ code: 0, stderr: expect.stringMatching(/5 changes\nnothing was changed\n$/) })
  expect(await stored()).toEqual(untouched)

  const done = await reread(...range)
  expect([done.code, done.stdout]).toEqual([0, trial.stdout])
  expect(done.stderr).toContain(`blocks proven by receipts ${hashes.length}, by two nodes 0, `)
  expect(done.stderr).toContain('not proven 0')
  const lines = rowsOf(done.stdout)
  const changesOf = ({ requestId }: PaymentRequest) =>
    lines.filter((line) => line[2] === requestId).map((line) => line[5])
  expect(changesOf(omitted)).toEqual(['found'])
  expect(changesOf(misstated)).toEqual(['amount 0.5 -> 1', 'PARTIAL -> CONFIRMED'])
  expect(changesOf(unpaid)).toEqual(['removed: not found'])
  expect(lines.filter(([, , , kind]) => kind === 'event')).toEqual([
    ['-', 'BASE', '-', 'event', `${hashes[3]}:0`, 'unmatched: UNKNOWN_TOPIC'],
  ])
  expect(await factsOf(paid)).toEqual([['1', 'CONFIRMED', hashes[0], true]])
  expect(await factsOf(omitted)).toEqual([['1', 'CONFIRMED', hashes[1], true]])
  expect(await factsOf(misstated)).toEqual([['1', 'CONFIRMED', hashes[2], true]])
  expect(await factsOf(unpaid)).toEqual([])
  const audited = await knex('audit_log').where({ action: 'REREAD_RANGE' })
  expect(audited).toMatchObject([{ actor: 'ann@host', account: 'shop', details: { chain: 'BASE', changes: 4 } }])

  // The liar cannot take anything back, even where it is named.
  const repaired = await stored()
  expect(await reread(...range, '--node', new URL(liar.url).host)).toMatchObject({ code: 0, stdout: '' })
  expect(await stored()).toEqual(repaired)
})

it('finds a payment whose transaction cannot be traced now, and its payer later', async () => {
  const omitted = await request()
  const terms = { to: omitted.payee as Hex, amount: COIN, paymentReference: omitted.paymentReference }
  const call = encodeNativePayment(chain.contracts.ethereumFeeProxy, terms, true)
  await chain.send(chain.wallets[0], encodeBatch(chain.contracts.paymentBatch, [call]), { gas: 5_000_000n })
  const block = String(await headNumber())
  liar.meddle(together(omits(omitted), withoutBlooms))
  await chain.mine({ blocks: 4 })
  await detection.scanOnce()
  expect(await factsOf(omitted)).toEqual([])

  for (const proxy of [liar, honest]) proxy.meddle(withoutTraces)
  expect(await reread('--from', block, '--to', block)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('found'),
  })
  expect(await paymentsOf(knex, account, omitted)).toMatchObject([{ amount: '1', payer: null }])
  expect(await knex('pending_enrichments')).toMatchObject([{ lacks: ['TRACE'] }])
  for (const proxy of [liar, honest]) proxy.meddle()
  await knex('pending_enrichments').update({ due_at: new Date() })
  await detection.enrichOnce()
  const whole = { amount: '1', payer: canonical(chain.contracts.paymentBatch) }
  expect(await paymentsOf(knex, account, omitted)).toMatchObject([whole])

  // A node that has pruned the block gives its trace to nobody, so the payer that was found stays.
  for (const proxy of [liar, honest]) proxy.meddle(pruned)
  await knex('payments')
    .where({ request_id: Buffer.from(omitted.requestId, 'hex') })
    .update({ amount: '2' })
  expect(await reread('--from', block, '--to', block)).toMatchObject({ code: 0 })
  expect(await paymentsOf(knex, account, omitted)).toMatchObject([whole])
})

it('counts a refund whose payment it found, and keeps imported payments', async () => {
  const [payer, , , payee] = chain.wallets
  const made = makeRequest({ payee: canonical(payee), network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1' })
  const returned = await storeRequest(knex, account, made)
  const imported = await request()
  liar.meddle(together(omits(returned), withoutBlooms))
  await pay(returned)
  await pay(imported)
  const paidAt = await headNumber()
  await chain.mine({ blocks: 4 })
  await detection.scanOnce()
  liar.meddle()
  await chain.pay(payee, {
    kind: 'NATIVE',
    to: payer,
    amount: COIN,
    paymentReference: returned.paymentReference,
  })
  await chain.mine({ blocks: 4 })
  await detection.scanOnce()
  expect(await unmatchedOf(knex, account.id)).toEqual(['WRONG_PAYEE'])
  // An imported row whose event the chain does not have.
  const importedRow = knex('payments').where({ request_id: Buffer.from(imported.requestId, 'hex') })
  await importedRow.clone().update({ imported: true, tx_hash: Buffer.alloc(32, 0xab) })

  const done = await reread('--from', String(paidAt - 1), '--to', String(paidAt))
  expect(done.code).toBe(0)
  expect((await factsOf(returned)).map(([, status]) => status)).toEqual(['REFUNDED'])
  expect(await unmatchedOf(knex, account.id)).toEqual([])
  expect(await importedRow.clone().where({ tx_hash: Buffer.alloc(32, 0xab) })).toHaveLength(1)
})

it('refuses a block that nothing proves, unless a node is named to be believed', async () => {
  const omitted = await request()
  liar.meddle(together(omits(omitted), withoutBlooms, withoutProof))
  honest.meddle(withoutProof)
  await pay(omitted)
  const paidAt = String(await headNumber())
  await chain.mine({ blocks: 4 })
  await detection.scanOnce()
  const range = ['--from', paidAt, '--to', paidAt]
  const refused = await reread(...range)
  expect([refused.code, refused.stdout]).toEqual([1, ''])
  expect(refused.stderr).toContain(`no node proves its logs of block ${paidAt}, and no two agree`)
  expect(refused.stderr).toContain('name a node to believe with --node')

  const host = new URL(honest.url).host
  const believed = await reread(...range, '--node', host)
  expect([believed.code, rowsOf(believed.stdout).map((row) => row[5])]).toEqual([0, ['found']])
  expect(believed.stderr).toContain(`block ${paidAt} not proven: ${host} was believed`)

  liar.meddle(together(withoutBlooms, withoutProof))
  const agreed = await reread(...range)
  expect([agreed.code, agreed.stdout]).toEqual([0, ''])
  expect(agreed.stderr).toContain('blocks proven by receipts 0, by two nodes 1, ')
  honest.meddle()
  liar.meddle()
})

describe('chains reread changes nothing', () => {
  it.each<[string, number, string[], string]>([
    ['without a first block', 2, ['BASE', '--to', '2'], '--from is missing'],
    ['without a last block', 2, ['BASE', '--from', '2'], '--to is missing'],
    ['from something that is no block', 2, ['BASE', '--from', '-1', '--to', '2'], '--from'],
    ['from a fraction', 2, ['BASE', '--from', '1.5', '--to', '2'], '--from is "1.5", which is not a block number'],
    ['up to something that is no block', 2, ['BASE', '--from', '1', '--to', '0x2'], '--to is "0x2", which is not'],
    ['with the blocks the wrong way round', 2, ['BASE', '--from', '3', '--to', '2'], '--from 3 is above --to 2'],
    ['on a chain that the file lacks', 2, ['POLYGON', '--from', '1', '--to', '2'], 'has no chain "POLYGON"'],
    ['from a node that the file lacks', 2, ['BASE', '--from', '1', '--to', '2', '--node', 'x'], '--node is "x", which'],
    [
      'up to a block that is not final',
      1,
      ['BASE', '--from', '1', '--to', '999999'],
      'block 999999 of BASE is not final',
    ],
  ])('%s', async (_, code, words, says) => {
    const payments = await knex('payments').orderBy('id')
    const ended = await runCommand(environment, ['chains', 'reread', ...words])
    expect([ended.code, ended.stdout]).toEqual([code, ''])
    expect(ended.stderr).toContain(says)
    expect(await knex('payments').orderBy('id')).toEqual(payments)
  })
})
