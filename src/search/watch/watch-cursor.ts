import { type CursorSeal, openCursor, sealCursor } from '../../domain/sealed-cursor.ts'
import { waybillError } from '../../errors/waybill-error.ts'

/**
 * A watch cursor names a moment of an account: the changes up to one of them. It carries no filter, so that it is good for any
 * watch of the account.
 */

/** Raised when the payload changes its shape: older cursors are then refused, not misread. */
const VERSION = 1

/** The seal of an account's watch cursors. */
export function watchSeal(secret: Uint8Array, accountId: number): CursorSeal {
  return { secret, scope: `${accountId}/changes` }
}

/** Writes the cursor that stands behind a change; 0 is before the first. */
export function encodeWatchCursor(seal: CursorSeal, change: bigint): string {
  return sealCursor(seal, { v: VERSION, c: String(change) })
}

/**
 * Reads a cursor.
 *
 * @returns the last change that lies before the watch
 * @throws INVALID_WATCH_CURSOR for anything that this seal did not make
 */
export function decodeWatchCursor(seal: CursorSeal, cursor: string): bigint {
  const payload = openCursor(seal, cursor)
  if (payload === undefined) {
    throw waybillError('INVALID_WATCH_CURSOR', {
      detail: 'it is damaged, is none, or was not made here for this account',
    })
  }
  if (!isPayload(payload)) throw waybillError('INVALID_WATCH_CURSOR', { detail: 'it is of another version' })
  return BigInt(payload.c)
}

interface Payload {
  readonly v: number
  readonly c: string
}

function isPayload(payload: unknown): payload is Payload {
  return typeof payload === 'object' && payload !== null && 'v' in payload && payload.v === VERSION
}
