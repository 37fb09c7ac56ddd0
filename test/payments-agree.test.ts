import { afterAll, beforeAll, expect, test } from 'vitest'
import { addDecimals, type Decimal, formatDecimal, parseDecimal } from '../src/domain/decimal.ts'
import { type Payment, paymentStatuses, paymentTypes } from '../src/domain/payment.ts'
import { createExportPages } from '../src/search/export-pages.ts'
import { createPaymentSearch, type PaymentSearch } from '../src/search/payment-search.ts'
import type { SearchInput } from '../src/search/search-input.ts'
import { createSummarizePayments } from '../src/search/summarize-payments.ts'
import { groupNames } from '../src/search/summary-repository.ts'
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
  seededRandom,
  tokens,
} from './support/search-payments.ts'

// Whatever the filter: pages, totals, summaries and exports speak of the same payments.

const account = { id: 1, name: 'one' }
let database: TestDatabase
let search: PaymentSearch
let everything: ReadonlyMap<string, Payment>

beforeAll(async () => {
  database = await createTestDatabase()
  search = createPaymentSearch({ knex: database.knex, chains, tokens, cursorSecret: Buffer.alloc(32, 1) })
  const ours = generatePayments(1, 1_000, 31)
  await insertPayments(database.knex, [...ours, ...generatePayments(2, 500, 32)])
  everything = new Map(ours.map(({ payment }) => [payment.id, payment]))
})

afterAll(() => database.drop())

const random = seededRandom(2026)
const one = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
const some = <T>(values: readonly T[]): T[] => [one(values), one(values)]

/** A value or two for each filter; each may be left out. */
const filters: Readonly<Record<string, () => SearchInput>> = {
  fromDate: () => ({ fromDate: one(['2026-03-01', '2026-03-03T12:00:00Z', '2026-03-15']) }),
  toDate: () => ({ toDate: one(['2026-03-16', '2026-03-17T00:00:00+05:45', '2027-01-01']) }),
  minAmount: () => ({ minAmount: one(['0', '1', '10.5']) }),
  maxAmount: () => ({ maxAmount: one(['100', '99999999999999999999999.5']) }),
  currency: () => ({ currency: one([['USDC'], ['EUR'], ['USDC', 'EUR'], ['odd-coin'], ['USDC-BASE']]) }),
  paymentCurrency: () => ({ paymentCurrency: one([['DAI'], ['USDC', 'ETH']]) }),
  invoiceCurrency: () => ({ invoiceCurrency: one([['USD'], ['USDC'], ['POINTS', 'EUR']]) }),
  status: () => ({ status: some(paymentStatuses) }),
  type: () => ({ type: some(paymentTypes) }),
  payer: () => ({ payer: some(PAYERS) }),
  payee: () => ({ payee: some(PAYEES) }),
  walletAddress: () => ({ walletAddress: some([...PAYEES, ...PAYERS]) }),
  txHash: () => ({ txHash: [hash(7), hash(8), hash(30)] }),
  requestId: () => ({ requestId: some(REQUEST_IDS) }),
  paymentReference: () => ({ paymentReference: some(PAYMENT_REFERENCES) }),
  reference: () => ({ reference: some(REFERENCES) }),
  network: () => ({ network: some(['BASE', 'POLYGON', 'ARBITRUM', 'OLDNET', 'SOURCEONLY']) }),
  q: () => ({ q: one([hash(7), ...PAYEES, ...REQUEST_IDS, ...REFERENCES]) }),
}

/** No filter, each by itself, and any two or three. */
function inputs(): SearchInput[] {
  const names = Object.keys(filters)
  const several = Array.from({ length: 40 }, () => [one(names), one(names), one(names)])
  return [[], ...names.map((name) => [name]), ...several].map((chosen) =>
    Object.assign({}, ...chosen.map((name) => filters[name]?.())),
  )
}

async function walk(input: SearchInput): Promise<string[]> {
  const ids: string[] = []
  let page = await search.search(account, { ...input, sortOrder: 'asc', limit: 100 })
  for (;;) {
    ids.push(...page.payments.map(({ id }) => id))
    const { nextCursor } = page.pagination
    if (nextCursor === undefined) return ids
    page = await search.search(account, { cursor: nextCursor })
  }
}

function worthOf(ids: readonly string[]): { amountInUsd: string; countWithoutUsd: number } {
  const amounts = ids.flatMap((id) => parseDecimal(everything.get(id)?.amountInUsd ?? '') ?? [])
  const sum = amounts.reduce<Decimal>(addDecimals, { units: 0n, places: 0 })
  return { amountInUsd: formatDecimal(sum), countWithoutUsd: ids.length - amounts.length }
}

test.each(inputs().map((input) => [JSON.stringify(input), input] as const))('%s', async (_, input) => {
  const parseFilter: PaymentSearch['parseFilter'] = (...asked) => search.parseFilter(...asked)
  const ids = await walk(input)

  for (const includeTotal of ['exact', 'estimated'] as const) {
    const { total } = (await search.search(account, { ...input, includeTotal, limit: 1 })).pagination
    expect(total).toEqual({ count: ids.length, relation: 'EXACT' })
  }

  const exported: string[] = []
  for await (const page of createExportPages({ knex: database.knex, parseFilter, pageRows: 70 })(account, input)) {
    exported.push(...page.map(({ id }) => id))
  }
  expect(exported).toEqual(ids)

  const summarize = createSummarizePayments({ knex: database.knex, parseFilter })
  const sums = { count: ids.length, ...worthOf(ids) }
  const groupBy = [one(groupNames.slice(0, 4)), one(groupNames.slice(4))]
  const { groups, ...whole } = await summarize(account, { ...input, groupBy, top: 2 })
  expect(whole).toEqual(sums)
  expect(groups.reduce((count, group) => count + group.count, 0)).toBe(ids.length)
})

test('the inputs are told apart: most match something, and none is the same as no filter', async () => {
  const counts = await Promise.all(Object.values(filters).map(async (make) => (await walk(make())).length))
  expect(counts.filter((count) => count > 0 && count < everything.size).length).toBeGreaterThanOrEqual(
    counts.length - 1,
  )
})
