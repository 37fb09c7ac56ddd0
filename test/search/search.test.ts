import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DecimalString } from '../../src/domain/decimal.ts'
import type { Payment } from '../../src/domain/payment.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import {
  generatePayments,
  hash,
  insertBySql,
  insertPayments,
  PAYEES,
  PAYERS,
  PAYMENT_REFERENCES,
  REFERENCES,
  REQUEST_IDS,
  type StoredPayment,
} from '../support/data/search-payments.ts'
import { account, faultOf, idsOf, type OpenedSearch, openSearch } from './open-search.ts'

const other = { id: 2, name: 'two' }
let opened: OpenedSearch

beforeAll(async () => {
  opened = await openSearch()
})

afterAll(() => opened.database.drop())

const search: OpenedSearch['search'] = (input, as) => opened.search(input, as)

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

  test('a total is given only where it was asked for', async () => {
    expect((await search({})).pagination.total).toBeUndefined()
    expect((await search({ includeTotal: 'none' })).pagination.total).toBeUndefined()
    expect((await search({ includeTotal: 'exact' })).pagination.total).toEqual({ count: 300, relation: 'EXACT' })
    expect((await search({ includeTotal: 'estimated' })).pagination.total).toEqual({ count: 300, relation: 'EXACT' })
    const pending = opened.mine.filter(({ payment }) => payment.status === 'PENDING').length
    const page = await search({ status: ['PENDING'], includeTotal: 'exact', limit: 1 })
    expect(page.pagination.total).toEqual({ count: pending, relation: 'EXACT' })
    expect((await search({ includeTotal: 'exact' }, other)).pagination.total).toEqual({ count: 0, relation: 'EXACT' })
  })

  test('above 10,000 an exact total is AT_LEAST, and an estimate is close', async () => {
    const [row] = opened.mine
    if (row === undefined) throw new Error('no payments')
    await insertPayments(opened.database.knex, [{ ...row, accountId: 9 }])
    await insertBySql(
      opened.database.knex,
      9,
      `insert into payments (account_id, id, status, final, imported, timestamp, updated_at, network, currency, currency_symbol, amount)
       select 9, gen_random_uuid(), 3, true, true, timestamp '2026-01-01' + n * interval '1 second', now(), 'BASE', 'USDC-BASE', 'USDC', n
       from generate_series(1, 10001) n`,
    )
    await opened.database.knex.raw('analyze payments')
    const nine = { id: 9, name: 'nine' }
    const totalOf = async (input: SearchInput) => (await search(input, nine)).pagination.total
    const all = { currency: ['USDC'], minAmount: '0' }
    expect(await totalOf({ ...all, includeTotal: 'exact' })).toEqual({ count: 10_000, relation: 'AT_LEAST' })
    expect(await totalOf({ ...all, minAmount: '2', includeTotal: 'exact' })).toEqual({
      count: 10_000,
      relation: 'EXACT',
    })
    const estimated = await totalOf({ ...all, includeTotal: 'estimated' })
    expect(estimated?.relation).toBe('ESTIMATED')
    expect(estimated?.count).toBeGreaterThan(8_000)
    expect(estimated?.count).toBeLessThan(12_500)
    expect(await totalOf({ ...all, minAmount: '9002', includeTotal: 'estimated' })).toEqual({
      count: 1_000,
      relation: 'EXACT',
    })

    // what the statistics hold is exact, however large
    const known = { count: 10_001, relation: 'EXACT' }
    const byStatistics: SearchInput = {
      network: ['BASE'],
      paymentCurrency: ['USDC'],
      status: ['CONFIRMED'],
      toDate: '2026-02-01',
    }
    expect(await totalOf({ ...byStatistics, includeTotal: 'exact' })).toEqual(known)
    expect(await totalOf({ ...byStatistics, includeTotal: 'estimated' })).toEqual(known)
    // a date range that overlaps a combination partly is counted, or estimated from the overlap
    const late = { ...byStatistics, fromDate: '2026-01-01T00:33:20Z' }
    expect(await totalOf({ ...late, includeTotal: 'exact' })).toEqual({ count: 8_002, relation: 'EXACT' })
    const share = await totalOf({ ...late, includeTotal: 'estimated' })
    expect(share).toEqual({ count: 8_002, relation: 'ESTIMATED' })
  })
})

describe('one payment', () => {
  test('comes back with every field as it was stored, from a search and by id', async () => {
    const bySearch = new Map((await walk({ limit: 100 })).map((payment) => [payment.id, payment]))
    expect(bySearch.size).toBe(opened.mine.length)
    for (const { payment } of opened.mine) expect(bySearch.get(payment.id)).toEqual(canonical(payment))
    const [{ payment }] = opened.mine as [StoredPayment]
    expect(await opened.paymentSearch.get(account, payment.id.toUpperCase())).toEqual(canonical(payment))
  })

  test('of another account is not found', async () => {
    const [{ payment }] = opened.mine as [StoredPayment]
    expect(await faultOf(opened.paymentSearch.get(other, payment.id))).toMatchObject({ reason: 'PAYMENT_NOT_FOUND' })
    expect(await faultOf(opened.paymentSearch.get(account, 'nonsense'))).toMatchObject({ reason: 'INVALID_PAYMENT_ID' })
  })

  /** No chain is followed, so no confirmations are counted. Trailing zeros of numerics are dropped. */
  function canonical(payment: Payment): Payment {
    const trimmed = (text: DecimalString) => (text === '10.50' ? '10.5' : text)
    return {
      ...payment,
      changedAt: expect.any(Date),
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

test('no filter shows a payment of another account, and other accounts do not know its names', async () => {
  // names that sort first and last of all, so that an index scan that leaves the account would meet them
  const secret = generatePayments(6, 80, 66).map((stored, n): StoredPayment => {
    const place = n % 2 === 0 ? 'AA' : 'ZZ'
    const named = {
      network: `${place}SECRETNET`,
      sourceNetwork: `${place}SECRETSOURCE`,
      currency: `${place}SECRET-SECRETNET`,
      invoiceCurrency: `${place}SECRETPOINTS`,
    }
    return { ...stored, payment: { ...stored.payment, ...named } }
  })
  await insertPayments(opened.database.knex, secret)
  const six = { id: 6, name: 'six' }
  const seven = { id: 7, name: 'seven' }
  const named = ['AA', 'ZZ'].flatMap((place): SearchInput[] => [
    { network: [`${place}SECRETNET`] },
    { network: [`${place}SECRETSOURCE`] },
    { currency: [`${place}secret`] },
    { currency: [`${place}SECRET-SECRETNET`] },
    { invoiceCurrency: [`${place}SECRETPOINTS`] },
  ])
  for (const input of named) {
    expect((await search(input, six)).payments).toHaveLength(20)
    const { reason, message } = await faultOf(search(input, account))
    expect(reason).toMatch(/^UNKNOWN_/)
    // the message repeats the value sent, but must not suggest a name of another account
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
      expect(found.every(({ network }) => network.endsWith('SECRETNET'))).toBe(true)
    }
  }
})

test('a search from after the last millisecond of the year 9999 finds nothing', async () => {
  const page = await search({ fromDate: '9999-12-31T23:59:59.9999Z', includeTotal: 'exact' })
  expect(page).toMatchObject({ payments: [], pagination: { total: { count: 0, relation: 'EXACT' } } })
})

test("another account's currency is unknown even where its symbol is known", async () => {
  const [made] = generatePayments(15, 1, 15) as [StoredPayment]
  await insertPayments(opened.database.knex, [
    { ...made, payment: { ...made.payment, network: 'HIDDENNET', currency: 'USDT-HIDDENNET' } },
  ])
  const input: SearchInput = { currency: ['usdt-hiddennet'] }
  expect((await search(input, { id: 15, name: 'fifteen' })).payments).toHaveLength(1)
  expect((await search({ currency: ['usdt'] })).payments).toHaveLength(20)
  expect(await faultOf(search(input))).toMatchObject({ reason: 'UNKNOWN_CURRENCY' })
})

test('confirmations count up to the head until a payment is final, and asOf tells how far each chain is scanned', async () => {
  const eight = { id: 8, name: 'eight' }
  const [made] = generatePayments(8, 1, 88)
  if (made === undefined) throw new Error('no payment')
  const { confirmations: _, ...template } = made.payment
  const at = (n: number, final: boolean, changes: Partial<Payment>): StoredPayment => ({
    accountId: 8,
    final,
    payment: { ...template, id: `00000000-0000-4000-8000-00000000000${n}`, eventIndex: n, ...changes },
  })
  await insertPayments(opened.database.knex, [
    at(1, false, { chainId: 'eip155:8453', blockNumber: 100n }),
    at(2, false, { chainId: 'eip155:8453', blockNumber: 111n }),
    at(3, false, { chainId: 'eip155:42161', blockNumber: 100n }),
    at(4, true, { chainId: 'eip155:8453', blockNumber: 50n, confirmations: 7 }),
    at(5, true, { chainId: 'eip155:8453', blockNumber: 50n }),
  ])
  await opened.database.knex('chain_state').insert({
    chain_id: 'eip155:8453',
    network: 'BASE',
    genesis_hash: Buffer.alloc(32),
    scanned_block: 108,
    scanned_hash: Buffer.alloc(32),
    scanned_time: '2026-03-01T00:00:05Z',
    head_block: 110,
    final_block: 60,
    start_block: 0,
    updated_at: '2026-03-01T00:00:06Z',
  })
  const page = await search({ sortBy: 'status', sortOrder: 'asc' }, eight)
  expect(page.payments.map(({ id, confirmations }) => [id.slice(-1), confirmations])).toEqual([
    ['1', 11],
    // the head that was read is older than the payment's block
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
  expect(await opened.paymentSearch.get(eight, first?.id ?? '')).toEqual(first)
})

test.each(['date', 'amount', 'status'] as const)(
  'a walk by %s returns every unchanged payment exactly once while others change',
  async (sortBy) => {
    const accountId = { date: 11, amount: 12, status: 13 }[sortBy]
    const stored = generatePayments(accountId, 200, accountId)
    await insertPayments(opened.database.knex, stored)
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

/** Changes sort keys of some payments, deletes some and adds some. */
async function disturb(accountId: number, ids: readonly string[], round: number): Promise<void> {
  const some = ids.filter((_, n) => n % 5 === round % 5)
  const rows = opened.database.knex('payments').where({ account_id: accountId }).whereIn('id', some)
  if (round % 3 === 0) await rows.update({ status: (round % 5) + 1 })
  else if (round % 3 === 1) await rows.update({ amount_in_usd: round % 2 === 0 ? null : round })
  else {
    await rows.limit(1).update({ timestamp: new Date(Date.UTC(2026, 2, 1 + (round % 20))) })
    await opened.database
      .knex('payments')
      .where({ account_id: accountId, id: some[0] ?? null })
      .delete()
  }
}

test('an aborted search rejects with the reason and its statement is cancelled', async () => {
  const reason = new Error('the caller hung up')
  const given = opened.paymentSearch.search(account, {}, AbortSignal.abort(reason))
  await expect(given).rejects.toBe(reason)
  const blocker = await opened.database.knex.transaction()
  try {
    await blocker.raw('lock table payments in access exclusive mode')
    const controller = new AbortController()
    const running = opened.paymentSearch.search(account, { includeTotal: 'exact' }, controller.signal)
    const outcome = running.then(
      () => 'answered',
      (error: unknown) => error,
    )
    await expect.poll(waitingForLocks).toBe(1)
    controller.abort(reason)
    expect(await outcome).toBe(reason)
    expect(await waitingForLocks()).toBe(0)
  } finally {
    await blocker.rollback()
  }
  expect((await search({ limit: 1 })).payments).toHaveLength(1)
})

async function waitingForLocks(): Promise<number> {
  const { rows } = await opened.database.knex.raw(
    `select count(*)::int as count from pg_stat_activity where datname = current_database() and application_name = 'waybill' and wait_event_type = 'Lock'`,
  )
  return rows[0].count
}
