import type { Knex } from 'knex'
import { type IncludeTotal, MAX_CHEAP_COUNT, MAX_COUNT, MAX_EXACT_COUNT, type Total } from '../../domain/pages/total.ts'
import { type ExplainRow, type PlanNode, planOf } from '../../postgres/planned-rows.ts'
import { allOf, raw, readRows, type Statement, timeText } from '../../postgres/statement.ts'
import { givenFilters, type PaymentFilter } from '../filter/payment-filter.ts'
import type { FilterName } from '../filter/search-fields.ts'
import { accountIs, columnsOf, matchCondition, storedCondition } from './filter-conditions.ts'

/** What the statistics of an account say about the number of matches. */
interface StatisticsCount {
  readonly atLeast: number
  /** Equal to `atLeast` where the statistics know the number exactly. */
  readonly atMost: number
  /** Assumes that payments are spread evenly over time. Undefined where the filter asks for what the statistics do not hold. */
  readonly likely: number | undefined
}

/** Counting is cheap at this planner's cost, of some 50 ms. */
const MAX_CHEAP_COST = 5_000

/** A count that was expected to be cheap is cancelled after this long. */
const CHEAP_COUNT_TIMEOUT_MS = 300

/**
 * Counts the matches as exactly as `includeTotal` demands; undefined for `none`. Where the statistics know the number, it is exact at any
 * size, even for `estimated`.
 */
export async function countMatches(
  knex: Knex,
  filter: PaymentFilter,
  includeTotal: IncludeTotal,
  signal: AbortSignal | undefined,
): Promise<Total | undefined> {
  if (includeTotal === 'none') return undefined
  const known = await countByStatistics(knex, filter, signal)
  const { atLeast, atMost } = known
  if (atLeast === atMost) return { count: Math.min(atMost, MAX_COUNT), relation: 'EXACT' }
  if (includeTotal === 'estimated') return estimate(knex, filter, known, signal)
  const count = atLeast > MAX_EXACT_COUNT ? atLeast : await countRows(knex, filter, MAX_EXACT_COUNT, signal)
  return count > MAX_EXACT_COUNT ? { count: MAX_EXACT_COUNT, relation: 'AT_LEAST' } : { count, relation: 'EXACT' }
}

async function estimate(
  knex: Knex,
  filter: PaymentFilter,
  { atLeast, atMost, likely }: StatisticsCount,
  signal: AbortSignal | undefined,
): Promise<Total> {
  const planned = await planCount(knex, filter, signal)
  const isCheap = atLeast <= MAX_CHEAP_COUNT && planned.cost <= MAX_CHEAP_COST
  const count = isCheap ? await countCheaply(knex, filter, signal) : undefined
  if (count !== undefined && count <= MAX_CHEAP_COUNT) return { count, relation: 'EXACT' }
  const expected = Math.min(Math.round(likely ?? planned.matches), atMost)
  return { count: Math.min(Math.max(expected, atLeast, count ?? 0), MAX_COUNT), relation: 'ESTIMATED' }
}

/** Undefined where it took too long. */
async function countCheaply(knex: Knex, filter: PaymentFilter, signal: AbortSignal | undefined) {
  const tooLong = AbortSignal.timeout(CHEAP_COUNT_TIMEOUT_MS)
  try {
    return await countRows(knex, filter, MAX_CHEAP_COUNT, signal ? AbortSignal.any([signal, tooLong]) : tooLong)
  } catch (error) {
    if (error === tooLong.reason && tooLong.aborted) return undefined
    throw error
  }
}

/** Sums the statistics, which are exact in every transaction. Reads at most some thousand rows. */
async function countByStatistics(
  knex: Knex,
  filter: PaymentFilter,
  signal: AbortSignal | undefined,
): Promise<StatisticsCount> {
  const [row] = await readRows<Record<'at_least' | 'at_most' | 'likely', string>>(
    knex,
    statisticsCountStatement(filter),
    signal,
  )
  const [atLeast, atMost, likely] = [Number(row?.at_least), Number(row?.at_most), Number(row?.likely)]
  const isCovered = givenFilters(filter).every((name) => isDate(name) || isHeld(filter, name))
  return isCovered ? { atLeast, atMost, likely } : { atLeast: 0, atMost, likely: undefined }
}

/** Counts the matches themselves, up to one more than `most`. */
async function countRows(knex: Knex, filter: PaymentFilter, most: number, signal: AbortSignal | undefined) {
  const [row] = await readRows<{ count: bigint }>(knex, countStatement(filter, most + 1), signal)
  return Number(row?.count ?? 0n)
}

/** What PostgreSQL's planner expects of a cheap count; reads no payments. Costs are in its units: about 100 to the millisecond. */
async function planCount(knex: Knex, filter: PaymentFilter, signal: AbortSignal | undefined) {
  const explain = raw('explain (format json) ?', [countStatement(filter, MAX_CHEAP_COUNT + 1)])
  const [row] = await readRows<ExplainRow>(knex, explain, signal)
  const plan = planOf(row)
  return { matches: uncappedRows(plan), cost: plan?.['Total Cost'] ?? 0 }
}

/** `select count(*) as count from (select 1 from payments where … limit 10001) as matches` */
export function countStatement(filter: PaymentFilter, cap: number): Statement {
  return raw('select count(*) as count from (select 1 from payments where ? limit ?) as matches', [
    allOf([accountIs(filter.accountId), storedCondition(filter)]),
    cap,
  ])
}

/** The columns of payments that the statistics have. */
const STATISTICS_COLUMNS: ReadonlySet<string> = new Set([
  'network',
  'source_network',
  'currency',
  'currency_symbol',
  'invoice_currency',
  'type',
  'status',
])

/** Whether the statistics have all columns that a filter asks for. */
function isHeld(filter: PaymentFilter, name: FilterName): boolean {
  return columnsOf(filter, [name]).every((column) => STATISTICS_COLUMNS.has(column))
}

/**
 * Sums the combinations that match: those whose payments all lie within the dates, and those whose time overlaps them. The times of a
 * combination bound all its payments, so what lies within is counted exactly. A date that is absent is null, which `least` and `greatest` ignore:
 * where nothing can match, Citus plans the statement on nulls, and PostgreSQL below 17 subtracts no infinite times.
 */
function statisticsCountStatement(filter: PaymentFilter): Statement {
  const held = Object.fromEntries(
    givenFilters(filter).flatMap((name) => (isHeld(filter, name) ? [[name, filter[name]]] : [])),
  )
  const { accountId, fromDate, toDate } = filter
  return raw(
    `select coalesce(sum(n) filter (where first_at >= coalesce(from_at, first_at) and last_at <= coalesce(to_at, last_at)), 0)::text as at_least,
  coalesce(sum(n), 0)::text as at_most,
  coalesce(sum(n * case when first_at = last_at then 1 else
    extract(epoch from least(last_at, to_at) - greatest(first_at, from_at)) / extract(epoch from last_at - first_at) end), 0)::text as likely
from payment_statistics, (select :from::timestamptz as from_at, :to::timestamptz as to_at) as range
where account_id = :accountId and n > 0 and last_at >= coalesce(from_at, last_at) and first_at <= coalesce(to_at, first_at) and :matches`,
    {
      from: fromDate === undefined ? null : timeText(fromDate),
      to: toDate === undefined ? null : timeText(toDate),
      accountId,
      matches: matchCondition({ ...held, accountId }),
    },
  )
}

function isDate(name: FilterName): boolean {
  return name === 'fromDate' || name === 'toDate'
}

/** The rows that the planner expects below the limit. */
function uncappedRows(plan: PlanNode | undefined): number {
  if (plan === undefined) return 0
  const [child] = plan.Plans ?? []
  if (plan['Node Type'] === 'Limit') return child?.['Plan Rows'] ?? plan['Plan Rows']
  return uncappedRows(child)
}
