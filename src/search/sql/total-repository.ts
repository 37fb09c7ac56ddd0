import type { Knex } from 'knex'
import { type ExplainRow, type PlanNode, planOf } from '../../postgres/planned-rows.ts'
import { allOf, raw, readRows, type Statement, timeText } from '../../postgres/statement.ts'
import { givenFilters, type PaymentFilter } from '../filter/payment-filter.ts'
import type { FilterName } from '../filter/search-fields.ts'
import { filterFields } from '../filter/search-fields.ts'
import { accountIs, columnsOf, conditionsOf, matchCondition } from './filter-conditions.ts'

/** What the statistics of an account say about the number of matches. */
export interface StatisticsCount {
  readonly atLeast: number
  /** Equal to `atLeast` where the statistics know the number exactly. */
  readonly atMost: number
  /** Assumes that payments are spread evenly over time. Undefined where the filter asks for what the statistics do not hold. */
  readonly likely: number | undefined
}

/** What PostgreSQL's planner expects of counting the matches. */
export interface PlannedCount {
  readonly matches: number
  /** Of counting up to the cap, in the planner's units: about 100 to the millisecond. */
  readonly cost: number
}

export type TotalRepository = ReturnType<typeof createTotalRepository>

/** Makes what counts the payments of one account that match a filter. */
export function createTotalRepository(knex: Knex) {
  return {
    /** Sums the statistics, which are exact in every transaction. Reads at most some thousand rows. */
    async countByStatistics(filter: PaymentFilter, signal?: AbortSignal): Promise<StatisticsCount> {
      const [row] = await readRows<StatisticsCountRow>(knex, statisticsCountStatement(filter), signal)
      const [atLeast, atMost, likely] = [Number(row?.at_least), Number(row?.at_most), Number(row?.likely)]
      const isCovered = givenFilters(filter).every((name) => isDate(name) || isHeld(filter, name))
      return isCovered ? { atLeast, atMost, likely } : { atLeast: 0, atMost, likely: undefined }
    },
    /** Counts the matches themselves, up to `cap`. */
    async countRows(filter: PaymentFilter, cap: number, signal?: AbortSignal): Promise<number> {
      const [row] = await readRows<{ count: bigint }>(knex, countStatement(filter, cap), signal)
      return Number(row?.count ?? 0n)
    },
    /** Asks PostgreSQL's planner; reads no payments. */
    async planCount(filter: PaymentFilter, cap: number, signal?: AbortSignal): Promise<PlannedCount> {
      const explain = raw('explain (format json) ?', [countStatement(filter, cap)])
      const [row] = await readRows<ExplainRow>(knex, explain, signal)
      const plan = planOf(row)
      return { matches: uncappedRows(plan), cost: plan?.['Total Cost'] ?? 0 }
    },
  }
}

/** `select count(*) as count from (select 1 from payments where … limit 10001) as matches` */
export function countStatement(filter: PaymentFilter, cap: number): Statement {
  const conditions = [accountIs(filter.accountId), ...conditionsOf(filter, filterFields)]
  return raw('select count(*) as count from (select 1 from payments where ? limit ?) as matches', [
    allOf(conditions),
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

interface StatisticsCountRow {
  readonly at_least: string
  readonly at_most: string
  readonly likely: string
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
