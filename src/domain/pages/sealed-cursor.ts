import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'

/**
 * Cursors: opaque to callers, authenticated, and bound to an account and a list. They are not encrypted, so a payload has nothing that the
 * account may not read.
 */

const MAC_BYTES = 16

/** Larger bodies are deflated, which halves hashes and addresses: a cursor has to fit into a URL. */
const DEFLATE_FROM_BYTES = 256

/** The first byte of a deflated body. No JSON text begins with it. */
const DEFLATED = 0x01

/** The secret of a cursor, and what the cursor is bound to. */
export interface CursorSeal {
  /** 32 bytes, the same for all processes on one database. */
  readonly secret: Uint8Array
  /** The account and the list, such as `42/payments`. A cursor opens only with the scope that it was sealed with. */
  readonly scope: string
}

/** Seals a JSON value into a cursor of URL-safe characters. */
export function sealCursor(seal: CursorSeal, payload: unknown): string {
  const json = Buffer.from(JSON.stringify(payload), 'utf8')
  const body = json.length < DEFLATE_FROM_BYTES ? json : Buffer.concat([Buffer.of(DEFLATED), deflateRawSync(json)])
  return Buffer.concat([macOf(seal, body), body]).toString('base64url')
}

/**
 * Opens a cursor.
 *
 * @returns the payload; undefined for anything that was not sealed with this seal, or was changed by as little as one bit
 */
export function openCursor(seal: CursorSeal, cursor: string): unknown {
  const bytes = Buffer.from(cursor, 'base64url')
  // Node decodes several spellings of the same bytes; only the one that sealCursor writes is accepted.
  if (bytes.length <= MAC_BYTES || bytes.toString('base64url') !== cursor) return undefined
  const body = bytes.subarray(MAC_BYTES)
  if (!timingSafeEqual(bytes.subarray(0, MAC_BYTES), macOf(seal, body))) return undefined
  const json = body[0] === DEFLATED ? inflateRawSync(body.subarray(1)) : body
  return JSON.parse(json.toString('utf8'))
}

/** The payload of a cursor, or why the cursor cannot be used, for the `detail` of the error. */
export type OpenedCursor<P> =
  | { readonly ok: true; readonly payload: P }
  | { readonly ok: false; readonly detail: string }

/**
 * Opens a cursor whose payload says by `v` which version of its form it has. Increase the version when the form changes, so that older
 * cursors are refused and not misread.
 */
export function openCursorOfVersion<P extends { readonly v: number }>(
  seal: CursorSeal,
  cursor: string,
  ...versions: readonly number[]
): OpenedCursor<P> {
  if (cursor === '') return { ok: false, detail: 'it is empty' }
  const payload = openCursor(seal, cursor)
  if (payload === undefined) {
    return { ok: false, detail: 'it is damaged, or was made for another account or list, or by another service' }
  }
  if (versions.some((version) => (payload as Partial<P> | null)?.v === version)) {
    return { ok: true, payload: payload as P }
  }
  return { ok: false, detail: 'it was made by another version of this service' }
}

/** Key objects by secret. Creating one takes four times as long as the rest of a MAC, and a process has one secret. */
const keys = new WeakMap<Uint8Array, KeyObject>()

function keyOf(secret: Uint8Array): KeyObject {
  const key = keys.get(secret) ?? createSecretKey(secret)
  keys.set(secret, key)
  return key
}

function macOf({ secret, scope }: CursorSeal, body: Uint8Array): Buffer {
  const mac = createHmac('sha256', keyOf(secret))
  mac.update(`${Buffer.byteLength(scope)}:${scope}`).update(body)
  return mac.digest().subarray(0, MAC_BYTES)
}
