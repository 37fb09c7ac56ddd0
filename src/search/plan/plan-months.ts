import { amountBasis } from '../filter/payment-filter.ts'
import type { FilterName } from '../filter/search-fields.ts'
import { directionOf } from '../page/page-query.ts'
import { amountParts } from './plan-parts.ts'
import { boundedWalk, walk } from './plan-shapes.ts'
import { amounts, BRANCH_COST, clamp, dates, type Terms } from './plan-terms.ts'
import type { BranchColumn, Shape } from './search-plan.ts'

/**
 * Months: the index `payments_month_usd` holds US dollars within months of 30 days, counted from 2000-01-01. It serves a date range that is
 * given whole.
 */

export const MONTH_MS = 30 * 86_400_000
const FIRST_MONTH_MS = Date.UTC(2000, 0, 1)

/** Where the months of the date range begin, in the order of the answer; none where the range is open or has too many. */
function monthsOf({ filter, thresholds, query }: Terms): number[] {
  const { fromDate, toDate } = filter
  if (fromDate === undefined || toDate === undefined) return []
  const first = Math.floor((fromDate - FIRST_MONTH_MS) / MONTH_MS)
  const last = Math.floor((toDate - FIRST_MONTH_MS) / MONTH_MS)
  if (last - first + 1 > thresholds.maxBranches) return []
  const starts = Array.from({ length: last - first + 1 }, (_, nth) => FIRST_MONTH_MS + (first + nth) * MONTH_MS)
  return directionOf(query) === 'asc' ? starts : starts.toReversed()
}

/** A range of US dollars by date, month after month. */
export function monthsShape(terms: Terms): Shape[] {
  const isUsdByDate = terms.query.sortBy === 'date' && amountBasis(terms.filter) === 'amountInUsd'
  const months = isUsdByDate ? monthsOf(terms) : []
  return months.length === 0 ? [] : [{ kind: 'months', months }]
}

/** A date range by US dollars: one branch for each month, without a limit. */
export function monthWalk(terms: Terms): Shape[] {
  const parts = monthParts(terms, [])
  return parts.length === 0 ? [] : [walk(parts)]
}

/** The same with a limit, where it is expected to cost less than `cost`. */
export function walkOfFewMonths(terms: Terms, cost: number): Shape[] {
  const { estimate, thresholds, query, filter } = terms
  const { fromDate = 0, toDate = 0 } = filter
  const parts = monthParts(terms, ['status', 'network'])
  const months = parts.reduce((n, { branches }) => n + branches.tuples.length, 0)
  const shareOfMonths = (toDate - fromDate) / Math.max(1, months * MONTH_MS)
  const expected = query.rows / Math.max(estimate.ofStatus * estimate.ofSmall * shareOfMonths, 1e-9)
  if (months === 0 || expected + BRANCH_COST * months >= cost || expected > thresholds.maxWalk) return []
  return [boundedWalk(terms, parts, clamp(2 * expected, thresholds.walk, thresholds.maxWalk))]
}

/** One branch for each month; none where a filter other than dates, amounts and `others` was given. */
function monthParts(terms: Terms, others: readonly FilterName[]) {
  const isCovered = terms.given.every((name) => [...dates, ...amounts, ...others].includes(name))
  if (!isCovered || amountBasis(terms.filter) !== 'amountInUsd') return []
  const tuples = monthsOf(terms).map((ms) => [new Date(ms).toISOString()])
  if (tuples.length === 0) return []
  const columns: readonly BranchColumn[] = ['month']
  return amountParts(terms).map((part) => ({ ...part, index: 'payments_month_usd', branches: { columns, tuples } }))
}
