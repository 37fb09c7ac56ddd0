import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Address } from '../src/domain/address.ts'
import type { Hex } from '../src/domain/hex.ts'
import type { Payment } from '../src/domain/payment.ts'
import { type Reason, WaybillError } from '../src/errors.ts'
import { createPaymentSearch, type PaymentSearch } from '../src/search/payment-search.ts'
import type { SearchInput } from '../src/search/search-input.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import {
  chains,
  generatePayments,
  hash,
  insertPayments,
  PAYEES,
  PAYERS,
  PAYMENT_REFERENCES,
  REFERENCES,
  REQUEST_IDS,
  type StoredPayment,
  tokens,
} from './support/search-payments.ts'

const account = { id: 1, name: 'one' }
const other = { id: 2, name: 'two' }
const cursorSecret = Buffer.alloc(32, 1)
let database: TestDatabase
let paymentSearch: PaymentSearch
let mine: StoredPayment[]

beforeAll(async () => {
  database = await createTestDatabase()
  paymentSearch = createPaymentSearch({ knex: database.knex, chains, tokens, cursorSecret })
  mine = generatePayments(1, 300, 7)
  await insertPayments(database.knex, mine)
})

afterAll(() => database.drop())

const search = (input: SearchInput, as = account) => paymentSearch.search(as, input)

async function faultOf(
  promise: Promise<unknown>,
): Promise<{ reason: Reason; message: string; field: string | undefined }> {
  const error = await promise.then(
    () => undefined,
    (caught: unknown) => caught,
  )
  if (!(error instanceof WaybillError)) throw new Error(`no error with a reason: ${String(error)}`)
  return { reason: error.reason, message: error.message, field: error.metadata.field }
}

describe('bad input', () => {
  const checksummed = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
  const bad: [SearchInput, Reason, string][] = [
    [{ fromDate: '2021-02-30' }, 'INVALID_DATE', 'fromDate: "2021-02-30" is not a date: there is no such day'],
    [{ toDate: '2026-03-01T00:00:00' }, 'INVALID_DATE', 'it has no offset'],
    [{ toDate: '2026-03-01T00:00:00 01:00' }, 'INVALID_DATE', 'write it as %2B'],
    [{ fromDate: '' }, 'INVALID_DATE', 'fromDate'],
    [{ fromDate: '2026-03-02', toDate: '2026-03-01' }, 'INVALID_RANGE', 'fromDate "2026-03-02" lies beyond toDate'],
    [{ fromDate: '2026-03-01T00:00:00.002Z', toDate: '2026-03-01T00:00:00.001Z' }, 'INVALID_RANGE', 'fromDate'],
    [{ minAmount: '1e3' }, 'INVALID_AMOUNT', 'minAmount: "1e3" is not an amount'],
    [{ minAmount: '0x10' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: ' 1' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: '+1' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: '-0' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: '' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: 'NaN' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ minAmount: '01' }, 'INVALID_AMOUNT', 'minAmount'],
    [{ maxAmount: '-1' }, 'INVALID_AMOUNT', 'it is negative'],
    [{ maxAmount: '1,5' }, 'INVALID_AMOUNT', 'maxAmount'],
    [{ maxAmount: '0.0000000000000000001' }, 'INVALID_AMOUNT', 'at most 18 places'],
    [{ maxAmount: '9'.repeat(79) }, 'INVALID_AMOUNT', 'maxAmount'],
    [{ minAmount: '2', maxAmount: '1.99' }, 'INVALID_RANGE', 'minAmount "2" lies beyond maxAmount "1.99"'],
    [{ currency: ['USDCC'] }, 'UNKNOWN_CURRENCY', 'did you mean "USDC"?'],
    [{ paymentCurrency: ['USCD'] }, 'UNKNOWN_CURRENCY', 'did you mean "USDC"?'],
    [{ currency: ['USDC', ''] }, 'UNKNOWN_CURRENCY', 'nobody knows a currency ""'],
    [{ currency: ['Odd-coi'] }, 'UNKNOWN_CURRENCY', 'did you mean "Odd-coin"?'],
    [{ currency: ['USDC-ETHEREUM'] }, 'UNKNOWN_CURRENCY', 'nobody knows a currency "USDC-ETHEREUM"'],
    [{ paymentCurrency: ['EUR'] }, 'UNKNOWN_CURRENCY', 'paymentCurrency: nobody knows a currency "EUR"'],
    [{ invoiceCurrency: ['EURO'] }, 'UNKNOWN_CURRENCY', 'invoiceCurrency'],
    [{ network: ['polygn'] }, 'UNKNOWN_NETWORK', 'did you mean "POLYGON"?'],
    [{ network: ['BASE', '424242'] }, 'UNKNOWN_NETWORK', '424242'],
    [{ network: [''] }, 'UNKNOWN_NETWORK', 'network'],
    [{ payer: ['0x12'] }, 'INVALID_ADDRESS', 'payer: "0x12" is not an address'],
    [{ payee: [checksummed.replace('C44', 'c44')] }, 'INVALID_ADDRESS', 'its EIP-55 checksum is wrong'],
    [{ walletAddress: ['TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6T'] }, 'INVALID_ADDRESS', 'base58 checksum'],
    [{ walletAddress: [''] }, 'INVALID_ADDRESS', 'walletAddress'],
    [{ txHash: ['0x12'] }, 'INVALID_TX_HASH', 'txHash'],
    [{ txHash: [`${hash(1)} `] }, 'INVALID_TX_HASH', 'txHash'],
    [{ requestId: [`02${'0'.repeat(64)}`] }, 'INVALID_REQUEST_ID', 'requestId'],
    [{ paymentReference: ['0x11223344556677'] }, 'INVALID_PAYMENT_REFERENCE', 'paymentReference'],
    [{ reference: [''] }, 'INVALID_REFERENCE', 'it is empty'],
    [{ reference: ['a\u0000b'] }, 'INVALID_REFERENCE', 'control character'],
    [{ reference: ['\ud800'] }, 'INVALID_REFERENCE', 'not valid Unicode'],
    [{ reference: ['x'.repeat(257)] }, 'INVALID_REFERENCE', '256 characters'],
    [{ payer: Array.from({ length: 101 }, () => PAYERS[0] ?? '') }, 'TOO_MANY_VALUES', '101, at most 100'],
    [{ reference: Array.from({ length: 100 }, (_, n) => `${n}`.padEnd(256, '✓')) }, 'VALUE_TOO_LONG', 'reference'],
    [{ limit: -1 }, 'INVALID_LIMIT', 'limit -1 is not a page size'],
    [{ limit: 1.5 }, 'INVALID_LIMIT', '1.5'],
    [{ limit: Number.NaN }, 'INVALID_LIMIT', 'NaN'],
    [{ cursor: '' }, 'INVALID_CURSOR', 'it is empty'],
    [{ cursor: 'abc' }, 'INVALID_CURSOR', 'the cursor cannot be used'],
    [{ cursor: 'x'.repeat(65_536) }, 'INVALID_CURSOR', 'the cursor cannot be used'],
  ]

  test.each(bad)('%j is %s', async (input, reason, words) => {
    const fault = await faultOf(search(input))
    expect(fault.reason).toBe(reason)
    expect(fault.message).toContain(words)
  })

  test('a value of 1 MB is refused without being repeated', async () => {
    const fault = await faultOf(search({ network: ['x'.repeat(1_000_000)] }))
    expect(fault.reason).toBe('UNKNOWN_NETWORK')
    expect(fault.message.length).toBeLessThan(500)
  })
})

describe('cursors', () => {
  const input: SearchInput = {
    currency: ['USDC', 'EUR'],
    network: ['base', 'matic'],
    status: ['CONFIRMED', 'PENDING'],
    minAmount: '0',
    fromDate: '2026-03-01',
    sortBy: 'amount',
    sortOrder: 'asc',
    limit: 3,
  }
  const firstCursor = async (of: SearchInput = input) => {
    const { nextCursor } = (await search(of)).pagination
    if (nextCursor === undefined) throw new Error('one page holds everything')
    return nextCursor
  }

  test('a change of any character makes it invalid', async () => {
    const cursor = await firstCursor()
    expect((await search({ cursor })).payments).toHaveLength(3)
    for (let at = 0; at < cursor.length; at += 7) {
      const changed = cursor.slice(0, at) + (cursor[at] === 'x' ? 'y' : 'x') + cursor.slice(at + 1)
      expect(await faultOf(search({ cursor: changed }))).toMatchObject({ reason: 'INVALID_CURSOR' })
    }
  })

  test('it serves no other account, no other secret and no other list', async () => {
    const cursor = await firstCursor()
    expect(await faultOf(search({ cursor }, other))).toMatchObject({ reason: 'INVALID_CURSOR' })
    const elsewhere = createPaymentSearch({ knex: database.knex, chains, tokens, cursorSecret: Buffer.alloc(32, 2) })
    expect(await faultOf(elsewhere.search(account, { cursor }))).toMatchObject({ reason: 'INVALID_CURSOR' })
  })

  test.each<[SearchInput, string]>([
    [{ currency: ['USDC'] }, 'currency'],
    [{ currency: ['USDC', 'EUR', 'DAI'] }, 'currency'],
    [{ paymentCurrency: ['USDC'] }, 'paymentCurrency'],
    [{ network: ['base'] }, 'network'],
    [{ network: ['base', 'polygon', 'arbitrum'] }, 'network'],
    [{ status: ['PENDING'] }, 'status'],
    [{ type: ['DIRECT'] }, 'type'],
    [{ minAmount: '0.1' }, 'minAmount'],
    [{ maxAmount: '100' }, 'maxAmount'],
    [{ fromDate: '2026-03-02' }, 'fromDate'],
    [{ toDate: '2026-03-02' }, 'toDate'],
    [{ payer: [PAYERS[0] ?? ''] }, 'payer'],
    [{ payee: [PAYEES[0] ?? ''] }, 'payee'],
    [{ walletAddress: [PAYEES[0] ?? ''] }, 'walletAddress'],
    [{ txHash: [hash(1)] }, 'txHash'],
    [{ requestId: [REQUEST_IDS[0] ?? ''] }, 'requestId'],
    [{ paymentReference: [PAYMENT_REFERENCES[0] ?? ''] }, 'paymentReference'],
    [{ reference: ['INV-1'] }, 'reference'],
    [{ invoiceCurrency: ['EUR'] }, 'invoiceCurrency'],
    [{ sortBy: 'date' }, 'sortBy'],
    [{ sortOrder: 'desc' }, 'sortOrder'],
  ])('%j beside it is a mismatch of %s', async (beside, field) => {
    expect(await faultOf(search({ cursor: await firstCursor(), ...beside }))).toMatchObject({
      reason: 'CURSOR_MISMATCH',
      field,
    })
  })

  test.each<[string, SearchInput]>([
    ['the same', input],
    ['other words for the same', { network: ['POLYGON', 'eip155:8453', 'base'], minAmount: '0.00' }],
    ['the same day as a moment', { fromDate: '2026-03-01T01:00:00+01:00' }],
    ['a part', { status: ['PENDING', 'CONFIRMED', 'PENDING'] }],
    ['nothing but includeTotal', { includeTotal: 'exact' }],
  ])('%s beside it gives the next page', async (_, beside) => {
    const cursor = await firstCursor()
    const alone = await search({ cursor })
    expect((await search({ ...beside, cursor })).payments).toEqual(alone.payments)
  })

  test('it carries the limit, and another limit may be sent', async () => {
    const cursor = await firstCursor()
    expect((await search({ cursor })).pagination.limit).toBe(3)
    expect((await search({ cursor, limit: 0 })).pagination.limit).toBe(3)
    const larger = await search({ cursor, limit: 5 })
    expect(larger.pagination.limit).toBe(5)
    expect(larger.payments).toHaveLength(5)
    const { nextCursor } = larger.pagination
    expect((await search({ cursor: nextCursor })).pagination.limit).toBe(5)
  })

  test('it fits into a URL beside headers when every filter has 100 values', async () => {
    const many = <T>(make: (n: number) => T) => Array.from({ length: 100 }, (_, n) => make(n))
    const wallets = (seed: number) => many((n) => `0x${hash(n + seed).slice(2, 42)}`)
    const everything: SearchInput = {
      payer: [...wallets(0).slice(1), PAYERS[0] ?? ''],
      payee: [...wallets(1_000).slice(1), PAYEES[0] ?? ''],
      walletAddress: [...wallets(2_000).slice(1), PAYERS[0] ?? ''],
      txHash: many(hash),
      requestId: [...many((n) => `01${hash(n).slice(2)}`).slice(5), ...REQUEST_IDS],
      paymentReference: [...many((n) => hash(n).slice(0, 18)).slice(5), ...PAYMENT_REFERENCES],
      reference: [...many((n) => hash(n).repeat(3)).slice(7), ...REFERENCES],
      limit: 1,
    }
    const full = { id: 14, name: 'full' }
    const matching = generatePayments(14, 2, 14).map((stored, n): StoredPayment => {
      const { payment } = stored
      return {
        ...stored,
        payment: {
          ...payment,
          payer: PAYERS[0] as Address,
          payee: PAYEES[0] as Address,
          txHash: hash(5),
          eventIndex: n,
          requestId: REQUEST_IDS[0] as string,
          paymentReference: PAYMENT_REFERENCES[0] as Hex,
          reference: REFERENCES[0] as string,
        },
      }
    })
    await insertPayments(database.knex, matching)
    const page = await search(everything, full)
    const cursor = page.pagination.nextCursor ?? ''
    expect(cursor.length).toBeGreaterThan(1_000)
    expect(cursor.length).toBeLessThan(48 * 1024)
    expect((await search({ ...everything, cursor }, full)).payments).toHaveLength(1)
    expect((await search({ cursor }, full)).pagination).not.toHaveProperty('nextCursor')
  })

  test('a page whose payments are all gone leads back to the payment where it began', async () => {
    const doomed = generatePayments(5, 4, 55)
    const five = { id: 5, name: 'five' }
    await insertPayments(database.knex, doomed)
    const first = await search({ limit: 2, sortOrder: 'asc' }, five)
    const second = await search({ cursor: first.pagination.nextCursor }, five)
    await database.knex('payments').where({ account_id: 5 }).whereIn('id', idsOf(second)).delete()
    const empty = await search({ cursor: first.pagination.nextCursor }, five)
    expect(empty.payments).toEqual([])
    expect(empty.pagination).not.toHaveProperty('nextCursor')
    const back = await search({ cursor: empty.pagination.prevCursor }, five)
    expect(idsOf(back)).toEqual(idsOf(first))
    expect(back.pagination).not.toHaveProperty('prevCursor')
    await database.knex('payments').where({ account_id: 5 }).whereIn('id', idsOf(first)).delete()
    const none = await search({ cursor: second.pagination.prevCursor }, five)
    expect(none.payments).toEqual([])
    expect(none.pagination).not.toHaveProperty('prevCursor')
  })
})

const idsOf = ({ payments }: { payments: readonly Payment[] }) => payments.map(({ id }) => id)

describe('limits and totals', () => {
  test.each([
    [undefined, 20],
    [0, 20],
    [1, 1],
    [100, 100],
    [101, 100],
    [2_147_483_647, 100],
  ])('limit %s gives pages of %i', async (limit, size) => {
    const page = await search({ limit })
    expect([page.pagination.limit, page.payments.length]).toEqual([size, size])
  })

  test('a total is given only where it is asked for', async () => {
    expect((await search({})).pagination).not.toHaveProperty('total')
    expect((await search({ includeTotal: 'none' })).pagination).not.toHaveProperty('total')
    expect((await search({ includeTotal: 'exact' })).pagination.total).toEqual({ count: 300, relation: 'EXACT' })
    expect((await search({ includeTotal: 'estimated' })).pagination.total).toEqual({ count: 300, relation: 'EXACT' })
    const pending = mine.filter(({ payment }) => payment.status === 'PENDING').length
    const page = await search({ status: ['PENDING'], includeTotal: 'exact', limit: 1 })
    expect(page.pagination.total).toEqual({ count: pending, relation: 'EXACT' })
    expect((await search({ includeTotal: 'exact' }, other)).pagination.total).toEqual({ count: 0, relation: 'EXACT' })
  })

  test('beyond 10,000 an exact total says AT_LEAST, and an estimate is near the truth', async () => {
    const [row] = mine
    if (row === undefined) throw new Error('no payments')
    await insertPayments(database.knex, [{ ...row, accountId: 9 }])
    await database.knex.raw(
      `insert into payments (account_id, id, status, final, imported, timestamp, updated_at, network, currency, currency_symbol, amount)
       select 9, gen_random_uuid(), 3, true, true, timestamp '2026-01-01' + n * interval '1 second', now(), 'BASE', 'USDC-BASE', 'USDC', n
       from generate_series(1, 10001) n`,
    )
    await database.knex.raw('analyze payments')
    const nine = { id: 9, name: 'nine' }
    expect((await search({ includeTotal: 'exact' }, nine)).pagination.total).toEqual({
      count: 10_000,
      relation: 'AT_LEAST',
    })
    const upTo = { currency: ['USDC'], minAmount: '2', includeTotal: 'exact' } as const
    expect((await search(upTo, nine)).pagination.total).toEqual({ count: 10_000, relation: 'EXACT' })
    const { total } = (await search({ includeTotal: 'estimated' }, nine)).pagination
    expect(total?.relation).toBe('ESTIMATED')
    expect(total?.count).toBeGreaterThan(8_000)
    expect(total?.count).toBeLessThan(12_500)
  })
})

describe('one payment', () => {
  test('comes back with every field as it was stored, from a search and by id', async () => {
    const bySearch = new Map((await walk({ limit: 100 })).map((payment) => [payment.id, payment]))
    expect(bySearch.size).toBe(mine.length)
    for (const { payment } of mine) expect(bySearch.get(payment.id)).toEqual(canonical(payment))
    const [{ payment }] = mine as [StoredPayment]
    expect(await paymentSearch.get(account, payment.id.toUpperCase())).toEqual(canonical(payment))
  })

  test('of another account is not there', async () => {
    const [{ payment }] = mine as [StoredPayment]
    expect(await faultOf(paymentSearch.get(other, payment.id))).toMatchObject({ reason: 'PAYMENT_NOT_FOUND' })
    expect(await faultOf(paymentSearch.get(account, 'nonsense'))).toMatchObject({ reason: 'INVALID_PAYMENT_ID' })
  })

  /** Nothing is followed, so nothing counts confirmations; zeros of a numeric's scale are dropped. */
  function canonical(payment: Payment): Payment {
    const trimmed = (text: string) => (text === '10.50' ? '10.5' : text)
    return {
      ...payment,
      amount: trimmed(payment.amount),
      ...(payment.amountInUsd !== undefined && { amountInUsd: trimmed(payment.amountInUsd) }),
      ...(payment.invoiceAmount !== undefined && { invoiceAmount: trimmed(payment.invoiceAmount) }),
    }
  }
})

async function walk(input: SearchInput, as = account): Promise<Payment[]> {
  const first = await search(input, as)
  const payments = [...first.payments]
  for (let cursor = first.pagination.nextCursor; cursor !== undefined; ) {
    const page = await search({ cursor }, as)
    payments.push(...page.payments)
    cursor = page.pagination.nextCursor
  }
  return payments
}

test('no filter shows a payment of another account, and its names are unknown to others', async () => {
  const alike = generatePayments(6, 60, 66)
  const secret = alike.map((stored) => ({
    ...stored,
    payment: { ...stored.payment, network: 'SECRETNET', currency: 'SECRET-SECRETNET', invoiceCurrency: 'SECRETPOINTS' },
  }))
  await insertPayments(database.knex, secret)
  const six = { id: 6, name: 'six' }
  const seven = { id: 7, name: 'seven' }
  const named: SearchInput[] = [
    { network: ['SECRETNET'] },
    { currency: ['secret'] },
    { currency: ['SECRET-SECRETNET'] },
    { invoiceCurrency: ['SECRETPOINTS'] },
  ]
  for (const input of named) {
    expect((await search(input, six)).payments).toHaveLength(20)
    const { reason, message } = await faultOf(search(input, account))
    expect(reason).toMatch(/^UNKNOWN_/)
    // the message repeats what was asked; what is known is not told
    expect(message.slice(message.indexOf(';'))).not.toMatch(/secret/i)
  }
  const wide: SearchInput[] = [
    {},
    { payer: PAYERS },
    { payee: PAYEES },
    { walletAddress: [...PAYERS, ...PAYEES] },
    { txHash: Array.from({ length: 100 }, (_, n) => hash(n)) },
    { requestId: REQUEST_IDS },
    { paymentReference: PAYMENT_REFERENCES },
    { reference: REFERENCES },
    { status: ['PENDING', 'PARTIAL', 'CONFIRMED', 'REFUNDED', 'FAILED'] },
    { type: ['DIRECT', 'CONVERSION', 'CROSSCHAIN', 'RECURRING'] },
    { fromDate: '0001-01-01', toDate: '9999-12-31' },
    { minAmount: '0' },
  ]
  for (const input of wide) {
    for (const sortBy of ['date', 'amount', 'status'] as const) {
      expect((await search({ ...input, sortBy, includeTotal: 'exact' }, seven)).payments).toEqual([])
      const found = await walk({ ...input, sortBy, limit: 100 }, six)
      expect(found.length).toBeGreaterThan(0)
      expect(found.every(({ network }) => network === 'SECRETNET')).toBe(true)
    }
  }
})

test('confirmations are counted up to the head until a payment is final, and asOf tells how far each chain is looked at', async () => {
  const eight = { id: 8, name: 'eight' }
  const [made] = generatePayments(8, 1, 88)
  if (made === undefined) throw new Error('no payment')
  const { confirmations: _, ...template } = made.payment
  const at = (n: number, final: boolean, changes: Partial<Payment>): StoredPayment => ({
    accountId: 8,
    final,
    payment: { ...template, id: `00000000-0000-4000-8000-00000000000${n}`, eventIndex: n, ...changes },
  })
  await insertPayments(database.knex, [
    at(1, false, { chainId: 'eip155:8453', blockNumber: 100n }),
    at(2, false, { chainId: 'eip155:8453', blockNumber: 111n }),
    at(3, false, { chainId: 'eip155:42161', blockNumber: 100n }),
    at(4, true, { chainId: 'eip155:8453', blockNumber: 50n, confirmations: 7 }),
    at(5, true, { chainId: 'eip155:8453', blockNumber: 50n }),
  ])
  await database.knex('chain_state').insert({
    chain_id: 'eip155:8453',
    network: 'BASE',
    genesis_hash: Buffer.alloc(32),
    scanned_block: 108,
    scanned_hash: Buffer.alloc(32),
    scanned_time: '2026-03-01T00:00:05Z',
    head_block: 110,
    final_block: 60,
    updated_at: '2026-03-01T00:00:06Z',
  })
  const page = await search({ sortBy: 'status', sortOrder: 'asc' }, eight)
  expect(page.payments.map(({ id, confirmations }) => [id.slice(-1), confirmations])).toEqual([
    ['1', 11],
    // the head was read before a block that came since
    ['2', 1],
    ['3', undefined],
    ['4', 7],
    ['5', undefined],
  ])
  expect(page.asOf).toEqual([
    { network: 'BASE', block: 108n, time: new Date('2026-03-01T00:00:05Z') },
    { network: 'POLYGON' },
    { network: 'ARBITRUM' },
  ])
  const [first] = page.payments
  expect(await paymentSearch.get(eight, first?.id ?? '')).toEqual(first)
})

test.each(['date', 'amount', 'status'] as const)(
  'a walk by %s meets every payment that stays as it is exactly once while others change',
  async (sortBy) => {
    const accountId = { date: 11, amount: 12, status: 13 }[sortBy]
    const stored = generatePayments(accountId, 200, accountId)
    await insertPayments(database.knex, stored)
    const moving = new Set(stored.filter((_, n) => n % 3 === 0).map(({ payment }) => payment.id))
    const met: string[] = []
    let cursor: string | undefined
    let round = 0
    do {
      const page = await search(
        { limit: 7, ...(cursor === undefined ? { sortBy } : { cursor }) },
        { id: accountId, name: 'x' },
      )
      met.push(...idsOf(page))
      await disturb(accountId, [...moving], round++)
      cursor = page.pagination.nextCursor
    } while (cursor !== undefined)
    const staying = stored.map(({ payment }) => payment.id).filter((id) => !moving.has(id))
    expect(met.filter((id) => !moving.has(id)).toSorted()).toEqual(staying.toSorted())
  },
)

/** Changes keys of some payments, removes some, and adds some. */
async function disturb(accountId: number, ids: readonly string[], round: number): Promise<void> {
  const some = ids.filter((_, n) => n % 5 === round % 5)
  const rows = database.knex('payments').where({ account_id: accountId }).whereIn('id', some)
  if (round % 3 === 0) await rows.update({ status: (round % 5) + 1 })
  else if (round % 3 === 1) await rows.update({ amount_in_usd: round % 2 === 0 ? null : round })
  else {
    await rows.limit(1).update({ timestamp: new Date(Date.UTC(2026, 2, 1 + (round % 20))) })
    await database
      .knex('payments')
      .where({ account_id: accountId, id: some[0] ?? null })
      .delete()
  }
}

test('a search that is given up ends with the signal, and its connection is sound afterwards', async () => {
  const reason = new Error('the caller hung up')
  const attempt = paymentSearch.search(account, { limit: 100 }, AbortSignal.abort(reason))
  await expect(attempt).rejects.toBe(reason)
  expect((await search({ limit: 1 })).payments).toHaveLength(1)
})
