import { directionOf } from '../page/page-query.ts'
import { MONTH_MS, monthsShape } from './plan-months.ts'
import { amountParts, type CellParts, cellParts, hasResidual, statusParts } from './plan-parts.ts'
import { boundedWalk, gathers, sliced, walk } from './plan-shapes.ts'
import {
  amounts,
  BRANCH_COST,
  boundsLeft,
  clamp,
  dates,
  gapBefore,
  hasAny,
  isOneOf,
  MARGIN,
  MARGIN_OF_CELLS,
  ranksOf,
  type Terms,
} from './plan-terms.ts'
import type { Plan, Shape, WalkPart } from './search-plan.ts'

/**
 * Plans by date or by status, of all payments of the account. What can be tried: a walk of the whole account with a limit, walks of the
 * matching cells, gathers of what matches, and a gather or months of the amount range; the cheapest expected comes first.
 *
 * @example everything by date: walk payments_date
 * @example network GNOSIS: walk up to 400 entries of payments_status; walk the cells of GNOSIS
 */
export function planByTime(terms: Terms): Plan {
  const { thresholds, query, statistics, estimate, given } = terms
  if (query.sortBy === 'date' && given.every((name) => isOneOf(dates, name))) {
    const within = boundsLeft(terms, dates)
    const part: WalkPart = {
      index: 'payments_date',
      within,
      order: 'time',
      residual: [],
      fixedKeys: 0,
      startsAtPosition: true,
    }
    return [walk([part])]
  }
  const parts = statusParts(terms)
  const exact = walk(parts)
  const inDates = statistics.n * estimate.ofStatus * estimate.ofDates
  if (!hasResidual(parts) || inDates <= thresholds.smallAccount) return [exact]
  if (estimate.ofAmounts === undefined) return [...planOfUnknownAmounts(terms, parts), exact]
  const expected = expectedEntries(terms)
  const cells = cellParts(terms)
  const expectedInCells = query.rows / Math.max(estimate.inCells * estimate.ofAmounts, 1e-6)
  const costOfCells =
    cells === undefined ? Number.POSITIVE_INFINITY : BRANCH_COST * estimate.cells.length + expectedInCells
  const shapes = inOrderOfCost(terms, {
    expected,
    costOfCells,
    walked: boundedWalk(terms, parts, clamp(MARGIN * expected, thresholds.walk, thresholds.maxWalk)),
    ofCells: cells === undefined ? [] : walksOfCells(terms, cells, expectedInCells),
  })
  return [...withAmountRange(terms, Math.min(expected, costOfCells), shapes), exact]
}

interface TimeShapes {
  /** Entries that the walk of the account is expected to read. */
  readonly expected: number
  readonly costOfCells: number
  readonly walked: Shape
  readonly ofCells: readonly Shape[]
}

function inOrderOfCost(terms: Terms, { expected, costOfCells, walked, ofCells }: TimeShapes): Shape[] {
  const gathered = gathers(terms)
  if (costOfCells < expected) return [...ofCells, ...gathered, walked]
  return expected > terms.thresholds.maxWalk ? [...gathered, walked, ...ofCells] : [walked, ...gathered, ...ofCells]
}

/** Adds the shapes that read the amount range itself, a gather and months, at the place that their cost gives them. */
function withAmountRange(terms: Terms, cost: number, shapes: readonly Shape[]): Shape[] {
  const { estimate, statistics, thresholds, given } = terms
  if (!hasAny(terms, amounts)) return [...shapes]
  const inRange = statistics.n * (estimate.ofAmounts ?? 1)
  const gathered: Shape = {
    kind: 'gather',
    parts: amountParts(terms),
    mayOverlap: false,
    maxEntries: thresholds.gather,
  }
  const ofMonths = monthsShape(terms)
  // the index by month has no other column to filter by
  const isOfRanges = given.every((name) => isOneOf(dates, name) || isOneOf(amounts, name))
  const inMonth = (inRange * MONTH_MS) / Math.max(statistics.lastMs - statistics.firstMs, MONTH_MS)
  const costOfMonths = ofMonths.length > 0 && isOfRanges ? Math.max(inMonth, BRANCH_COST) : Number.POSITIVE_INFINITY
  if (costOfMonths < Math.min(cost, inRange)) return ofMonths
  if (inRange < Math.min(cost, 0.75 * thresholds.gather)) return [gathered, ...shapes, ...ofMonths]
  const turn = inRange < 2 * thresholds.gather ? 1 : shapes.length
  return [...shapes.slice(0, turn), gathered, ...shapes.slice(turn), ...ofMonths]
}

/** Where the selectivity of the amount range is unknown: walks and gathers in turn, each with a larger limit than the one before. */
function planOfUnknownAmounts(terms: Terms, parts: readonly WalkPart[]): Shape[] {
  const { thresholds } = terms
  const expected = expectedEntries(terms)
  const ofRange = (maxEntries: number): Shape => ({
    kind: 'gather',
    parts: amountParts(terms),
    mayOverlap: false,
    maxEntries,
  })
  const upTo = (entries: number) => boundedWalk(terms, parts, clamp(entries, thresholds.walk, thresholds.maxWalk))
  return [
    ofRange(thresholds.probe),
    upTo(MARGIN * expected),
    ofRange(thresholds.gather),
    upTo(MARGIN * MARGIN * expected),
    ...monthsShape(terms),
  ]
}

/** Matches may be sparser in some cells than in others, so a walk that was too short is tried once more with a larger limit. */
function walksOfCells(terms: Terms, { parts, mayOverlap }: CellParts, expected: number): Shape[] {
  const { walk: least, maxWalk } = terms.thresholds
  if (!hasResidual(parts)) return [...sliced(terms, parts, mayOverlap), walk(parts, mayOverlap)]
  const short = clamp(MARGIN_OF_CELLS * expected, least, maxWalk)
  const long = clamp(MARGIN * short, least, maxWalk)
  return (short < long ? [short, long] : [short]).map((entries) => boundedWalk(terms, parts, entries, mayOverlap))
}

/** How many entries a walk by date or by status is expected to read until the page is full. */
function expectedEntries(terms: Terms): number {
  const { query, statistics, estimate } = terms
  const density = Math.max(estimate.ofSmall * (estimate.ofAmounts ?? 1), 1e-9)
  if (query.sortBy === 'date') return query.rows / density + gapBefore(terms) * statistics.n * estimate.ofStatus
  const ranks = directionOf(query) === 'asc' ? ranksOf(query.filter) : ranksOf(query.filter).toReversed()
  const from = query.position === undefined ? 0 : ranks.indexOf(Number(query.position.keys[0]))
  let [entries, rows] = [0, 0]
  for (const rank of ranks.slice(Math.max(0, from))) {
    if (rows >= query.rows) break
    const n = (statistics.nOfStatus.get(rank) ?? 0) * estimate.ofDates
    entries += Math.min(n, (query.rows - rows) / density)
    rows += n * density
  }
  return entries
}
