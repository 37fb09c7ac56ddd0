import { paymentStatuses, rankOfStatus } from '../../domain/payment.ts'
import { givenFilters, type PaymentFilter } from '../filter/payment-filter.ts'
import type { FilterName } from '../filter/search-fields.ts'
import { directionOf, type PageQuery } from '../page/page-query.ts'
import type { AccountStatistics, Cell } from '../sql/account-statistics.ts'
import { type Estimate, estimateMatches } from './estimate-matches.ts'

/** Limits at which the planner changes from one way of reading to another; in index entries unless stated otherwise. */
export interface PlanThresholds {
  /** Payments of an account that is always simply walked. */
  readonly smallAccount: number
  /** A walk whose length cannot be estimated. */
  readonly walk: number
  /** The longest walk with a limit, whatever the estimate. */
  readonly maxWalk: number
  /** A gather that is tried first, in case there is little. */
  readonly probe: number
  /** A gather from an index that has every column needed. */
  readonly gather: number
  /** A gather that has to read the rows themselves. */
  readonly gatherRows: number
  /** Cells, or months, in one statement. */
  readonly maxBranches: number
  /** From so many branches on, only a few rows of each are read at first. */
  readonly manyBranches: number
}

export const DEFAULT_THRESHOLDS: PlanThresholds = {
  smallAccount: 5_000,
  walk: 1_500,
  maxWalk: 20_000,
  probe: 300,
  gather: 16_000,
  gatherRows: 3_000,
  maxBranches: 600,
  manyBranches: 60,
}

/** Starting a branch costs as much as reading this many entries. */
export const BRANCH_COST = 25
/** A walk may take this many times the estimate before it is given up, since estimates are wrong by about as much. */
export const MARGIN = 4
/** The same for a walk of cells: each of many branches reads its whole share, so a larger margin would be paid for every time. */
export const MARGIN_OF_CELLS = 1.5

export const dates = ['fromDate', 'toDate'] as const
export const amounts = ['minAmount', 'maxAmount'] as const

/** Everything that the planning of a page looks at. */
export interface Terms {
  readonly query: PageQuery
  readonly filter: PaymentFilter
  /** The names of the filters that were given. */
  readonly given: readonly FilterName[]
  readonly statistics: AccountStatistics
  readonly estimate: Estimate
  readonly thresholds: PlanThresholds
}

export function termsOf(query: PageQuery, statistics: AccountStatistics, thresholds: PlanThresholds): Terms {
  const { filter } = query
  const given = givenFilters(filter)
  return { query, filter, given, statistics, estimate: estimateMatches(filter, statistics), thresholds }
}

/** Replaces the text filter `q` by the filter that it can only mean: a text that is an address is the filter `walletAddress`. */
export function singleReadingAsFilter(filter: PaymentFilter): PaymentFilter {
  const { q, ...others } = filter
  const [only] = q ?? []
  if (q?.length !== 1 || only === undefined || only.as === 'id' || filter[only.as] !== undefined) return filter
  return { ...others, [only.as]: [only.value] }
}

/**
 * The bounds of a range (dates or amounts) that still need a condition. A bound along the order that lies before the position says nothing
 * beyond the position, and would only tempt PostgreSQL to begin the walk there.
 */
export function boundsLeft({ query, given }: Terms, range: readonly FilterName[]): FilterName[] {
  const isAlongOrder = (name: FilterName) => isOneOf(query.sortBy === 'amount' ? amounts : dates, name)
  const passed = directionOf(query) === 'asc' ? ['fromDate', 'minAmount'] : ['toDate', 'maxAmount']
  const isNeeded = (name: FilterName) => query.position === undefined || !isAlongOrder(name) || !passed.includes(name)
  return range.filter((name) => given.includes(name) && isNeeded(name))
}

/**
 * The share of the account's time, from 0 to 1, that a walk by date passes before it reaches the first cell that matches: large for a
 * network that has been out of use for long.
 */
export function gapBefore({ query, filter, statistics, estimate }: Terms): number {
  const { firstMs, lastMs } = statistics
  const span = lastMs - firstMs
  if (query.sortBy !== 'date' || span <= 0 || estimate.cells.length === 0) return 0
  const at = query.position === undefined ? undefined : Date.parse(String(query.position.keys[0]))
  const matching = timesOf(estimate.cells)
  const gap =
    directionOf(query) === 'desc'
      ? (at ?? Math.min(filter.toDate ?? lastMs, lastMs)) - matching.lastMs
      : matching.firstMs - (at ?? Math.max(filter.fromDate ?? firstMs, firstMs))
  return clamp(gap / span, 0, 1)
}

/**
 * Whether the matching cells end shortly after the position while the account goes on. A walk by date may find too few payments there and
 * then read the rest of the account in vain.
 */
export function endsSoon({ query, statistics, estimate }: Terms): boolean {
  const { firstMs, lastMs } = statistics
  const span = lastMs - firstMs
  if (query.sortBy !== 'date' || query.position === undefined || span <= 0 || estimate.cells.length === 0) return false
  const at = Date.parse(String(query.position.keys[0]))
  const matching = timesOf(estimate.cells)
  const [left, beyond] =
    directionOf(query) === 'asc'
      ? [matching.lastMs - at, lastMs - matching.lastMs]
      : [at - matching.firstMs, matching.firstMs - firstMs]
  return left / span < 0.05 && beyond / span > 0.1
}

function timesOf(cells: readonly Cell[]): Pick<Cell, 'firstMs' | 'lastMs'> {
  return {
    firstMs: cells.reduce((least, cell) => Math.min(least, cell.firstMs), Number.POSITIVE_INFINITY),
    lastMs: cells.reduce((most, cell) => Math.max(most, cell.lastMs), 0),
  }
}

/** The ranks of the statuses that the filter allows, ascending. */
export function ranksOf({ status }: PaymentFilter): number[] {
  return (status ?? paymentStatuses).map(rankOfStatus).toSorted((one, other) => one - other)
}

export function hasAny({ given }: Terms, names: readonly FilterName[]): boolean {
  return names.some((name) => given.includes(name))
}

export function isOneOf(names: readonly FilterName[], name: FilterName): boolean {
  return names.includes(name)
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}
