import { type CursorSeal, openCursor, sealCursor } from '../../domain/pages/sealed-cursor.ts'

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
