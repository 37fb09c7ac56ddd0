/**
 * `verify --repair` corrects what other rules stored. Their results are forged: payments and refunds are found on a real chain, and their rows are then
 * changed to what such rules would have stored.
 */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { type Hex, keccak256, toBytes } from 'viem'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Address, addressToBytes, parseAddress } from '../../src/domain/address.ts'
import { hexToBytes } from '../../src/domain/hex.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { repairAccount } from '../../src/store/proof/repair-account.ts'
import { startTestChain, type TestChain } from '../support/chains/chain.ts'
import {
  type Caller,
  freshAddress,
  type LifeService,
  newWallet,
  type RequestJson,
  startLifeService,
} from '../support/chains/payment-life.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { changePayments } from '../support/data/write-payments.ts'
import { rowsOf, runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const HUNDRED = 100_000000n
const FINALITY = 4

let database: TestDatabase
let knex: Knex
let chain: TestChain
let service: LifeService
let shop: Caller
let folder: string
let environment: Record<string, string>

beforeAll(async () => {
  ;[database, chain, folder] = await Promise.all([
    createTestDatabase(),
    startTestChain({ chainId: 31_541 }),
    makeTempFolder('recheck'),
  ])
  knex = database.knex
  // As an executor of a bridge, this contract makes payments whose payer is unknown.
  const executors = [canonical(chain.contracts.paymentBatch)]
  const config = { ...chain.config({ name: 'BASE', finalityDepth: FINALITY }), executors }
  const file = join(folder, 'chains.json')
  await writeFile(file, JSON.stringify({ chains: [config] }))
  environment = { DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: file }
  service = await startLifeService(knex, [config])
  shop = await service.caller('shop')
})
afterAll(async () => {
  await service?.stop()
  await Promise.all([chain?.stop(), database?.drop(), rm(folder, { recursive: true, force: true })])
})

const waybill = (...words: string[]) => runCommand(environment, words)
const repair = () => waybill('verify', '--repair')

function canonical(address: string): Address {
  const parsed = parseAddress(address)
  if (!parsed.ok) throw new Error(parsed.detail)
  return parsed.address
}

let seeds = 0
const freshWallet = () => newWallet(chain, `rechecked ${seeds++}`)

async function scan(): Promise<void> {
  await chain.mine({ blocks: FINALITY })
  await service.scan()
}

interface Made {
  readonly request: RequestJson
  readonly payer: Hex
  readonly payee: Hex
  readonly stranger: Hex
  readonly refundAddress: Hex
  readonly refundReference: Hex
}

async function makeRequest(): Promise<Made> {
  const [payer, payee, stranger] = [await freshWallet(), await freshWallet(), await freshWallet()]
  const refundAddress = freshAddress(`rechecked refund ${seeds++}`)
  const request = await shop.createRequest({ payee, amount: '100', refundAddress })
  const text = (request.requestId + request.salt + refundAddress).toLowerCase()
  return { request, payer, payee, stranger, refundAddress, refundReference: `0x${keccak256(toBytes(text)).slice(-16)}` }
}

async function pay(from: Hex, to: Hex, paymentReference: Hex): Promise<Hex> {
  const { USDC } = chain.tokens
  await chain.fund(USDC, from, HUNDRED)
  const payment = { kind: 'ERC20', token: USDC.address, to, amount: HUNDRED, paymentReference } as const
  return (await chain.pay(from, payment)).transactionHash
}

const statusOf = async ({ request }: Made) => (await shop.request(request.paymentReference)).status
const idOf = ({ request }: Made) => Buffer.from(request.requestId, 'hex')

/** Stores a refund that the old rules counted, and settles as they did. */
async function forgeRefund(made: Made, txHash: Hex): Promise<void> {
  const event = await knex('unmatched_events')
    .where({ account_id: shop.accountId, tx_hash: hexToBytes(txHash) })
    .first()
  await knex('unmatched_events')
    .where({ account_id: shop.accountId, tx_hash: hexToBytes(txHash) })
    .delete()
  await knex('refunds').insert({
    account_id: shop.accountId,
    tx_hash: hexToBytes(txHash),
    event_index: event.event_index,
    network: 'BASE',
    chain_id: event.chain_id,
    request_id: idOf(made),
    block_number: event.block_number,
    timestamp: event.timestamp,
    final: true,
    amount: '100',
    currency: 'USDC-BASE',
  })
}

async function forgePayer(made: Made, payer: Hex): Promise<void> {
  await knex.transaction(async (trx) => {
    const account = await lockAccount(trx, shop.accountId, new Date())
    const ofRequest = { account_id: shop.accountId, request_id: idOf(made) }
    await changePayments(
      account,
      trx('payments')
        .where(ofRequest)
        .update({ payer: addressToBytes(canonical(payer)) })
        .toSQL(),
    )
  })
}

/** Keeps a payer as a word of a bridge is kept: by the event. */
async function tellPayer(made: Made, payer: Hex): Promise<void> {
  const ofRequest = { account_id: shop.accountId, request_id: idOf(made) }
  const row = await knex('payments').where(ofRequest).first('account_id', 'chain_id', 'tx_hash', 'event_index', 'id')
  const { id, ...event } = row
  await knex('reported_payers').insert({
    ...event,
    payment_id: id,
    topic: Buffer.from(keccak256(made.request.paymentReference).slice(2), 'hex'),
    payer: addressToBytes(canonical(payer)),
    source_tx_hash: event.tx_hash,
    is_proven: true,
  })
}

/** Replaces a refund by an unmatched event: the old rules had no refunds to a recipient who is not known to have paid. */
async function forgeUnmatched(txHash: Hex): Promise<void> {
  const refund = await knex('refunds')
    .where({ tx_hash: hexToBytes(txHash) })
    .first()
  const request = await knex('requests').where({ request_id: refund.request_id }).first()
  await knex('refunds')
    .where({ tx_hash: hexToBytes(txHash) })
    .delete()
  await knex('unmatched_events').insert({
    chain_id: refund.chain_id,
    tx_hash: refund.tx_hash,
    event_index: refund.event_index,
    account_id: shop.accountId,
    reason: 'WRONG_PAYEE',
    topic: request.topic,
    block_number: refund.block_number,
    timestamp: refund.timestamp,
    event: '{}',
  })
}

const settleAll = () => repairAccount(knex, shop.accountId, { now: new Date(), isLogWrong: false })

/** All rows that finding payments writes. */
async function dump(): Promise<string> {
  const tables = ['payments', 'refunds', 'unmatched_events', 'requests', 'payment_statistics', 'payment_changes']
  const rows = await Promise.all(
    tables.map((table) => knex.raw(`select string_agg(t::text, e'\\n' order by t::text) as rows from ?? t`, [table])),
  )
  return rows.map(({ rows: [row] }) => row.rows).join('\n\n')
}

describe('what older rules stored', () => {
  let forged: { byStranger: Made; wrongPayer: Made; toUnknown: Made; honest: Made; imported: Made }
  let strangersHash: Hex
  let importedBefore: object

  beforeAll(async () => {
    const [byStranger, wrongPayer, toUnknown, honest, imported] = [
      await makeRequest(),
      await makeRequest(),
      await makeRequest(),
      await makeRequest(),
      await makeRequest(),
    ]
    forged = { byStranger, wrongPayer, toUnknown, honest, imported }
    for (const { payer, payee, request } of [byStranger, wrongPayer, honest]) {
      await pay(payer, payee, request.paymentReference)
    }
    await importPayment(imported, await pay(imported.payer, imported.payee, imported.request.paymentReference))
    const { payee, payer, request } = toUnknown
    const { paymentReference } = request
    const token = chain.tokens.USDC.address
    await chain.payInOneTransaction(payer, [{ kind: 'ERC20', token, to: payee, amount: HUNDRED, paymentReference }])
    await scan()
    strangersHash = await pay(byStranger.stranger, byStranger.refundAddress, byStranger.refundReference)
    const toStranger = await pay(wrongPayer.payee, wrongPayer.stranger, wrongPayer.request.paymentReference)
    await pay(honest.payee, honest.payer, honest.request.paymentReference)
    const toAnybody = await pay(toUnknown.payee, toUnknown.stranger, paymentReference)
    await scan()
    const states = () => Promise.all(Object.values(forged).map(statusOf))
    expect(await states()).toEqual(['PAID', 'PAID', 'REFUNDED', 'REFUNDED', 'PAID'])

    await forgeRefund(byStranger, strangersHash)
    await forgePayer(wrongPayer, wrongPayer.stranger)
    // The payer of an event is the chain's, also where an import became its payment.
    await forgePayer(imported, imported.stranger)
    await forgeRefund(wrongPayer, toStranger)
    await forgeUnmatched(toAnybody)
    await settleAll()
    importedBefore = await importedRow()
    expect(importedBefore).toMatchObject({ imported: true, detected: true, final: true })
    expect(await states()).toEqual(['REFUNDED', 'REFUNDED', 'PAID', 'REFUNDED', 'PAID'])
  })

  async function importPayment({ request: { requestId } }: Made, txHash: Hex): Promise<void> {
    const line = {
      id: '7e000000-0000-4000-8000-00000000bbbb',
      timestamp: '2026-01-01T00:00:00Z',
      amount: '100',
      currency: 'USDC-BASE',
      network: 'BASE',
      status: 'CONFIRMED',
      txHash,
      eventIndex: 0,
      requestId,
    }
    const file = join(folder, 'payments.ndjson')
    await writeFile(file, `${JSON.stringify(line)}\n`)
    expect((await waybill('import', 'payments', file, '--account', 'shop')).code).toBe(0)
  }
  const importedRow = () => knex('payments').where({ account_id: shop.accountId, imported: true }).first()

  it('is listed by a run that repairs nothing', async () => {
    const before = await dump()
    const tried = await waybill('verify')
    expect(await dump()).toBe(before)
    expect(tried.code).toBe(1)
    const reported = rowsOf(tried.stdout)
    expect(new Set(reported.map(([, account]) => account))).toEqual(new Set(['shop']))
    const fieldsOf = async (made: Made) => {
      const hashes = (await shop.paymentsOf(made.request)).map(({ txHash }) => txHash)
      return reported
        .filter(([, , hash]) => hashes.includes(hash as Hex))
        .map(([kind, , , , ...rest]) => [kind, ...rest])
    }
    expect(await fieldsOf(forged.byStranger)).toEqual([
      ['PAYMENT', 'status', 'REFUNDED', 'CONFIRMED'],
      ['PAYMENT', 'refundedAmount', '100', '0'],
      ['PAYMENT', 'refunds', expect.stringMatching(/^100 by 0x/), ''],
      ['PAYMENT', 'statusHistory', 'REFUNDED', 'CONFIRMED'],
    ])
    expect(await fieldsOf(forged.wrongPayer)).toContainEqual([
      'PAYMENT',
      'payer',
      forged.wrongPayer.stranger.toLowerCase(),
      forged.wrongPayer.payer.toLowerCase(),
    ])
    expect(await fieldsOf(forged.toUnknown)).toContainEqual(['PAYMENT', 'refundedAmount', '0', '100'])
    expect(await fieldsOf(forged.honest)).toEqual([])
    const gone = reported
      .filter(([kind, , , , field]) => kind === 'REFUND' && field === 'row')
      .map((line) => line.at(-1))
    expect(gone.toSorted((a = '', b = '') => (a < b ? -1 : 1))).toEqual([
      expect.stringMatching(/^100 USDC-BASE for/),
      'unmatched: NOT_FROM_PAYEE',
      'unmatched: WRONG_PAYEE',
    ])
  })

  it('is corrected while the service runs, and a second run changes nothing', async () => {
    service.detection.start()
    const done = await repair()
    await service.detection.stop()
    expect(done.code).toBe(0)
    expect(await Promise.all(Object.values(forged).map(statusOf))).toEqual([
      'PAID',
      'PAID',
      'REFUNDED',
      'REFUNDED',
      'PAID',
    ])
    const { byStranger, wrongPayer } = forged
    expect((await shop.paymentsOf(wrongPayer.request)).map(({ payer }) => payer)).toEqual([wrongPayer.payer])
    expect(await service.unmatchedOf(shop, { paymentReference: byStranger.refundReference })).toEqual([
      'NOT_FROM_PAYEE',
    ])
    const payer = addressToBytes(canonical(forged.imported.payer))
    const moved = { updated_at: expect.any(Date), changed_at: expect.any(Date) }
    expect(await importedRow()).toEqual({ ...importedBefore, payer, ...moved })

    const after = await dump()
    expect(await repair()).toMatchObject({ code: 0, stdout: '' })
    expect(await dump()).toBe(after)
  })
})

it('a payment to a stranger is not a refund when the bridge reported the payer', async () => {
  const made = await makeRequest()
  const { payer, payee, stranger, request } = made
  const { paymentReference } = request
  const token = chain.tokens.USDC.address
  await chain.payInOneTransaction(payer, [{ kind: 'ERC20', token, to: payee, amount: HUNDRED, paymentReference }])
  await scan()
  // Like the payer that the status of the bridge reports later.
  await forgePayer(made, payer)
  await tellPayer(made, payer)
  await pay(payee, stranger, paymentReference)
  await scan()
  expect(await statusOf(made)).toBe('PAID')
  expect((await repair()).code).toBe(0)
  expect(await statusOf(made)).toBe('PAID')
  await pay(payee, payer, paymentReference)
  await scan()
  expect(await statusOf(made)).toBe('REFUNDED')
  expect((await repair()).code).toBe(0)
  expect(await statusOf(made)).toBe('REFUNDED')
})

it('an accepted event counts again when a reorg has moved it to another block', async () => {
  const made = await makeRequest()
  await pay(made.payer, made.payee, made.request.paymentReference)
  await scan()
  // From a wallet whose key the node has: only its transactions can be mined again.
  const hash = await pay(chain.wallets[0], made.refundAddress, made.refundReference)
  await chain.mine()
  await service.scan()
  const words = ['--chain', 'BASE', '--tx', hash, '--event', '0', '--account', 'shop', '--reason', 'ours']
  expect((await waybill('unmatched', 'accept', ...words, '--as', 'refund')).code).toBe(0)
  const blockOf = async () =>
    (
      await knex('refunds')
        .where({ tx_hash: hexToBytes(hash) })
        .first()
    ).block_number
  const first = await blockOf()
  expect(await statusOf(made)).toBe('PAID')
  await chain.reorg(2, [{ hash, offset: 1 }])
  await scan()
  expect(await blockOf()).toBe(first + 1n)
  expect(await statusOf(made)).toBe('REFUNDED')
})

it.each([
  [['unmatched', 'list', '--reason', 'WRONG_PAYE'], 'did you mean "WRONG_PAYEE"?'],
  [['unmatched', 'list', '--limit', '-1'], 'argument is ambiguous'],
  [['unmatched', 'list', '--limit', '100001'], '--limit is "100001": use a whole number from 0 to 100000'],
  [['unmatched', 'list', '--chain', 'nowhere'], 'the chains file has no chain "nowhere"'],
  [accept({ tx: '0x12' }), '--tx is "0x12", which is not a transaction hash'],
  [accept({ event: '-1' }), 'argument is ambiguous'],
  [accept({ event: '1.5' }), '--event is "1.5"'],
  [accept({ as: 'gift' }), '--as is "gift": use payment or refund'],
  [accept({ reason: ' ' }), '--reason must be a text of 1 to 500 characters'],
  [accept({ reason: 'x'.repeat(501) }), '--reason must be a text'],
  [accept({ reason: 'a\nb' }), 'on one line'],
  [accept({ chain: 'nowhere' }), 'the chains file has no chain "nowhere"'],
  [['unmatched', 'accept', '--chain', 'BASE'], '--tx is missing'],
  [['unmatched', 'accept', '--chain', 'BASE', '--undo'], '--tx is missing'],
  [[...accept({}), '--undo'], 'give either --as or --undo'],
])('%j is wrong usage', async (words, says) => {
  expect(await waybill(...words)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(says) })
})

function accept(terms: Readonly<Record<string, string>>): string[] {
  const good = { chain: 'BASE', tx: `0x${'1'.repeat(64)}`, event: '0', account: 'shop', as: 'refund', reason: 'ours' }
  return [
    'unmatched',
    'accept',
    ...Object.entries({ ...good, ...terms }).flatMap(([name, value]) => [`--${name}`, value]),
  ]
}
