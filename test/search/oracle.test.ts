import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import type { Payment } from '../../src/domain/payment.ts'
import { inTransaction } from '../../src/postgres/cancellable.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import { createPaymentSearch, type PaymentSearch } from '../../src/search/page/payment-search.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import type { TestDatabase } from '../support/data/database.ts'
import {
  chains,
  generatePayments,
  insertPayments,
  REQUEST_IDS,
  START,
  type StoredPayment,
  tokens,
} from '../support/data/search-payments.ts'
import { changePayments } from '../support/data/write-payments.ts'
import {
  cases,
  checkPair,
  checkWalk,
  idsOf,
  LADDERS,
  type Oracle,
  orders,
  storeOracle,
  walkForward,
} from './oracle-walks.ts'

const HOUR = 3_600_000
let oracle: Oracle
let database: TestDatabase

beforeAll(async () => {
  oracle = await storeOracle()
  ;({ database } = oracle)
})

afterAll(() => database.drop())

// Each case meets one order and one search; test/search/oracle.long.test.ts joins every case with every order and every search.
test.each(cases.map((each, nth) => [JSON.stringify(each.input), each, nth] as const))('%s', async (_, each, nth) => {
  const random = seededRandom(JSON.stringify(each.input).length)
  const { sortBy, sortOrder } = orders[nth % orders.length] as (typeof orders)[number]
  await checkWalk(oracle, nth, each, { sortBy, sortOrder, random })
})

test('a payment has to match both of two filters, in every order', async () => {
  const random = seededRandom(42)
  for (let run = 0; run < 60; run++) await checkPair(oracle, run, random)
})

test('the payments distinguish all cases, except those that match nothing', () => {
  const empty = cases.filter(
    (each) => !oracle.mine.some((payment) => each.matches(payment, each.basis ?? 'amountInUsd')),
  )
  expect(empty.map(({ input }) => JSON.stringify(input))).toEqual([
    `{"walletAddress":["0x${'0'.repeat(39)}1"]}`,
    '{"network":["eip155:137"]}',
    '{"network":["mainnet"]}',
    '{"destinationNetwork":["mainnet"]}',
    '{"referencePrefix":"%_"}',
    '{"metadata":["channel=Web"]}',
    '{"exclude.status":["PENDING"],"status":["PENDING"]}',
  ])
})

test('every limit from 1 to 100 gives the same payments in the same order', async () => {
  const [paymentSearch] = oracle.searches as [PaymentSearch]
  const all = await walkForward(paymentSearch, { requestId: REQUEST_IDS.slice(0, 1), sortBy: 'amount', limit: 100 })
  const expected = all.flatMap(idsOf)
  for (let limit = 1; limit <= 100; limit += limit < 5 ? 1 : 19) {
    const pages = await walkForward(paymentSearch, { requestId: REQUEST_IDS.slice(0, 1), sortBy: 'amount', limit })
    expect(pages.flatMap(idsOf)).toEqual(expected)
    expect(pages.slice(0, -1).every((page) => page.payments.length === limit)).toBe(true)
  }
})

test('a payment of a combination that is newer than the cached statistics is on the page', async () => {
  const owner = { id: 5, name: 'five' }
  const [ladder] = LADDERS
  const paymentSearch = createPaymentSearch({
    knex: database.knex,
    chains,
    tokens,
    cursorSecret: Buffer.alloc(32, 1),
    ladder,
  })
  const stored = generatePayments(5, 300, 5)
  await insertPayments(database.knex, stored)
  const newest = async (input: SearchInput) => (await paymentSearch.search(owner, { ...input, limit: 1 })).payments[0]
  const before = await newest({ currency: ['USDC'] })
  const [some] = stored as [StoredPayment]
  const id = '00000000-0000-8000-8000-000000000005'
  const timestamp = new Date(START + 999 * HOUR)
  const { txHash: _, eventIndex: __, ...payment } = some.payment
  const added = {
    ...payment,
    id,
    timestamp,
    currency: 'USDC-NEWNET',
    network: 'NEWNET',
    invoiceCurrency: 'USDC-NEWNET',
  }
  await insertPayments(database.knex, [{ ...some, payment: added }])
  expect(before?.id).not.toBe(id)
  expect((await newest({ currency: ['USDC'] }))?.id).toBe(id)
  expect((await newest({ network: ['NEWNET'] }))?.id).toBe(id)
  const byAmount = await paymentSearch.search(owner, { invoiceCurrency: ['USDC'], sortBy: 'amount', limit: 100 })
  expect(byAmount.payments.map((found) => found.id)).toContain(id)
})

test('a payment that got its amount in US dollars after the statistics were cached comes before those without', async () => {
  const owner = { id: 6, name: 'six' }
  const terms = { knex: database.knex, chains, tokens, cursorSecret: Buffer.alloc(32, 1) }
  const paymentSearch = createPaymentSearch({ ...terms, ladder: LADDERS[0] })
  const unpriced = generatePayments(6, 300, 6).map((stored): StoredPayment => {
    const { amountInUsd, ...payment } = stored.payment
    const isUsdc = payment.currency.startsWith('USDC-')
    return { ...stored, payment: isUsdc && amountInUsd !== undefined ? { ...payment, amountInUsd } : payment }
  })
  await insertPayments(database.knex, unpriced)
  const asked = { currency: ['DAI', 'ETH'], sortBy: 'amount', limit: 100 } as const
  const found = (await paymentSearch.search(owner, asked)).payments
  expect(found.length).toBeGreaterThan(10)
  expect(found.every(({ amountInUsd }) => amountInUsd === undefined)).toBe(true)
  const last = found.at(-1) as Payment
  await inTransaction(database.knex, undefined, async (trx) => {
    const row = database.knex('payments').where({ account_id: 6, id: last.id }).update({ amount_in_usd: '0.01' })
    await changePayments(await lockAccount(trx, owner.id, new Date(START)), row.toSQL())
  })
  const after = (await paymentSearch.search(owner, asked)).payments
  expect(after.map(({ id }) => id)).toEqual([last.id, ...found.slice(0, -1).map(({ id }) => id)])
})
