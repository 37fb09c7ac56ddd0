import { type CursorSeal, openCursorOfVersion, sealCursor } from '../../domain/pages/sealed-cursor.ts'
import { waybillError } from '../../errors/waybill-error.ts'

/** A watch cursor is the number of a change of an account, sealed. It carries no filter, so any watch of the account can begin at it. */

const VERSION = 1

/** The seal of an account's watch cursors. */
export function watchSeal(secret: Uint8Array, accountId: number): CursorSeal {
  return { secret, scope: `${accountId}/changes` }
}

/** Writes the cursor after a change; 0 is before the first. */
export function encodeWatchCursor(seal: CursorSeal, change: bigint): string {
  return sealCursor(seal, { v: VERSION, c: String(change) })
}

/**
 * Reads a cursor.
 *
 * @returns the change after which the watch begins
 * @throws INVALID_WATCH_CURSOR for anything that this seal did not make
 */
export function decodeWatchCursor(seal: CursorSeal, cursor: string): bigint {
  const opened = openCursorOfVersion<Payload>(seal, cursor, VERSION)
  if (!opened.ok) throw waybillError('INVALID_WATCH_CURSOR', { detail: opened.detail })
  return BigInt(opened.payload.c)
}

interface Payload {
  readonly v: number
  readonly c: string
}
