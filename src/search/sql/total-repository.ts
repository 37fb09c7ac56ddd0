import type { Knex } from 'knex'
import { runPrepared } from '../../postgres/prepared.ts'
import type { FilterValues, PaymentFilter } from '../filter/payment-filter.ts'
import { countStatement, matchCondition, type Statement } from './payment-query.ts'

/** The filters on what the combinations of the statistics are of. */
const held: ReadonlySet<keyof FilterValues> = new Set([
  'currency',
  'paymentCurrency',
  'invoiceCurrency',
  'status',
  'type',
  'network',
])

/** What the statistics of an account say of how many payments match a filter. */
export interface StatedCount {
  /** So many do. */
  readonly least: number
  /** No more do. Equal to `least` where the statistics know it exactly. */
  readonly most: number
  /** So many are likely, if times are spread evenly; undefined where the filter asks what the statistics do not hold. */
  readonly expected: number | undefined
}

/** What the planner of the database says of counting. */
export interface ExpectedCount {
  readonly matches: number
  /** Of counting up to the cap, in the planner's units: some 100 to the millisecond. */
  readonly cost: number
}

/** Counts payments of one account. */
export interface TotalRepository {
  /** Asks the statistics, which are exact in every transaction; at most some thousand rows of them are read. */
  stated(filter: PaymentFilter, signal?: AbortSignal): Promise<StatedCount>
  /** Counts the matches themselves, at most `cap`. */
  counted(filter: PaymentFilter, cap: number, signal?: AbortSignal): Promise<number>
  /** Asks the planner; nothing is read. */
  expected(filter: PaymentFilter, cap: number, signal?: AbortSignal): Promise<ExpectedCount>
}

export function createTotalRepository(knex: Knex): TotalRepository {
  return {
    async stated(filter, signal) {
      const [row] = await runPrepared<StatedRow>(knex, statedStatement(filter), signal)
      const [least, most, expected] = [Number(row?.inside), Number(row?.most), Number(row?.expected)]
      const isWhole = namesOf(filter).every((name) => isBoundOfTime(name) || held.has(name))
      return isWhole ? { least, most, expected } : { least: 0, most, expected: undefined }
    },
    async counted(filter, cap, signal) {
      const [row] = await runPrepared<{ count: bigint }>(knex, countStatement(filter, cap), signal)
      return Number(row?.count ?? 0n)
    },
    async expected(filter, cap, signal) {
      const { sql, bindings } = countStatement(filter, cap)
      const explain = { sql: `explain (format json) ${sql}`, bindings }
      const [row] = await runPrepared<{ 'QUERY PLAN': [{ Plan: Plan }] }>(knex, explain, signal)
      const plan = row?.['QUERY PLAN'][0].Plan
      return { matches: uncappedRows(plan), cost: plan?.['Total Cost'] ?? 0 }
    },
  }
}

interface StatedRow {
  readonly inside: string
  readonly most: string
  readonly expected: string
}

/**
 * Sums what the combinations of the filter hold: of those whose times all lie within the range, and of those whose times overlap it. The
 * times are those between which all payments of the combination lie, so what lies within is exact.
 */
function statedStatement(filter: PaymentFilter): Statement {
  const asked = Object.fromEntries(namesOf(filter).flatMap((name) => (held.has(name) ? [[name, filter[name]]] : [])))
  const condition = matchCondition({ ...asked, accountId: filter.accountId })
  const [from, to] = [filter.fromDate, filter.toDate].map((ms) =>
    ms === undefined ? null : new Date(ms).toISOString(),
  )
  return {
    sql: `select coalesce(sum(n) filter (where first_at >= from_at and last_at <= to_at), 0)::text as inside,
  coalesce(sum(n), 0)::text as most,
  coalesce(sum(n * case when first_at = last_at then 1 else
    extract(epoch from least(last_at, to_at) - greatest(first_at, from_at)) / extract(epoch from last_at - first_at) end), 0)::text as expected
from payment_statistics, (select coalesce(?::timestamptz, '-infinity') as from_at, coalesce(?::timestamptz, 'infinity') as to_at) as range
where account_id = ? and n > 0 and last_at >= from_at and first_at <= to_at and ${condition.sql}`,
    bindings: [from ?? null, to ?? null, filter.accountId, ...condition.bindings],
  }
}

function namesOf(filter: PaymentFilter): (keyof FilterValues)[] {
  const { accountId: _, ...values } = filter
  return Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [name as keyof FilterValues]))
}

function isBoundOfTime(name: keyof FilterValues): boolean {
  return name === 'fromDate' || name === 'toDate'
}

interface Plan {
  readonly 'Node Type': string
  readonly 'Plan Rows': number
  readonly 'Total Cost': number
  readonly Plans?: readonly Plan[]
}

/** What the planner expects beneath the limit. */
function uncappedRows(plan: Plan | undefined): number {
  if (plan === undefined) return 0
  const [child] = plan.Plans ?? []
  if (plan['Node Type'] === 'Limit') return child?.['Plan Rows'] ?? plan['Plan Rows']
  return uncappedRows(child)
}
