import type { CutPosition } from '../../domain/pages/cut-page.ts'
import type { CursorSeal } from '../../domain/pages/sealed-cursor.ts'
import type { FilterValues, SortBy } from '../filter/search-fields.ts'
import type { SortOrder } from '../filter/search-input.ts'

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
