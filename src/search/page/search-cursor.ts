import { type CursorSeal, openCursorOfVersion, sealCursor } from '../../domain/pages/sealed-cursor.ts'
import { DEFAULT_TIME_ZONE } from '../../domain/time-zone.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { FilterValues, SortBy } from '../filter/search-fields.ts'
import { filterFields } from '../filter/search-fields.ts'
import type { SortOrder } from '../filter/search-input.ts'

/** Where a page begins: after the payment with these keys going `forward`, before it going `backward`. */
export interface PagePosition {
  /** The payment's sort keys without the id: times in ISO 8601, amounts as decimal strings, null where unknown. */
  readonly keys: readonly (string | number | null)[]
  readonly id: string
  /** Whether that payment itself belongs to the page. */
  readonly inclusive: boolean
  readonly direction: 'forward' | 'backward'
}

/** The contents of a cursor. */
export interface CarriedSearch {
  readonly filter: FilterValues
  readonly sortBy: SortBy
  readonly sortOrder: SortOrder
  readonly limit: number
  readonly position: PagePosition
  /** The last change of the account that the page of the cursor reflects: the next page must not come from an older state. */
  readonly lastChange: bigint
}

const VERSION = 2

/** The seal of an account's search cursors. */
export function searchSeal(secret: Uint8Array, accountId: number): CursorSeal {
  return { secret, scope: `${accountId}/payments` }
}

/** Writes a cursor. */
export function encodeSearchCursor(
  seal: CursorSeal,
  { filter, sortBy, sortOrder, limit, position, lastChange }: CarriedSearch,
): string {
  const { keys, id, inclusive, direction } = position
  return sealCursor(seal, {
    v: VERSION,
    f: filter,
    s: sortBy,
    o: sortOrder,
    l: limit,
    p: [keys, id, inclusive ? 1 : 0, direction],
    c: String(lastChange),
  })
}

/**
 * Reads a cursor.
 *
 * @throws INVALID_CURSOR for anything that this seal did not make
 */
export function decodeSearchCursor(seal: CursorSeal, cursor: string): CarriedSearch {
  const opened = openCursorOfVersion<Payload>(seal, cursor, VERSION)
  if (!opened.ok) throw waybillError('INVALID_CURSOR', { detail: opened.detail })
  const { payload } = opened
  const [keys, id, inclusive, direction] = payload.p
  return {
    filter: payload.f,
    sortBy: payload.s,
    sortOrder: payload.o,
    limit: payload.l,
    position: { keys, id, inclusive: inclusive === 1, direction },
    lastChange: BigInt(payload.c),
  }
}

interface Payload {
  readonly v: number
  readonly f: FilterValues
  readonly s: SortBy
  readonly o: SortOrder
  readonly l: number
  readonly p: readonly [PagePosition['keys'], string, number, PagePosition['direction']]
  readonly c: string
}

/** A search that was sent together with a cursor. */
export interface SentSearch {
  readonly filter: FilterValues
  readonly sortBy?: SortBy | undefined
  readonly sortOrder?: SortOrder | undefined
}

/**
 * Checks that the search agrees with the cursor sent with it. What was not sent is taken from the cursor.
 *
 * @throws CURSOR_MISMATCH naming the first field that differs
 */
export function checkCursorMatches(carried: CarriedSearch, sent: SentSearch): void {
  for (const { name, kind } of filterFields) {
    if (sent.filter[name] === undefined) continue
    const before = carried.filter[name] ?? (kind === 'zone' ? DEFAULT_TIME_ZONE : undefined)
    if (JSON.stringify(sent.filter[name]) !== JSON.stringify(before)) throw mismatch(name)
  }
  if (sent.sortBy !== undefined && sent.sortBy !== carried.sortBy) throw mismatch('sortBy')
  if (sent.sortOrder !== undefined && sent.sortOrder !== carried.sortOrder) throw mismatch('sortOrder')
}

function mismatch(field: string): Error {
  return waybillError('CURSOR_MISMATCH', { field })
}
