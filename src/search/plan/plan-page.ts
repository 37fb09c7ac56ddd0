import { amountBasis } from '../filter/payment-filter.ts'
import type { AccountStatistics } from '../sql/account-statistics-repository.ts'
import type { PageQuery } from '../sql/payment-query.ts'
import { directionOf } from '../sql/shapes/shape-query.ts'
import { countOf, currencyFields } from './estimate-matches.ts'
import { namingFields, planNamed } from './plan-named.ts'
import { amountParts, bounded, cellParts, hasResidual, invoicePart, sliced, statusParts, walk } from './plan-parts.ts'
import {
  amounts,
  BRANCH_COST,
  boundsLeft,
  clamp,
  DEFAULT_THRESHOLDS,
  dates,
  gapBefore,
  hasAny,
  isOneOf,
  MARGIN,
  MARGIN_OF_CELLS,
  type PlanThresholds,
  ranksOf,
  readText,
  type Terms,
  termsOf,
} from './plan-terms.ts'
import type { FieldName, Part, Plan, Shape, WalkPart } from './search-plan.ts'

/**
 * Chooses how to read a page.
 *
 * @returns the shapes to try, the cheapest first; the last one is whole whatever it costs
 */
export function planPage(
  query: PageQuery,
  statistics: AccountStatistics,
  thresholds: PlanThresholds = DEFAULT_THRESHOLDS,
): Plan {
  const terms = termsOf(query, statistics, thresholds)
  const plan = shapesFor(terms)
  return plan.slice(0, plan.findIndex(isWhole) + 1)
}

/** Whether a shape gives the whole page whatever there is. */
function isWhole(shape: Shape): boolean {
  switch (shape.kind) {
    case 'walk':
      return shape.parts.every(({ entries }) => entries === undefined)
    case 'gather':
      return shape.most === undefined
    case 'slices':
    case 'months':
    case 'plain':
      return true
  }
}

function shapesFor(terms: Terms): Plan {
  const { query } = terms
  if (terms.given.includes('q')) return [{ kind: 'plain' }]
  if (terms.given.includes('txHash')) return planTransactions(terms)
  if (hasAny(terms, namingFields)) return planNamed(terms)
  return query.sortBy === 'amount' ? planByAmount(terms) : planByTime(terms)
}

/** Whether the plan depends on statistics: they are not read where it does not. */
export function needsStatistics({ filter, sortBy }: PageQuery): boolean {
  const readable = readText(filter)
  const has = (names: readonly FieldName[]) => names.some((name) => readable[name] !== undefined)
  if (has(['txHash', 'q'])) return false
  // of payments that are named twice over, one name's are walked status by status, in proportion
  if (namingFields.filter((name) => readable[name] !== undefined).length > 1) return true
  if (has(['network', 'type', ...currencyFields, ...amounts])) return true
  return sortBy === 'amount' && has(['status', ...dates])
}

/** What a transaction has is gathered. */
function planTransactions({ given, thresholds }: Terms): Plan {
  const part: Part = {
    index: 'payments_account_id_tx_hash_event_index_network_key, payments_source_tx',
    order: 'none',
    within: ['txHash'],
    residual: given.filter((name) => name !== 'txHash'),
  }
  return [
    { kind: 'gather', parts: [part], overlap: false, most: thresholds.gatherRows },
    { kind: 'gather', parts: [part], overlap: false },
  ]
}

/** By date or by status, of all payments of the account. */
function planByTime(terms: Terms): Plan {
  const { thresholds, query, statistics, estimate, given } = terms
  if (query.sortBy === 'date' && given.every((name) => isOneOf(dates, name))) {
    const within = boundsLeft(terms, dates)
    return [walk([{ index: 'payments_date', within, order: 'time', residual: [], fixedKeys: 0, after: true }])]
  }
  const parts = statusParts(terms)
  const exact = walk(parts)
  const ofTime = statistics.n * estimate.ofStatus * estimate.ofDates
  if (!hasResidual(parts) || ofTime <= thresholds.small) return [exact]
  if (estimate.ofAmounts === undefined) return [...planOfUnknownAmounts(terms, parts), exact]
  const expected = expectedEntries(terms)
  const walked = bounded(terms, parts, clamp(MARGIN * expected, thresholds.walk, thresholds.longestWalk))
  const cells = cellParts(terms)
  const inCells = query.rows / Math.max(estimate.inCells * estimate.ofAmounts, 1e-6)
  const costOfCells = cells === undefined ? Number.POSITIVE_INFINITY : BRANCH_COST * estimate.cells.length + inCells
  const ofCells = cells === undefined ? [] : walksOfCells(terms, cells, inCells)
  const gathered = gathers(terms)
  const turns = (): Shape[] => {
    if (costOfCells < expected) return [...ofCells, ...gathered, walked]
    return expected > thresholds.longestWalk ? [...gathered, walked, ...ofCells] : [walked, ...gathered, ...ofCells]
  }
  return [...withRange(terms, Math.min(expected, costOfCells), turns()), exact]
}

/** Where the plan is for a range of amounts, the range itself is gathered, or walked month by month, in its turn. */
function withRange(terms: Terms, cost: number, turns: readonly Shape[]): Shape[] {
  const { estimate, statistics, thresholds, given } = terms
  if (!hasAny(terms, amounts)) return [...turns]
  const inRange = statistics.n * (estimate.ofAmounts ?? 1)
  const gathered: Shape = { kind: 'gather', parts: amountParts(terms), overlap: false, most: thresholds.gather }
  const ofMonths = months(terms)
  // the index of months has nothing else that is asked
  const isOfRanges = given.every((name) => isOneOf(dates, name) || isOneOf(amounts, name))
  const inMonth = (inRange * MONTH_MS) / Math.max(statistics.lastMs - statistics.firstMs, MONTH_MS)
  const costOfMonths = ofMonths.length > 0 && isOfRanges ? Math.max(inMonth, BRANCH_COST) : Number.POSITIVE_INFINITY
  if (costOfMonths < Math.min(cost, inRange)) return ofMonths
  if (inRange < Math.min(cost, 0.75 * thresholds.gather)) return [gathered, ...turns, ...ofMonths]
  const turn = inRange < 2 * thresholds.gather ? 1 : turns.length
  return [...turns.slice(0, turn), gathered, ...turns.slice(turn), ...ofMonths]
}

/** Amounts that nothing is known of: walks and gathers take turns, each longer than the one before. */
function planOfUnknownAmounts(terms: Terms, parts: readonly WalkPart[]): Shape[] {
  const { thresholds } = terms
  const expected = expectedEntries(terms)
  const ofRange = (most: number): Shape => ({ kind: 'gather', parts: amountParts(terms), overlap: false, most })
  const upTo = (entries: number) => bounded(terms, parts, clamp(entries, thresholds.walk, thresholds.longestWalk))
  return [
    ofRange(thresholds.probe),
    upTo(MARGIN * expected),
    ofRange(thresholds.gather),
    upTo(MARGIN * MARGIN * expected),
    ...months(terms),
  ]
}

/** In some cells matches lie further apart than elsewhere: what was too short is tried once more. */
function walksOfCells(terms: Terms, { parts, overlap }: NonNullable<ReturnType<typeof cellParts>>, expected: number) {
  const { walk: least, longestWalk } = terms.thresholds
  if (!hasResidual(parts)) return [...sliced(terms, parts, overlap), walk(parts, overlap)]
  const short = clamp(MARGIN_OF_CELLS * expected, least, longestWalk)
  const long = clamp(MARGIN * short, least, longestWalk)
  return (short < long ? [short, long] : [short]).map((entries) => bounded(terms, parts, entries, overlap))
}

/** By amount, of all payments of the account. */
function planByAmount(terms: Terms): Plan {
  const { thresholds, statistics, estimate, query } = terms
  const parts = amountParts(terms)
  const exact = walk(parts)
  if (!hasResidual(parts) || statistics.n <= thresholds.small) return [exact]
  const share = estimate.ofStatus * estimate.ofSmall * estimate.ofDates
  const expected = query.rows / Math.max(share, 1e-9)
  const gathered = gathers(terms)
  const walked = bounded(terms, parts, clamp(MARGIN * expected, thresholds.walk, thresholds.longestWalk))
  // an entry of a walk costs twice as much as one that is gathered
  const isFew = statistics.n * share <= 2 * expected && gathered.length > 0
  const turns = [
    ...unpricedWalk(terms, parts),
    ...boundedMonths(terms, Math.min(expected, (statistics.n * share) / 2)),
    ...(isFew ? [...gathered, walked] : [walked, ...gathered]),
  ]
  const cells = cellParts(terms)
  // payments of a few cells may all have the amounts that come last
  if (cells === undefined || countOf(estimate.cells) > statistics.n / 4) return [...turns, ...monthWalk(terms), exact]
  return [...turns, { kind: 'gather', ...cells }]
}

/** Where no US dollars of what matches are known, the known ones need not be walked first. */
function unpricedWalk(terms: Terms, parts: readonly WalkPart[]): Shape[] {
  const { estimate, statistics, thresholds, query, filter } = terms
  const { cells, inCells } = estimate
  const isAtUnknown = query.position === undefined || query.position.keys[0] === null
  const isUnpriced = cells.length > 0 && filter.network === undefined && cells.every(({ priced }) => !priced)
  if (!isUnpriced || !isAtUnknown || hasAny(terms, amounts) || amountBasis(filter) !== 'amountInUsd') return []
  const { known, n } = statistics.sample
  const unknown = (statistics.n * (n - known.length + 0.5)) / (n + 0.5)
  const expected = (query.rows * unknown) / Math.max(1, countOf(cells) * inCells * estimate.ofDates)
  const unknownOnly = parts.map((part) => ({ ...part, unknownOnly: true as const }))
  return [bounded(terms, unknownOnly, clamp(MARGIN * expected, thresholds.walk, thresholds.longestWalk))]
}

/** By US dollars in the months of a range of dates, where that is expected to cost less than something else. */
function boundedMonths(terms: Terms, cost: number): Shape[] {
  const { estimate, thresholds, query, filter } = terms
  const { fromDate = 0, toDate = 0 } = filter
  const parts = monthParts(terms, ['status', 'network'])
  const months = parts.reduce((n, { branches }) => n + branches.tuples.length, 0)
  const ofMonths = (toDate - fromDate) / Math.max(1, months * MONTH_MS)
  const expected = query.rows / Math.max(estimate.ofStatus * estimate.ofSmall * ofMonths, 1e-9)
  if (months === 0 || expected + BRANCH_COST * months >= cost || expected > thresholds.longestWalk) return []
  return [bounded(terms, parts, clamp(2 * expected, thresholds.walk, thresholds.longestWalk))]
}

/** What can be read whole and sorted: an amount range, cells, invoices, or a stretch of time. The fewest expected first. */
function gathers(terms: Terms): Shape[] {
  const { thresholds, statistics, estimate } = terms
  const most = thresholds.gather
  const found: { n: number; shape: Shape }[] = []
  const add = (n: number, parts: readonly Part[], overlap = false) => {
    if (n <= most) found.push({ n, shape: { kind: 'gather', parts, overlap, most } })
  }
  add(statistics.n * estimate.ofStatus * estimate.ofDates, statusParts(terms))
  const cells = cellParts(terms)
  if (cells !== undefined) {
    add(countOf(estimate.cells) * estimate.ofDates + BRANCH_COST * estimate.cells.length, cells.parts, cells.overlap)
  }
  const invoices = invoicePart(terms)
  if (invoices !== undefined) add(invoices.n, [invoices.part])
  return found.toSorted((one, other) => one.n - other.n).map(({ shape }) => shape)
}

/** How many entries a walk by date or status is expected to read until the page is full. */
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

const MONTH_MS = 30 * 86_400_000
const FIRST_MONTH_MS = Date.UTC(2000, 0, 1)

/** The months of a range of dates that is given whole and is not too long. */
function monthsOf({ filter, thresholds, query }: Terms): number[] {
  const { fromDate, toDate } = filter
  if (fromDate === undefined || toDate === undefined) return []
  const first = Math.floor((fromDate - FIRST_MONTH_MS) / MONTH_MS)
  const last = Math.floor((toDate - FIRST_MONTH_MS) / MONTH_MS)
  if (last - first + 1 > thresholds.branches) return []
  const starts = Array.from({ length: last - first + 1 }, (_, nth) => FIRST_MONTH_MS + (first + nth) * MONTH_MS)
  return directionOf(query) === 'asc' ? starts : starts.toReversed()
}

function months(terms: Terms): Shape[] {
  const isUsdByDate = terms.query.sortBy === 'date' && amountBasis(terms.filter) === 'amountInUsd'
  const starts = isUsdByDate ? monthsOf(terms) : []
  return starts.length === 0 ? [] : [{ kind: 'months', months: starts }]
}

/** By US dollars within months, whole. */
function monthWalk(terms: Terms): Shape[] {
  const parts = monthParts(terms, [])
  return parts.length === 0 ? [] : [walk(parts)]
}

/** Walks by US dollars of the months of a range of dates, where nothing is asked beside that the index does not have. */
function monthParts(terms: Terms, others: readonly FieldName[]) {
  const isCovered = terms.given.every((name) => [...dates, ...amounts, ...others].includes(name))
  if (!isCovered || amountBasis(terms.filter) !== 'amountInUsd') return []
  const tuples = monthsOf(terms).map((ms) => [new Date(ms).toISOString()])
  if (tuples.length === 0) return []
  const branches = { columns: ['month' as const], tuples }
  return amountParts(terms).map((part) => ({ ...part, index: 'payments_month_usd', branches }))
}
