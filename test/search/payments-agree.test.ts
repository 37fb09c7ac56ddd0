import { afterAll, beforeAll, expect, test } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import { addDecimals, type Decimal, formatDecimal, parseDecimal } from '../../src/domain/decimal.ts'
import { type Payment, paymentStatuses, paymentTypes } from '../../src/domain/payment.ts'
import { createExportPages, type ExportedPayment } from '../../src/search/export/export-payments.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import type { FilterName } from '../../src/search/filter/search-fields.ts'
import type { PaymentSearch } from '../../src/search/page/payment-search.ts'
import type { GroupName } from '../../src/search/sql/read-summary.ts'
import { createSummarizePayments, type SummaryGroup } from '../../src/search/totals/summarize-payments.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  generatePayments,
  hash,
  insertPayments,
  PAYEES,
  PAYERS,
  PAYMENT_REFERENCES,
  REFERENCES,
  REQUEST_IDS,
  START,
} from '../support/data/search-payments.ts'
import { changePayments } from '../support/data/write-payments.ts'
import { applyMessage, searchAll, startWatchProcess, type WatchProcess } from './watching.ts'

// For every filter, pages, totals, summaries, exports and watches agree on the payments.

const account = { id: 1, name: 'one' }
let database: TestDatabase
let process: WatchProcess
let search: PaymentSearch
/** A cursor from before the first change. */
let beginning: string
/** The cursor of the last change. */
let end: string
let everything: ReadonlyMap<string, Payment>

/** A thousand payments; about a tenth of them was changed afterwards so that other filters match, and some were deleted. */
beforeAll(async () => {
  database = await createTestDatabase()
  // Beats after every batch without an event: the way to the end of the log has heartbeats too.
  process = startWatchProcess(database, { heartbeatMs: 0 })
  search = process.search
  beginning = (await search.search(account, {})).watchCursor
  const ours = generatePayments(1, 1_000, 31)
  await insertPayments(database.knex, [...ours, ...generatePayments(2, 500, 32)])
  await database.knex.transaction(async (trx) => {
    const locked = await lockAccount(trx, account.id, new Date(START + 3_600_000))
    const sql = `update payments set status = status % 5 + 1, amount_in_usd = nullif(event_index % 7, 0), reference = 'INV-1'
      where account_id = ? and id::text like '3%'`
    await changePayments(locked, { sql, bindings: [account.id] })
    const gone = `delete from payments where account_id = ? and id::text like '5%'`
    await changePayments(locked, { sql: gone, bindings: [account.id] })
  })
  end = (await search.search(account, {})).watchCursor
  everything = await searchAll(process, account, {})
  const kept = ours.filter(({ payment }) => !payment.id.startsWith('5'))
  expect([...everything.keys()].toSorted()).toEqual(kept.map(({ payment }) => payment.id).toSorted())
})

afterAll(async () => {
  await process.stop()
  await database.drop()
})

const random = seededRandom(2026)
const one = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T
const some = <T>(values: readonly T[]): T[] => [one(values), one(values)]

/** Some values for each filter. */
const filters: Readonly<Record<FilterName, () => SearchInput>> = {
  fromDate: () => ({ fromDate: one(['2026-03-01', '2026-03-03T12:00:00Z', '2026-03-15']) }),
  toDate: () => ({ toDate: one(['2026-03-16', '2026-03-17T00:00:00+05:45', '2027-01-01']) }),
  changedFrom: () => ({ changedFrom: one(['2026-03-01T00:30:00Z', '2026-03-01T01:00:00Z']) }),
  changedTo: () => ({ changedTo: one(['2026-03-01T00:30:00Z', '2026-03-01T00:59:59.999Z']) }),
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
  sourceNetwork: () => ({ sourceNetwork: some(['BASE', 'ARBITRUM', 'SOURCEONLY']) }),
  destinationNetwork: () => ({ destinationNetwork: some(['BASE', 'POLYGON', 'OLDNET', 'TRON']) }),
  referencePrefix: () => ({ referencePrefix: one(['INV-', 'in', REFERENCES[0]?.slice(0, 3) ?? '']) }),
  metadata: () => ({ metadata: one([['channel=web'], ['channel=pos', 'order=5'], ['channel=web', 'channel=pos']]) }),
  'exclude.status': () => ({ 'exclude.status': some(paymentStatuses) }),
  'exclude.type': () => ({ 'exclude.type': some(paymentTypes) }),
  'exclude.network': () => ({ 'exclude.network': some(['BASE', 'POLYGON', 'ARBITRUM', 'OLDNET', 'SOURCEONLY']) }),
  'exclude.currency': () => ({ 'exclude.currency': one([['USDC'], ['EUR'], ['USDC-BASE', 'USD']]) }),
  'exclude.payer': () => ({ 'exclude.payer': some(PAYERS) }),
  'exclude.payee': () => ({ 'exclude.payee': some(PAYEES) }),
  timeZone: () => ({
    timeZone: one(['Asia/Kolkata', 'America/St_Johns', 'UTC']),
    fromDate: '2026-03-03',
    toDate: '2026-03-16',
  }),
  q: () => ({ q: one([hash(7), ...PAYEES, ...REQUEST_IDS, ...REFERENCES]) }),
}

/** No filter, each filter alone, and random pairs and triples. */
function inputs(): SearchInput[] {
  const names = Object.keys(filters) as FilterName[]
  const several = Array.from({ length: 40 }, () => [one(names), one(names), one(names)])
  return [[], ...names.map((name) => [name]), ...several].map((chosen) =>
    Object.assign({}, ...chosen.map((name) => filters[name]())),
  )
}

async function walk(input: SearchInput): Promise<Payment[]> {
  const payments: Payment[] = []
  let page = await search.search(account, { sortOrder: 'asc', ...input, limit: 100 })
  for (;;) {
    payments.push(...page.payments)
    const { nextCursor } = page.pagination
    if (nextCursor === undefined) return payments
    page = await search.search(account, { cursor: nextCursor })
  }
}

/** The payments that a watch from the beginning ends up with. */
async function watched(input: SearchInput): Promise<Payment[]> {
  const state = new Map<string, Payment>()
  const { signal } = new AbortController()
  for await (const message of process.watch(account, input, { watchCursor: beginning, signal })) {
    if (message.type === 'HEARTBEAT' && message.watchCursor === end) break
    applyMessage(state, message)
  }
  return [...state.values()]
}

const inOrder = (payments: readonly Payment[]) => payments.toSorted((a, b) => (a.id < b.id ? -1 : 1))

/** @param input - payments that are FAILED are summed only where it asks for them alone */
function worthOf(
  payments: readonly Payment[],
  { status = paymentStatuses, 'exclude.status': excluded = [] }: SearchInput,
) {
  const isFailedAlone = status.every((name) => name === 'FAILED' || excluded.includes(name))
  const summed = payments.filter((payment) => isFailedAlone || payment.status !== 'FAILED')
  const amounts = summed.flatMap(({ amountInUsd }) => parseDecimal(amountInUsd ?? '') ?? [])
  const sum = amounts.reduce<Decimal>(addDecimals, { units: 0n, places: 0 })
  return { count: payments.length, amountInUsd: formatDecimal(sum), countWithoutUsd: summed.length - amounts.length }
}

/** The payments for which the gas of their transaction counts: of those with gas the first by event, then by id. */
function gasOwnersOf(payments: readonly Payment[]): readonly Payment[] {
  const withGas = payments.filter(({ gas }) => gas !== undefined)
  const byTransaction = Map.groupBy(withGas, ({ network, txHash, id }) => `${network} ${txHash ?? id}`)
  const place = ({ eventIndex = Number.MAX_SAFE_INTEGER }: Payment) => eventIndex
  const inOrder = (a: Payment, b: Payment) => place(a) - place(b) || (a.id < b.id ? -1 : 1)
  return [...byTransaction.values()].flatMap((of) => of.toSorted(inOrder).slice(0, 1))
}

/** The groupings whose values are fields of a payment. */
const groupings = ['status', 'network', 'currency', 'payer', 'payee'] as const satisfies readonly GroupName[]
type Grouping = (typeof groupings)[number]

const valuesOf = (of: Payment | SummaryGroup, groupBy: readonly Grouping[]) =>
  groupBy.map((name) => of[name] ?? 'unknown').join(' ')

function worthOfGroups(payments: readonly Payment[], groupBy: readonly Grouping[], input: SearchInput) {
  return Object.fromEntries(
    [...Map.groupBy(payments, (payment) => valuesOf(payment, groupBy))].map(([values, of]) => [
      values,
      worthOf(of, input),
    ]),
  )
}

/** That FAILED alone is asked for can be said in several ways. */
const failedAlone: readonly SearchInput[] = [
  { status: ['FAILED'] },
  { 'exclude.status': ['PENDING', 'PARTIAL', 'CONFIRMED', 'REFUNDED'] },
  { status: ['FAILED', 'CONFIRMED'], 'exclude.status': ['CONFIRMED'] },
  { 'exclude.status': [...paymentStatuses] },
]

test.each([...inputs(), ...failedAlone].map((input) => [JSON.stringify(input), input] as const))(
  '%s',
  async (_, input) => {
    const parseFilter: PaymentSearch['parseFilter'] = (...asked) => search.parseFilter(...asked)
    const payments = await walk(input)

    for (const sortBy of ['amount', 'status'] as const) {
      expect(inOrder(await walk({ ...input, sortBy, sortOrder: one(['asc', 'desc']) }))).toEqual(inOrder(payments))
    }

    for (const includeTotal of ['exact', 'estimated'] as const) {
      const { total } = (await search.search(account, { ...input, includeTotal, limit: 1 })).pagination
      expect(total).toEqual({ count: payments.length, relation: 'EXACT' })
    }

    const exported: ExportedPayment[] = []
    for await (const page of createExportPages({ knex: database.knex, parseFilter })(account, input)) {
      exported.push(...page)
    }
    expect(exported.map((payment) => ({ ...payment, gasStandsElsewhere: undefined }))).toEqual(payments)
    const owners = exported.filter(({ gas, gasStandsElsewhere }) => gas !== undefined && gasStandsElsewhere !== true)
    expect(new Set(owners.map(({ id }) => id))).toEqual(new Set(gasOwnersOf(payments).map(({ id }) => id)))

    expect(inOrder(await watched(input))).toEqual(inOrder(payments))

    const summarize = createSummarizePayments({ knex: database.knex, parseFilter })
    const groupBy = [one(groupings.slice(0, 3)), one(groupings.slice(3))] as const
    const { groups, ...whole } = await summarize(account, { ...input, groupBy, top: 100 })
    expect(whole).toEqual({ ...worthOf(payments, input), sums: [] })
    expect(
      Object.fromEntries(
        groups.map((group) => {
          const { count, amountInUsd, countWithoutUsd } = group
          return [valuesOf(group, groupBy), { count, amountInUsd, countWithoutUsd }]
        }),
      ),
    ).toEqual(worthOfGroups(payments, groupBy, input))
  },
)

test('most filters match some payments, and none matches all', async () => {
  const counts = await Promise.all(Object.values(filters).map(async (make) => (await walk(make())).length))
  expect(counts.filter((count) => count > 0 && count < everything.size).length).toBeGreaterThanOrEqual(
    counts.length - 1,
  )
})
