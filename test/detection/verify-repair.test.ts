/** `verify --repair` of what a node that lied has left in the database: it left logs out, misstated amounts and invented payments. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { keccak256 } from 'viem'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { encodeNativePayment } from '../../demo/network/demo-contracts.ts'
import type { Detection } from '../../src/detection/detection.ts'
import type { Account } from '../../src/domain/account.ts'
import type { Hex } from '../../src/domain/hex.ts'
import type { PaymentRequest } from '../../src/domain/payment-request.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import { encodeBatch } from '../support/chains/contract-calls.ts'
import { invents, misstates, omits, type Receipt, together, topicOf, withoutBlooms } from '../support/chains/lies.ts'
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
let misreporter: RpcProxy
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
  ;[misreporter, honest] = await Promise.all([startRpcProxy(chain.rpcUrl), startRpcProxy(chain.rpcUrl)])
  const file = join(folder, 'chains.json')
  const rpcUrls = [misreporter.url, honest.url]
  await writeFile(file, JSON.stringify({ chains: [{ ...chain.config({ name: 'BASE', finalityDepth: 3 }), rpcUrls }] }))
  environment = { DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: file }
  account = await addAccount(knex, 'shop')
  detection = detect(knex, [configOf(chain, 'BASE', { rpcUrls: [misreporter.url] })])
})
afterAll(async () => {
  await Promise.all([misreporter, honest].map((proxy) => proxy?.stop()))
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
/** Receipts whose encoding nobody knows: no root can be computed from them. */
const unknownReceipts: Meddle = ({ method }, ask) =>
  method === 'eth_getBlockReceipts'
    ? ask().then((receipts) => (receipts as object[]).map((receipt) => ({ ...receipt, type: '0x7b' })))
    : undefined
const pruned = refusesTraces('required historical state unavailable')
const headNumber = async () => Number((await chain.client.head()).number)
const verify = (...words: string[]) => runCommand(environment, ['verify', '--chain', 'BASE', ...words])
const repair = (...words: string[]) => verify(...words, '--repair')

it('adds what a node leaves out, corrects what it misstates, and removes what it invents, whoever is asked first', async () => {
  const before = await headNumber()
  const [paid, omitted, misstated, unpaid] = [await request(), await request(), await request(), await request()]
  const stranger = makeRequest({ payee: payeeOf(999), network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1' })
  const hashes = [await pay(paid), await pay(omitted), await pay(misstated), await pay(stranger)]
  const model = (await chain.client.rpc.call('eth_getTransactionReceipt', [hashes[0]])) as Receipt
  misreporter.meddle(
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
    await knex('audit_log').where({ action: 'VERIFY_REPAIR' }),
  ]
  const untouched = await stored()
  const trial = await verify(...range)
  expect(trial.code).toBe(1)
  expect(await stored()).toEqual(untouched)

  const done = await repair(...range)
  expect([done.code, done.stdout]).toEqual([0, trial.stdout])
  const lines = rowsOf(done.stdout)
  const changesOf = (hash: Hex | undefined) =>
    lines.filter((line) => line[2] === hash).map((line) => [line[0], ...line.slice(4)])
  const { requestId } = omitted
  expect(changesOf(hashes[1])).toEqual([['PAYMENT', 'row', '-', `1 ETH-BASE for request ${requestId}`]])
  expect(changesOf(hashes[2])).toEqual([
    ['PAYMENT', 'amount', '0.5', '1'],
    ['PAYMENT', 'invoiceAmount', '0.5', '1'],
    ['PAYMENT', 'status', 'PARTIAL', 'CONFIRMED'],
    ['PAYMENT', 'statusHistory', 'PARTIAL', 'CONFIRMED'],
  ])
  expect(changesOf(keccak256(topicOf(unpaid)))).toEqual([
    ['PAYMENT', 'row', `1 ETH-BASE for request ${unpaid.requestId}`, '-'],
  ])
  expect(changesOf(hashes[3])).toEqual([['UNMATCHED', 'row', '-', 'UNKNOWN_TOPIC']])
  expect(await factsOf(paid)).toEqual([['1', 'CONFIRMED', hashes[0], true]])
  expect(await factsOf(omitted)).toEqual([['1', 'CONFIRMED', hashes[1], true]])
  expect(await factsOf(misstated)).toEqual([['1', 'CONFIRMED', hashes[2], true]])
  expect(await factsOf(unpaid)).toEqual([])
  const audited = await knex('audit_log').where({ action: 'VERIFY_REPAIR' })
  expect(audited).toMatchObject([{ actor: 'ann@host', account: 'shop', details: { chain: 'BASE' } }])

  const repaired = await stored()
  expect(await repair(...range)).toMatchObject({ code: 0, stdout: '' })
  expect(await stored()).toEqual(repaired)
})

it('finds a payment whose transaction cannot be traced now, and its payer later', async () => {
  const omitted = await request()
  const terms = { to: omitted.payee as Hex, amount: COIN, paymentReference: omitted.paymentReference }
  const call = encodeNativePayment(chain.contracts.ethereumFeeProxy, terms, true)
  await chain.send(chain.wallets[0], encodeBatch(chain.contracts.paymentBatch, [call]), { gas: 5_000_000n })
  const block = String(await headNumber())
  misreporter.meddle(together(omits(omitted), withoutBlooms))
  await chain.mine({ blocks: 4 })
  await detection.scanOnce()
  expect(await factsOf(omitted)).toEqual([])

  for (const proxy of [misreporter, honest]) proxy.meddle(withoutTraces)
  expect(await repair('--from', block, '--to', block)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('row'),
  })
  expect(await paymentsOf(knex, account, omitted)).toMatchObject([{ amount: '1', payer: null }])
  expect(await knex('pending_enrichments')).toMatchObject([{ lacks: ['TRACE'] }])
  for (const proxy of [misreporter, honest]) proxy.meddle()
  await knex('pending_enrichments').update({ due_at: new Date() })
  await detection.enrichOnce()
  const whole = { amount: '1', payer: canonical(chain.contracts.paymentBatch) }
  expect(await paymentsOf(knex, account, omitted)).toMatchObject([whole])

  // A node that has pruned the block gives its trace to nobody, so the payer that was found stays.
  for (const proxy of [misreporter, honest]) proxy.meddle(pruned)
  await knex('payments')
    .where({ request_id: Buffer.from(omitted.requestId, 'hex') })
    .update({ amount: '2' })
  const untraced = await repair('--from', block, '--to', block)
  const why = 'no node traces the transaction, so its payer is taken as stored'
  expect(untraced).toMatchObject({ code: 3, stderr: expect.stringContaining(why) })
  expect(await paymentsOf(knex, account, omitted)).toMatchObject([whole])
})

it('counts a refund whose payment it found, and keeps imported payments', async () => {
  const [payer, , , payee] = chain.wallets
  const made = makeRequest({ payee: canonical(payee), network: 'BASE', paymentCurrency: 'ETH-BASE', amount: '1' })
  const returned = await storeRequest(knex, account, made)
  const imported = await request()
  misreporter.meddle(together(omits(returned), withoutBlooms))
  await pay(returned)
  await pay(imported)
  const paidAt = await headNumber()
  await chain.mine({ blocks: 4 })
  await detection.scanOnce()
  misreporter.meddle()
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

  const done = await repair('--from', String(paidAt - 1), '--to', String(paidAt))
  expect(done.code).toBe(0)
  expect((await factsOf(returned)).map(([, status]) => status)).toEqual(['REFUNDED'])
  expect(await unmatchedOf(knex, account.id)).toEqual([])
  expect(await importedRow.clone().where({ tx_hash: Buffer.alloc(32, 0xab) })).toHaveLength(1)
})

it('leaves a block that nothing proves as it is, and reports it', async () => {
  const omitted = await request()
  misreporter.meddle(together(omits(omitted, false), withoutBlooms, unknownReceipts))
  honest.meddle(unknownReceipts)
  await pay(omitted)
  const paidAt = String(await headNumber())
  await chain.mine({ blocks: 4 })
  await detection.scanOnce()
  const range = ['--from', paidAt, '--to', paidAt]
  const refused = await repair(...range)
  expect([refused.code, refused.stdout]).toEqual([3, ''])
  expect(refused.stderr).toMatch(new RegExp(`block ${paidAt}: not provable: .* give different receipts`))
  expect(await factsOf(omitted)).toEqual([])

  misreporter.meddle(together(withoutBlooms, unknownReceipts))
  const agreed = await repair(...range)
  expect([agreed.code, rowsOf(agreed.stdout).map((row) => row[4])]).toEqual([
    0,
    ['row', 'status', 'paidAmount', 'heldAmount'],
  ])
  expect((await factsOf(omitted)).map(([, status]) => status)).toEqual(['CONFIRMED'])
  honest.meddle()
  misreporter.meddle()
})
