import { amountBasis } from '../filter/payment-filter.ts'
import { countOf } from './estimate-matches.ts'
import { monthWalk, walkOfFewMonths } from './plan-months.ts'
import { amountParts, cellParts, hasResidual } from './plan-parts.ts'
import { boundedWalk, gathers, walk } from './plan-shapes.ts'
import { amounts, clamp, hasAny, MARGIN, type Terms } from './plan-terms.ts'
import type { Plan, Shape, WalkPart } from './search-plan.ts'

/**
 * Plans by amount, of all payments of the account. What can be tried: a walk in the order of the amount with a limit, the same within the
 * months of a date range, and gathers of what matches.
 *
 * @example everything by US dollars: walk payments_usd
 * @example network GNOSIS by US dollars: walk up to 400 entries of payments_usd; gather the cells of GNOSIS
 */
export function planByAmount(terms: Terms): Plan {
  const { thresholds, statistics, estimate, query } = terms
  const parts = amountParts(terms)
  const exact = walk(parts)
  if (!hasResidual(parts) || statistics.n <= thresholds.smallAccount) return [exact]
  const share = estimate.ofStatus * estimate.ofSmall * estimate.ofDates
  const expected = query.rows / Math.max(share, 1e-9)
  const gathered = gathers(terms)
  const walked = boundedWalk(terms, parts, clamp(MARGIN * expected, thresholds.walk, thresholds.maxWalk))
  // an entry of a walk costs twice as much as one that is gathered
  const isGatherCheaper = statistics.n * share <= 2 * expected && gathered.length > 0
  const shapes = [
    ...walkOfUnpriced(terms, parts),
    ...walkOfFewMonths(terms, Math.min(expected, (statistics.n * share) / 2)),
    ...(isGatherCheaper ? [...gathered, walked] : [walked, ...gathered]),
  ]
  const cells = cellParts(terms)
  // the amounts of a few cells may all come last in the order, so that a walk would read the whole account; the cells are read instead
  if (cells === undefined || countOf(estimate.cells) > statistics.n / 4) return [...shapes, ...monthWalk(terms), exact]
  return [...shapes, { kind: 'gather', ...cells }]
}

/** Where no matching payment has an amount in US dollars, only the unknown amounts are walked. */
function walkOfUnpriced(terms: Terms, parts: readonly WalkPart[]): Shape[] {
  const { estimate, statistics, thresholds, query, filter } = terms
  const { cells, inCells } = estimate
  const mayStandAtUnknown = query.position === undefined || query.position.keys[0] === null
  const isUnpriced = cells.length > 0 && filter.network === undefined && cells.every(({ priced }) => !priced)
  if (!isUnpriced || !mayStandAtUnknown || hasAny(terms, amounts) || amountBasis(filter) !== 'amountInUsd') return []
  const { known, n } = statistics.sample
  const unknown = (statistics.n * (n - known.length + 0.5)) / (n + 0.5)
  const expected = (query.rows * unknown) / Math.max(1, countOf(cells) * inCells * estimate.ofDates)
  const unknownOnly = parts.map((part) => ({ ...part, unknownOnly: true as const }))
  return [boundedWalk(terms, unknownOnly, clamp(MARGIN * expected, thresholds.walk, thresholds.maxWalk))]
}
