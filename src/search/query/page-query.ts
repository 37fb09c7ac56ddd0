import type { CutPosition } from '../../domain/pages/cut-page.ts'
import { type CursorSeal, openCursor, sealCursor } from '../../domain/pages/sealed-cursor.ts'
import { amountBasis, type PaymentFilter, type SortOrder } from '../filter/payment-filter.ts'
import { type FilterValues, type SortBy, type SortKey, sortKeysOf } from '../filter/search-fields.ts'

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

/** Where a page begins: at the payment with these keys. */
export interface PagePosition extends CutPosition {
  /** The payment's sort keys without the id: times in ISO 8601, amounts as decimal strings, null where unknown. */
  readonly keys: readonly (string | number | null)[]
  readonly id: string
}

/** The contents of a cursor. */
export interface CarriedSearch {
  readonly filter: FilterValues
  readonly sortBy: SortBy
  readonly sortOrder: SortOrder
  readonly limit: number
  readonly position: PagePosition
  /** The number of the last change of the account that the page of the cursor reflects: the next page must not come from an older state. */
  readonly lastChange: string
}

/** The seal of an account's search cursors. */
export function searchSeal(secret: Uint8Array, accountId: number): CursorSeal {
  return { secret, scope: `${accountId}/payments`, version: 4 }
}

/** A watch cursor is the number of a change of an account, sealed. It carries no filter, so any watch of the account can begin at it. */

/** The seal of an account's watch cursors. */
export function watchSeal(secret: Uint8Array, accountId: number): CursorSeal {
  return { secret, scope: `${accountId}/changes`, version: 2 }
}

/** Writes the cursor after a change; 0 is before the first. */
export function encodeWatchCursor(seal: CursorSeal, change: bigint): string {
  return sealCursor(seal, String(change))
}

/**
 * Reads a cursor.
 *
 * @returns the change after which the watch begins
 * @throws INVALID_WATCH_CURSOR for anything that this seal did not make
 */
export function decodeWatchCursor(seal: CursorSeal, cursor: string): bigint {
  return BigInt(openCursor(seal, cursor, 'INVALID_WATCH_CURSOR') as string)
}
