import type { CutPosition } from '../../domain/pages/cut-page.ts'
import { type CursorSeal, openCursor, sealCursor } from '../../domain/pages/sealed-cursor.ts'
import type { SortOrder } from '../filter/payment-filter.ts'
import type { FilterValues, SortBy } from '../filter/search-fields.ts'

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
  return { secret, scope: `${accountId}/payments`, version: 3 }
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
