import { paymentStatuses, rankOfStatus } from '../../domain/payment.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import type { FilterName } from '../filter/search-fields.ts'
import { directionOf, type PageQuery } from '../query/page-query.ts'
import { columnsOf } from '../sql/filter-conditions.ts'
import { keyColumnsOf } from '../sql/keyset.ts'
import { amountColumnOf, indexes, othersThan, type Part, type Source, sourcesOf } from './sources.ts'

/**
 * A way to read a page from one source.
 *
 * - A walk reads entries in the order of the answer until the page is full.
 * - A gather reads all entries, and sorts what matches.
 */
export interface Way {
  readonly kind: 'walk' | 'gather'
  readonly parts: readonly WayPart[]
  /** The same by an index that has every column needed, so that only the rows of the page are read; undefined where there is none. */
  readonly covering: readonly WayPart[] | undefined
  /** The filters that are checked entry by entry. */
  readonly residual: readonly FilterName[]
}

/** Branches, and how they are bounded. */
export interface WayPart extends Part {
  /** The ranges along the index's order that bound it. */
  readonly within: readonly FilterName[]
}

/** More branches are not merged; each gives a page of its own, and these are sorted. */
const MAX_MERGED = 12

/** All ways to read a page. One that needs no other filter, of few branches, is the only one. */
export function waysOf(query: PageQuery): Way[] {
  const sources = sourcesOf(query)
  const walks = new Map(
    sources.filter((source) => servesOrder(source, query)).map((source) => [source, walkOf(source, query)]),
  )
  const merged = [...walks.values()].filter(({ parts }) => isMerged(parts))
  const whole = merged.find(isWhole)
  if (whole !== undefined) return [whole]
  // a filter's own entries are never more than those of the whole account
  const ofFilter = (way: Way) => way.parts.some(({ columns }) => columns.length > 0)
  const kept = merged.some(ofFilter) ? merged.filter(ofFilter) : merged
  const sorted = [...walks.values()].filter((way) => !isMerged(way.parts) && isWhole(way))
  // a source that can be merged in the order of the answer is not gathered: a walk reads no more of it
  const unordered = sources.filter((source) => !merged.includes(walks.get(source) as Way))
  const gathered = unordered.map((source) => gatherOf(source, query)).filter(isGathered)
  return [...kept, ...sorted, ...gathered]
}

/** Whether no filter is left to check. */
export function isWhole({ kind, residual }: Way): boolean {
  return kind === 'walk' && residual.length === 0
}

/** Whether it is the only way, and so short that its length does not matter: a page without residual filters, or a transaction. */
export function needsNoGuess(way: Way): boolean {
  return (isWhole(way) && isMerged(way.parts)) || way.parts.some(({ filter }) => filter !== undefined)
}

export function isMerged(parts: readonly Part[]): boolean {
  return branchCount(parts) <= MAX_MERGED && parts.every(({ symbols }) => symbols === undefined)
}

export function branchCount(parts: readonly Part[]): number {
  return parts.reduce((sum, { tuples, symbols = [] }) => sum + tuples.length + symbols.length, 0)
}

function servesOrder({ parts }: Source, query: PageQuery): boolean {
  return parts.every(({ index }) => {
    const { order, hasStatus } = indexes[index]
    if (query.sortBy === 'amount') return order === amountColumnOf(query)
    if (query.sortBy === 'changed') return order === 'changed_at'
    return order === 'timestamp' && (query.sortBy === 'date' || hasStatus)
  })
}

/** The whole account is not gathered. */
function isGathered({ parts: [part] }: Way): boolean {
  if (part === undefined) return false
  const isNarrowed = part.columns.length > 0 || part.within.length > 0 || part.filter !== undefined
  // `payments_amount` has the same payments with more columns
  const isDoubled = part.index === 'payments_currency' && part.within.length === 0
  return isNarrowed && !isDoubled
}

function walkOf(source: Source, query: PageQuery): Way {
  return wayOf('walk', source, query, (part) => {
    const branches = indexes[part.index].hasStatus ? withStatuses(part, query) : part
    return [{ ...branches, within: rangesAlong(part, query) }]
  })
}

function gatherOf(source: Source, query: PageQuery): Way {
  return wayOf('gather', source, query, (part) => {
    const { status, fromDate, toDate } = query.filter
    const isBounded = [status, fromDate, toDate].some((given) => given !== undefined)
    const branches = indexes[part.index].hasStatus && isBounded ? withStatuses(part, query) : part
    return [{ ...branches, within: rangesAlong(part, query) }]
  })
}

function wayOf(
  kind: Way['kind'],
  { parts, wider, answers }: Source,
  query: PageQuery,
  branchesOf: (part: Part) => WayPart[],
): Way {
  const branches = parts.flatMap(branchesOf)
  const hasStatus = branches.every(({ columns }) => columns.includes('status'))
  const along = rangesAlong(parts[0] as Part, query)
  const residual = othersThan([...answers, ...along, ...(hasStatus ? (['status'] as const) : [])], query)
  const needed = [...keyColumnsOf(query), ...columnsOf(query.filter, residual)]
  const covering = [parts, wider].find((some) => some?.every((part) => isCovering(part, needed)))
  return { kind, parts: branches, covering: covering === parts ? branches : covering?.flatMap(branchesOf), residual }
}

function isCovering({ index, columns, filter, except }: Part, needed: readonly string[]): boolean {
  const { order, hasStatus, then = [], includes } = indexes[index]
  const known = ['id', order, ...(hasStatus ? ['status'] : []), ...then, ...columns, ...includes]
  return (
    filter === undefined &&
    [...needed, ...(except === undefined ? [] : [except.column])].every((name) => known.includes(name))
  )
}

/** A branch for each status, within which entries are in the order of time. */
function withStatuses(part: Part, { filter, ...query }: PageQuery): Part {
  const ranks = ranksOf(filter)
  const inOrder = query.sortBy === 'status' && directionOf({ filter, ...query }) === 'desc' ? ranks.toReversed() : ranks
  const tuples = part.tuples.flatMap((tuple) => inOrder.map((rank) => [...tuple, rank]))
  return { ...part, columns: [...part.columns, 'status'], tuples }
}

function ranksOf({ status = paymentStatuses }: PaymentFilter): number[] {
  return status.map(rankOfStatus).toSorted((one, other) => one - other)
}

const ranges: readonly (readonly [lower: FilterName, upper: FilterName])[] = [
  ['fromDate', 'toDate'],
  ['changedFrom', 'changedTo'],
  ['minAmount', 'maxAmount'],
]

/** The given ranges along the order of an index. */
function rangesAlong({ index }: Part, query: PageQuery): FilterName[] {
  const { order } = indexes[index]
  const given = [...ranges.flat(), 'referencePrefix' as const].filter((name) => query.filter[name] !== undefined)
  return order === undefined ? [] : given.filter((name) => columnsOf(query.filter, [name]).includes(order))
}

/** Without the bound that the position has passed: it says nothing more, and would only tempt PostgreSQL to begin there. */
export function rangesLeft(along: readonly FilterName[], query: PageQuery): FilterName[] {
  const passed = ranges.map(([lower, upper]) => (directionOf(query) === 'asc' ? lower : upper))
  return along.filter((name) => query.position === undefined || !passed.includes(name))
}
