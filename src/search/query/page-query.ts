import { amountBasis, type PaymentFilter, type SortOrder } from '../filter/payment-filter.ts'
import type { SortBy } from '../filter/search-fields.ts'
import { type SortKey, sortKeysOf } from '../filter/search-fields.ts'
import type { PagePosition } from './search-cursor.ts'

/** Which payments to read: a filter, an order, and the place in it where the page begins. */
export interface PageQuery {
  readonly filter: PaymentFilter
  readonly sortBy: SortBy
  readonly sortOrder: SortOrder
  /** Undefined: the page begins at the start of the order. */
  readonly position?: PagePosition | undefined
  /** Rows to read at most. */
  readonly rows: number
}

/** The sort keys of the query's order; the id follows them. */
export function keysOf({ filter, sortBy }: PageQuery): readonly SortKey[] {
  return sortKeysOf(sortBy, amountBasis(filter))
}

/** The direction in which rows are read: against the order of the answer when the page lies before its cursor. */
export function directionOf({ position, sortOrder }: PageQuery): SortOrder {
  if (position?.direction !== 'backward') return sortOrder
  return sortOrder === 'asc' ? 'desc' : 'asc'
}
