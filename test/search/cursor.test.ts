import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import { createPaymentSearch } from '../../src/search/page/payment-search.ts'
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
} from '../support/data/search-payments.ts'
import { account, faultOf, idsOf, type OpenedSearch, openSearch } from './open-search.ts'

const other = { id: 2, name: 'two' }
let opened: OpenedSearch

beforeAll(async () => {
  opened = await openSearch()
})

afterAll(() => opened.database.drop())

const search: OpenedSearch['search'] = (input, as) => opened.search(input, as)

describe('a cursor', () => {
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

  test('with any character changed is refused', async () => {
    const cursor = await firstCursor()
    expect((await search({ cursor })).payments).toHaveLength(3)
    for (let at = 0; at < cursor.length; at += 7) {
      const changed = cursor.slice(0, at) + (cursor[at] === 'x' ? 'y' : 'x') + cursor.slice(at + 1)
      expect(await faultOf(search({ cursor: changed }))).toMatchObject({ reason: 'INVALID_CURSOR' })
    }
  })

  test('is refused for another account, another secret and another list', async () => {
    const cursor = await firstCursor()
    expect(await faultOf(search({ cursor }, other))).toMatchObject({ reason: 'INVALID_CURSOR' })
    const elsewhere = createPaymentSearch({
      knex: opened.database.knex,
      chains,
      tokens,
      cursorSecret: Buffer.alloc(32, 2),
    })
    expect(await faultOf(elsewhere.search(account, { cursor }))).toMatchObject({ reason: 'INVALID_CURSOR' })
  })

  test.each<[SearchInput, string]>([
    [{ currency: ['USDC'] }, 'currency'],
    [{ currency: ['USDC', 'EUR', 'DAI'] }, 'currency'],
    [{ paymentCurrency: ['USDC'] }, 'paymentCurrency'],
    [{ network: ['base'] }, 'network'],
    [{ network: ['base', 'polygon', 'arbitrum'] }, 'network'],
    [{ sourceNetwork: ['base'] }, 'sourceNetwork'],
    [{ destinationNetwork: ['base'] }, 'destinationNetwork'],
    [{ status: ['PENDING'] }, 'status'],
    [{ type: ['DIRECT'] }, 'type'],
    [{ minAmount: '0.1' }, 'minAmount'],
    [{ maxAmount: '100' }, 'maxAmount'],
    [{ fromDate: '2026-03-02' }, 'fromDate'],
    [{ toDate: '2026-03-02' }, 'toDate'],
    [{ timeZone: 'Europe/Zurich' }, 'timeZone'],
    [{ payer: [PAYERS[0] ?? ''] }, 'payer'],
    [{ payee: [PAYEES[0] ?? ''] }, 'payee'],
    [{ walletAddress: [PAYEES[0] ?? ''] }, 'walletAddress'],
    [{ txHash: [hash(1)] }, 'txHash'],
    [{ requestId: [REQUEST_IDS[0] ?? ''] }, 'requestId'],
    [{ paymentReference: [PAYMENT_REFERENCES[0] ?? ''] }, 'paymentReference'],
    [{ reference: ['INV-1'] }, 'reference'],
    [{ q: 'INV-1' }, 'q'],
    [{ referencePrefix: 'INV' }, 'referencePrefix'],
    [{ 'exclude.status': ['FAILED'] }, 'exclude.status'],
    [{ 'exclude.type': ['DIRECT'] }, 'exclude.type'],
    [{ 'exclude.network': ['arbitrum'] }, 'exclude.network'],
    [{ 'exclude.currency': ['DAI'] }, 'exclude.currency'],
    [{ 'exclude.payer': [PAYERS[0] ?? ''] }, 'exclude.payer'],
    [{ 'exclude.payee': [PAYEES[0] ?? ''] }, 'exclude.payee'],
    [{ invoiceCurrency: ['EUR'] }, 'invoiceCurrency'],
    [{ sortBy: 'date' }, 'sortBy'],
    [{ sortOrder: 'desc' }, 'sortOrder'],
  ])('with %j sent beside it is refused as a mismatch of %s', async (beside, field) => {
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
  ])('with %s sent beside it gives the next page', async (_, beside) => {
    const cursor = await firstCursor()
    const alone = await search({ cursor })
    expect((await search({ ...beside, cursor })).payments).toEqual(alone.payments)
  })

  test('carries the time zone: dates sent beside it are days of that zone', async () => {
    const inZone: SearchInput = { timeZone: 'Asia/Kolkata', fromDate: '2026-03-02', toDate: '2026-03-10', limit: 3 }
    const cursor = await firstCursor(inZone)
    const alone = await search({ cursor })
    for (const beside of [inZone, { fromDate: '2026-03-02' }, { timeZone: 'asia/CALCUTTA' }]) {
      expect((await search({ ...beside, cursor })).payments).toEqual(alone.payments)
    }
    const others = [
      [{ timeZone: 'UTC' }, 'timeZone'],
      [{ timeZone: 'UTC', fromDate: '2026-03-02' }, 'timeZone'],
      [{ fromDate: '2026-03-02T00:00:00Z' }, 'fromDate'],
    ] as const
    const mismatches = await Promise.all(others.map(([beside]) => faultOf(search({ ...beside, cursor }))))
    expect(mismatches.map(({ reason, field }) => [reason, field])).toContainEqual(['CURSOR_MISMATCH', 'timeZone'])
    expect(mismatches.every(({ reason }) => reason === 'CURSOR_MISMATCH')).toBe(true)
    expect((await search({ cursor: await firstCursor(), timeZone: 'utc' })).payments).toHaveLength(3)
  })

  test('carries the limit, and another limit may be sent with it', async () => {
    const cursor = await firstCursor()
    expect((await search({ cursor })).pagination.limit).toBe(3)
    expect((await search({ cursor, limit: 0 })).pagination.limit).toBe(3)
    const larger = await search({ cursor, limit: 5 })
    expect(larger.pagination.limit).toBe(5)
    expect(larger.payments).toHaveLength(5)
    const { nextCursor } = larger.pagination
    expect((await search({ cursor: nextCursor })).pagination.limit).toBe(5)
  })

  test('fits into a URL beside headers when every filter has 100 values', async () => {
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
      q: ` ${REQUEST_IDS[0]}`.padEnd(256),
      limit: 1,
    }
    const full = { id: 14, name: 'full' }
    const matching = generatePayments(14, 2, 14).map((stored, n): StoredPayment => {
      const { payment } = stored
      return {
        ...stored,
        payment: {
          ...payment,
          payer: PAYERS[0],
          payee: PAYEES[0],
          txHash: hash(5),
          eventIndex: n,
          requestId: REQUEST_IDS[0],
          paymentReference: PAYMENT_REFERENCES[0],
          reference: REFERENCES[0],
        },
      }
    })
    await insertPayments(opened.database.knex, matching)
    const page = await search(everything, full)
    const cursor = page.pagination.nextCursor ?? ''
    expect(cursor.length).toBeGreaterThan(1_000)
    expect(cursor.length).toBeLessThan(48 * 1024)
    expect((await search({ ...everything, cursor }, full)).payments).toHaveLength(1)
    expect((await search({ cursor }, full)).pagination.nextCursor).toBeUndefined()
  })

  test('of a page whose payments were all deleted leads back to the payment where that page began', async () => {
    const doomed = generatePayments(5, 4, 55)
    const five = { id: 5, name: 'five' }
    await insertPayments(opened.database.knex, doomed)
    const first = await search({ limit: 2, sortOrder: 'asc' }, five)
    const second = await search({ cursor: first.pagination.nextCursor }, five)
    await opened.database.knex('payments').where({ account_id: 5 }).whereIn('id', idsOf(second)).delete()
    const empty = await search({ cursor: first.pagination.nextCursor }, five)
    expect(empty.payments).toEqual([])
    expect(empty.pagination.nextCursor).toBeUndefined()
    const back = await search({ cursor: empty.pagination.prevCursor }, five)
    expect(idsOf(back)).toEqual(idsOf(first))
    expect(back.pagination.prevCursor).toBeUndefined()
    await opened.database.knex('payments').where({ account_id: 5 }).whereIn('id', idsOf(first)).delete()
    const none = await search({ cursor: second.pagination.prevCursor }, five)
    expect(none.payments).toEqual([])
    expect(none.pagination.prevCursor).toBeUndefined()
  })
})
