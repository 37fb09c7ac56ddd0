import { Readable } from 'node:stream'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import type { DecimalString } from '../../src/domain/decimal.ts'
import type { Payment } from '../../src/domain/payment.ts'
import { formatPaymentLine } from '../../src/domain/payment-line.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { type ImportOptions, importLines } from '../../src/imports/lines/import-lines.ts'
import { createRequests } from '../../src/requests/requests.ts'
import { createRequestListRepository } from '../../src/requests/sql/request-list-repository.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import { exportPayments } from '../../src/search/export/export-payments.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { balanceText } from '../support/data/ledger.ts'
import { generatePayments } from '../support/data/search-payments.ts'
import { addressOf, sampleChainDirectory, sampleTokenDirectory } from '../support/sample-chains.ts'

let database: TestDatabase
let shop: Account
let other: Account
let number = 0

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())
beforeEach(async () => {
  const accounts = createApiKeyRepository(database.knex)
  number += 1
  shop = await accounts.ensureAccount(`shop-${number}`)
  other = await accounts.ensureAccount(`other-${number}`)
})

const idOf = (n: number) => `0b7d2a31-6f0e-8c55-9d3b-${String(n).padStart(12, '0')}`
const hashOf = (n: number) => `0x${n.toString(16).padStart(64, '0')}`

const least = {
  id: idOf(1),
  timestamp: '2026-03-01T12:00:00Z',
  amount: '10',
  currency: 'USDC-BASE',
  network: 'BASE',
  status: 'CONFIRMED',
}

type ImportResult = { readonly written: number; readonly unchanged: number; readonly bad: string[] }

/** Imports lines, given as text or as objects. */
async function runImport(
  lines: readonly (string | object)[],
  to = shop,
  options: ImportOptions = {},
): Promise<ImportResult> {
  const bad: string[] = []
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const counts = await importLines(Readable.from([Buffer.from(text)]), importPayments(database.knex, to), {
    ...options,
    onBatch: (_, lately) => void bad.push(...lately.map(({ number: line, error }) => `${line} ${error.reason}`)),
  })
  expect(counts.written + counts.unchanged + counts.bad).toBe(counts.lines)
  expect(counts.bad).toBe(bad.length)
  return { written: counts.written, unchanged: counts.unchanged, bad }
}

async function exported(of = shop): Promise<string[]> {
  const lines: string[] = []
  const query = { knex: database.knex, filter: { accountId: of.id } }
  await exportPayments(query, async (page) => void lines.push(...page.map(formatPaymentLine)))
  return lines
}

const stored = async (of = shop) => (await exported(of)).map((line) => JSON.parse(line) as Record<string, unknown>)

/** Generated payments, and two with the fields that the generator leaves out. */
function manyPayments(count: number, seed: number): Payment[] {
  const canonical = (text: string) => text.replace(/(\.\d*?)0+$/, '$1') as DecimalString
  const made = generatePayments(0, count, seed).map(({ payment }): Payment => {
    const { confirmations, amountInUsd, invoiceAmount, ...rest } = payment
    return {
      ...rest,
      amount: canonical(payment.amount),
      ...(amountInUsd !== undefined && { amountInUsd: canonical(amountInUsd) }),
      ...(invoiceAmount !== undefined && { invoiceAmount: canonical(invoiceAmount) }),
      ...(confirmations !== undefined && payment.status !== 'PENDING' && { confirmations }),
    }
  })
  const [first, second] = made
  if (first === undefined || second === undefined) throw new Error('too few payments')
  return [...made, tronOf(first), crosschainOf(second)]
}

const tronOf = ({ timestamp, updatedAt }: Payment): Payment => ({
  id: idOf(901),
  status: 'REFUNDED',
  type: 'DIRECT',
  timestamp,
  updatedAt,
  amount: '12.000001',
  currency: 'USDT-TRON',
  network: 'TRON',
  chainId: 'tron:0x2b6653dc',
  txHash: hashOf(901) as `0x${string}`,
  eventIndex: 0,
  blockNumber: 0n,
  confirmations: 0,
  payer: 'TJRabPrwbZy45sbavfcjinPJC18kjpRTv8' as never,
  payee: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t' as never,
  reference: 'a,b "ü" \\N\t✓'.replace('\t', ' '),
  fees: [
    {
      type: 'PLATFORM',
      stage: 'RECEIVING',
      provider: 'x\\y',
      amount: '0',
      currency: 'USDT-TRON',
      amountInUsd: '0',
      receiverAddress: 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t',
      network: 'TRON',
    },
  ],
  marks: ['PAYER_NOT_ALLOWED'],
  exchangeRates: [],
  gas: { amount: '0', currency: 'TRX-TRON' },
  refunds: [
    { amount: '12', currency: 'USDT-TRON', network: 'TRON', txHash: hashOf(902) },
    {
      amount: '0.000001',
      currency: 'USDT-TRON',
      network: 'TRON',
      txHash: hashOf(903),
      eventIndex: 2,
      timestamp: '2026-03-05T00:00:00.000Z',
    },
  ],
  refundedAmount: '12.000001',
  statusHistory: [
    { status: 'PENDING', at: '2026-03-01T00:00:00.001Z' },
    { status: 'REFUNDED', at: '2026-03-05T00:00:00.000Z' },
  ],
})

const crosschainOf = ({ timestamp, updatedAt }: Payment): Payment => ({
  id: idOf(904),
  status: 'PENDING',
  type: 'CROSSCHAIN',
  timestamp,
  updatedAt,
  amount: '99999999999999999999999.000000000000000001',
  currency: 'USDC-BASE',
  invoiceCurrency: 'EUR',
  network: 'BASE',
  chainId: 'eip155:8453',
  txHash: hashOf(904) as `0x${string}`,
  eventIndex: 3,
  blockNumber: 9_223_372_036_854_775_807n,
  sourceNetwork: 'TRON',
  sourceTxHash: hashOf(905) as `0x${string}`,
  fees: [],
  marks: [],
  exchangeRates: [
    { from: 'EUR', to: 'USDC-BASE', rate: '1.08', source: 'import' },
    { from: 'EUR', to: 'USD', rate: '0', source: 'feed', at: '2026-03-01T00:00:00.120Z' },
  ],
  gas: { used: '18446744073709551', price: '0.000000001', amount: '0.5', currency: 'ETH-BASE', amountInUsd: '1' },
  refunds: [],
  refundedAmount: '0',
  statusHistory: [],
})

describe('import of payments', () => {
  it('stores what export writes, byte for byte, in order of date and id', async () => {
    // More than an export reads at a time.
    const lines = manyPayments(1_100, 11).map(formatPaymentLine)
    expect(await runImport(lines, shop, { batchLines: 100 })).toEqual({ written: lines.length, unchanged: 0, bad: [] })
    const first = await exported()
    expect(first.toSorted()).toEqual(lines.toSorted())
    const keys = (await stored()).map(({ timestamp, id }) => `${String(timestamp)} ${String(id)}`)
    expect(keys).toEqual(keys.toSorted())
    await runImport(first, other)
    expect(await exported(other)).toEqual(first)
  })

  it('changes nothing the second time', async () => {
    const lines = manyPayments(300, 12).map(formatPaymentLine)
    await runImport(lines)
    const before = await database.knex('payments').where({ account_id: shop.id }).orderBy('id').select('*', 'xmin')
    expect(await runImport(lines)).toEqual({ written: 0, unchanged: lines.length, bad: [] })
    // not even written again
    expect(await database.knex('payments').where({ account_id: shop.id }).orderBy('id').select('*', 'xmin')).toEqual(
      before,
    )
  })

  it.each([
    ['a newer one replaces', '2026-03-02T00:00:00.001Z', 'written', '20'],
    ['an equally old one does not', '2026-03-02T00:00:00Z', 'unchanged', '10'],
    ['an older one does not', '2026-03-01T23:59:59.999Z', 'unchanged', '10'],
    ['one without updatedAt does not', undefined, 'unchanged', '10'],
  ] as const)('of a changed line: %s', async (_, updatedAt, kind, amount) => {
    await runImport([{ ...least, updatedAt: '2026-03-02T00:00:00Z', reference: 'old' }])
    const result = await runImport([{ ...least, updatedAt, amount: '20' }])
    expect(result[kind]).toBe(1)
    expect(await stored()).toMatchObject([{ amount, ...(amount === '10' && { reference: 'old' }) }])
    // fields that the newer line leaves out are removed
    if (amount === '20') expect((await stored())[0]).not.toHaveProperty('reference')
  })

  it('applies the lines of one file in their order', async () => {
    const result = await runImport([
      { ...least, amount: '1', updatedAt: '2026-03-02T00:00:00Z' },
      { ...least, amount: '2', updatedAt: '2026-03-03T00:00:00Z' },
      { ...least, amount: '3', updatedAt: '2026-03-02T12:00:00Z' },
    ])
    expect(result).toEqual({ written: 2, unchanged: 1, bad: [] })
    expect(await stored()).toMatchObject([{ amount: '2', updatedAt: '2026-03-03T00:00:00Z' }])
  })

  it('reports every bad line by number and reason, and stores the others', async () => {
    const lines = [
      { ...least, id: idOf(1) },
      'no JSON',
      { ...least, id: idOf(2), amount: '1e3' },
      '{"id":"x","id":"y"}',
      '['.repeat(10_000),
      { ...least, id: idOf(3), colour: 'red' },
      '',
      { ...least, id: idOf(4), reference: 'x\u0000y' },
      `{"id":"${'x'.repeat(1_100_000)}"}`,
      { ...least, id: idOf(5) },
    ]
    const bad = [
      '2 MALFORMED_LINE',
      '3 INVALID_AMOUNT',
      '4 MALFORMED_LINE',
      '5 MALFORMED_LINE',
      '6 UNKNOWN_LINE_FIELD',
      '8 INVALID_REFERENCE',
      '9 VALUE_TOO_LONG',
    ]
    expect(await runImport(lines)).toEqual({ written: 2, unchanged: 0, bad })
    expect((await stored()).map(({ id }) => id)).toEqual([idOf(1), idOf(5)])
    expect(await runImport(lines, shop, { batchLines: 1 })).toEqual({ written: 0, unchanged: 2, bad })
  })

  it('refuses a second payment of an event, also within one file', async () => {
    const event = { txHash: hashOf(1), eventIndex: 0 }
    const result = await runImport([
      { ...least, id: idOf(1), ...event },
      { ...least, id: idOf(2), ...event },
      { ...least, id: idOf(3), ...event, eventIndex: 1 },
      { ...least, id: idOf(4), ...event, network: 'POLYGON' },
      { ...least, id: idOf(5), txHash: hashOf(1) },
    ])
    expect(result).toEqual({ written: 4, unchanged: 0, bad: ['2 EVENT_TAKEN'] })
    // a stored payment cannot take the event of another, however new its line, but it can take a free one
    const moved = { ...least, id: idOf(3), txHash: hashOf(1) }
    expect((await runImport([{ ...moved, eventIndex: 0 }])).bad).toEqual(['1 EVENT_TAKEN'])
    expect((await runImport([{ ...moved, eventIndex: 0, updatedAt: '2026-04-01T00:00:00Z' }])).bad).toEqual([
      '1 EVENT_TAKEN',
    ])
    expect((await runImport([{ ...moved, eventIndex: 9, updatedAt: '2026-04-01T00:00:00Z' }])).written).toBe(1)
    // that frees its earlier event
    expect((await runImport([{ ...least, id: idOf(6), ...event, eventIndex: 1 }])).written).toBe(1)
  })

  it('changes no other account: ids and events are unique within one', async () => {
    const line = { ...least, txHash: hashOf(1), eventIndex: 0 }
    await runImport([line], other)
    const before = await exported(other)
    expect(await runImport([{ ...line, amount: '7', updatedAt: '2026-04-01T00:00:00Z' }])).toMatchObject({ written: 1 })
    expect(await runImport([{ ...line, id: idOf(2) }])).toMatchObject({ bad: ['1 EVENT_TAKEN'] })
    expect(await exported(other)).toEqual(before)
    expect(await stored()).toMatchObject([{ amount: '7' }])
  })

  it('does not change a payment that was seen on chain', async () => {
    const line = { ...least, txHash: hashOf(1), eventIndex: 0 }
    await runImport([line])
    await database.knex('payments').where({ account_id: shop.id }).update({ detected: true, block_number: 5 })
    const before = await exported()
    expect(await runImport([{ ...line, amount: '99', updatedAt: '2099-01-01T00:00:00Z' }])).toMatchObject({
      unchanged: 1,
    })
    expect(await runImport([{ ...line, id: idOf(2) }])).toMatchObject({ bad: ['1 EVENT_TAKEN'] })
    expect(await exported()).toEqual(before)
  })

  it('stops between batches when its signal fires', async () => {
    const stopping = new AbortController()
    async function* lines() {
      for (let n = 0; n < 1_000; n++) yield Buffer.from(`${JSON.stringify({ ...least, id: idOf(n) })}\n`)
    }
    let seen = 0
    const counts = await importLines(lines(), importPayments(database.knex, shop), {
      signal: stopping.signal,
      batchLines: 50,
      onBatch({ lines: read }) {
        seen = read
        if (read >= 100) stopping.abort()
      },
    })
    expect(counts.written).toBe(seen)
    expect(counts.written % 50).toBe(0)
    expect(counts.written).toBeLessThan(1_000)
    expect((await exported()).length).toBe(counts.written)
  })

  it('ends at once when its signal fires while the source is silent', async () => {
    const stopping = new AbortController()
    const silent = new Readable({ read() {} })
    const importing = importLines(silent, importPayments(database.knex, shop), { signal: stopping.signal })
    stopping.abort()
    expect(await importing).toMatchObject({ lines: 0 })
  })

  it('imports 50,000 lines, and changes nothing the second time', async () => {
    const line = (n: number) => ({ ...least, id: idOf(n), txHash: hashOf(n), eventIndex: 0, amount: String(n) })
    async function* lines() {
      for (let n = 0; n < 50_000; n += 500) {
        const block = Array.from({ length: 500 }, (_, at) => `${JSON.stringify(line(n + at))}\n`)
        yield Buffer.from(block.join(''))
      }
    }
    const target = importPayments(database.knex, shop)
    expect(await importLines(lines(), target)).toEqual({ lines: 50_000, written: 50_000, unchanged: 0, bad: 0 })
    expect(await importLines(lines(), target)).toEqual({ lines: 50_000, written: 0, unchanged: 50_000, bad: 0 })
    const [sums] = await database
      .knex('payments')
      .where({ account_id: shop.id })
      .select<{ count: bigint; sum: string }[]>(database.knex.raw('count(*), sum(amount)'))
    expect(sums).toEqual({ count: 50_000n, sum: String((49_999 * 50_000) / 2) })
  })
})

describe('an imported payment of a request', () => {
  const requestsOf = () =>
    createRequests({
      repository: createRequestRepository(database.knex),
      lists: createRequestListRepository(database.knex),
      known: { chains: sampleChainDirectory, tokens: sampleTokenDirectory },
      cursorSecret: Buffer.alloc(32, 7),
      now: () => new Date('2026-03-01T00:00:00Z'),
      onStored: async () => {},
      originsOf: async () => new Set<string>(),
    })
  const terms = {
    payee: addressOf(0x77),
    amount: '100',
    invoiceCurrency: 'USDC',
    paymentCurrency: 'USDC-BASE',
    network: 'BASE',
    requestId: `01${'ab'.repeat(32)}`,
    salt: '11'.repeat(8),
  }

  it('counts for it by request id or payment reference, whichever of the two is stored first', async () => {
    const requests = requestsOf()
    const { request } = await requests.create(other, terms)
    const byId = { ...least, id: idOf(1), requestId: terms.requestId }
    const byReference = {
      ...least,
      id: idOf(2),
      amount: '30',
      status: 'PENDING',
      paymentReference: request.paymentReference,
      payee: terms.payee,
    }
    const elsewhere = { ...byReference, id: idOf(3), payee: addressOf(0x78) }
    const lines = [byId, byReference, elsewhere, { ...byId, id: idOf(4), status: 'FAILED' }]
    const expected = { status: 'PARTIALLY_PAID', paidAmount: '10', pendingAmount: '30', outstandingAmount: '60' }
    await runImport(lines, other)
    expect(balanceText((await requests.get(other, request.paymentReference)).balance)).toMatchObject(expected)
    await runImport(lines, shop)
    await requests.create(shop, terms)
    expect(balanceText((await requests.get(shop, request.paymentReference)).balance)).toMatchObject(expected)
    for (const account of [shop, other]) {
      expect(await runImport(lines, account)).toEqual({ written: 0, unchanged: 4, bad: [] })
    }
  })
})
