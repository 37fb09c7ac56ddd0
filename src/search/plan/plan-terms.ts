import { paymentStatuses, rankOfStatus } from '../../domain/payment.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import type { AccountStatistics, Cell } from '../sql/account-statistics-repository.ts'
import type { PageQuery } from '../sql/payment-query.ts'
import { directionOf } from '../sql/shapes/shape-query.ts'
import { type Estimate, estimateMatches } from './estimate-matches.ts'
import type { FieldName } from './search-plan.ts'

/** Where one way of reading gives way to another; in entries of an index, unless they say otherwise. */
export interface PlanThresholds {
  /** Payments of an account that is simply walked. */
  readonly small: number
  /** Of a walk of which nothing is known beforehand. */
  readonly walk: number
  /** Of a walk that is expected to need so many. */
  readonly longestWalk: number
  /** Gathered where it is not known whether there are more. */
  readonly probe: number
  /** Gathered from an index that has all that is asked. */
  readonly gather: number
  /** Gathered where the rows themselves are asked. */
  readonly gatherRows: number
  /** Cells, or months, in one statement. */
  readonly branches: number
  /** Branches of which there are so many that few rows are read of each at first. */
  readonly manyBranches: number
}

export const DEFAULT_THRESHOLDS: PlanThresholds = {
  small: 5_000,
  walk: 1_500,
  longestWalk: 20_000,
  probe: 300,
  gather: 16_000,
  gatherRows: 3_000,
  branches: 600,
  manyBranches: 60,
}

/** To begin a branch costs as much as reading so many entries. */
export const BRANCH_COST = 25
/** Of two estimates that are wrong by as much. */
export const MARGIN = 4
/** Every one of many branches reads its share to the end, so that a margin is paid for. */
export const MARGIN_OF_CELLS = 1.5

export const dates = ['fromDate', 'toDate'] as const
export const amounts = ['minAmount', 'maxAmount'] as const

/** All that planning a page looks at. */
export interface Terms {
  readonly query: PageQuery
  readonly filter: PaymentFilter
  /** Every filter that was given. */
  readonly given: readonly FieldName[]
  readonly statistics: AccountStatistics
  readonly estimate: Estimate
  readonly thresholds: PlanThresholds
}

export function termsOf(asked: PageQuery, statistics: AccountStatistics, thresholds: PlanThresholds): Terms {
  const filter = readText(asked.filter)
  return {
    query: { ...asked, filter },
    filter,
    given: (Object.keys(filter) as (keyof PaymentFilter)[]).filter(
      (name): name is FieldName => name !== 'accountId' && filter[name] !== undefined,
    ),
    statistics,
    estimate: estimateMatches(filter, statistics),
    thresholds,
  }
}

/** A text that can mean one thing alone is the filter of that thing. */
export function readText(filter: PaymentFilter): PaymentFilter {
  const { q, ...others } = filter
  const [only] = q ?? []
  if (q?.length !== 1 || only === undefined || only.as === 'id' || filter[only.as] !== undefined) return filter
  return { ...others, [only.as]: [only.value] }
}

/**
 * What is left to say of a range: of the range along the order, the bound that lies behind the position says nothing more, and must not
 * be where the walk begins.
 */
export function boundsLeft({ query, given }: Terms, range: readonly FieldName[]): FieldName[] {
  const isAlong = (name: FieldName) => isOneOf(query.sortBy === 'amount' ? amounts : dates, name)
  const behind = directionOf(query) === 'asc' ? ['fromDate', 'minAmount'] : ['toDate', 'maxAmount']
  const saysMore = (name: FieldName) => query.position === undefined || !isAlong(name) || !behind.includes(name)
  return range.filter((name) => given.includes(name) && saysMore(name))
}

/**
 * The part of the account's time, from 0 to 1, that a walk by time goes through before it comes to the first cell that matches: a network
 * that was given up lies far back.
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
 * Whether the cells that match end shortly behind the position, and the account does not: a walk by time may find too few there, and goes
 * on in vain.
 */
export function endsSoon({ query, statistics, estimate }: Terms): boolean {
  const { firstMs, lastMs } = statistics
  const span = lastMs - firstMs
  if (query.sortBy !== 'date' || query.position === undefined || span <= 0 || estimate.cells.length === 0) return false
  const at = Date.parse(String(query.position.keys[0]))
  const matching = timesOf(estimate.cells)
  const [left, behind] =
    directionOf(query) === 'asc'
      ? [matching.lastMs - at, lastMs - matching.lastMs]
      : [at - matching.firstMs, matching.firstMs - firstMs]
  return left / span < 0.05 && behind / span > 0.1
}

function timesOf(cells: readonly Cell[]): Pick<Cell, 'firstMs' | 'lastMs'> {
  return {
    firstMs: cells.reduce((least, cell) => Math.min(least, cell.firstMs), Number.POSITIVE_INFINITY),
    lastMs: cells.reduce((most, cell) => Math.max(most, cell.lastMs), 0),
  }
}

/** The statuses that the filter leaves, by rank. */
export function ranksOf({ status }: PaymentFilter): number[] {
  return (status ?? paymentStatuses).map(rankOfStatus).toSorted((one, other) => one - other)
}

export function hasAny({ given }: Terms, names: readonly FieldName[]): boolean {
  return names.some((name) => given.includes(name))
}

export function isOneOf(names: readonly FieldName[], name: FieldName): boolean {
  return names.includes(name)
}

export function clamp(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}
