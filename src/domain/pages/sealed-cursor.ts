import { createCipheriv, createDecipheriv, createHmac, createSecretKey, timingSafeEqual } from 'node:crypto'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { waybillError } from '../../errors/waybill-error.ts'

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
  /** Of the form of the payload. Increase it when the form changes, so that older cursors are refused and not misread. */
  readonly version: number
}

/** Seals a JSON value into a cursor of URL-safe characters. */
export function sealCursor(seal: CursorSeal, payload: unknown): string {
  const json = Buffer.from(JSON.stringify([seal.version, payload]), 'utf8')
  const body = json.length < DEFLATE_FROM_BYTES ? json : Buffer.concat([Buffer.of(DEFLATED), deflateRawSync(json)])
  return Buffer.concat([macOf(seal, body), body]).toString('base64url')
}

/**
 * Opens a cursor.
 *
 * @throws WaybillError of the reason for anything that was not sealed with this seal, or was changed by as little as one bit
 */
export function openCursor(
  seal: CursorSeal,
  cursor: string,
  reason: 'INVALID_CURSOR' | 'INVALID_WATCH_CURSOR' = 'INVALID_CURSOR',
): unknown {
  const refuse = (detail: string) => waybillError(reason, { detail })
  if (cursor === '') throw refuse('it is empty')
  const bytes = Buffer.from(cursor, 'base64url')
  const body = bytes.subarray(MAC_BYTES)
  // Node decodes several spellings of the same bytes; only the one that sealCursor writes is accepted.
  const isWhole = body.length > 0 && bytes.toString('base64url') === cursor
  if (!isWhole || !timingSafeEqual(bytes.subarray(0, MAC_BYTES), macOf(seal, body))) {
    throw refuse('it is damaged, or was made for another account or list, or by another service')
  }
  const json = body[0] === DEFLATED ? inflateRawSync(body.subarray(1)) : body
  const [version, payload] = JSON.parse(json.toString('utf8')) as [number, unknown]
  if (version !== seal.version) throw refuse('it was made by another version of this service')
  return payload
}

/** Encrypts a number that the account may not read, such as one that counts rows of all accounts. It is one block, which needs no IV. */
export function hideNumber(seal: CursorSeal, number: string): string {
  const cipher = createCipheriv('aes-256-ecb', numberKeyOf(seal), null)
  return cipher.update(number, 'latin1', 'base64url') + cipher.final('base64url')
}

/** Reads what {@link hideNumber} wrote with this seal. */
export function readHiddenNumber(seal: CursorSeal, hidden: string): string {
  const decipher = createDecipheriv('aes-256-ecb', numberKeyOf(seal), null)
  return decipher.update(hidden, 'base64url', 'latin1') + decipher.final('latin1')
}

/** No MAC is made of this text: those are made of texts that begin with a digit. */
const numberKeyOf = ({ secret, scope }: CursorSeal) =>
  createHmac('sha256', keyOf(secret)).update(`numbers of ${scope}`).digest()

/** Key objects by secret. Creating one takes four times as long as the rest of a MAC, and a process has one secret. */
const keys = new WeakMap<Uint8Array, ReturnType<typeof createSecretKey>>()

function keyOf(secret: Uint8Array) {
  const key = keys.get(secret) ?? createSecretKey(secret)
  keys.set(secret, key)
  return key
}

function macOf({ secret, scope }: CursorSeal, body: Uint8Array): Buffer {
  const mac = createHmac('sha256', keyOf(secret))
  mac.update(`${Buffer.byteLength(scope)}:${scope}`).update(body)
  return mac.digest().subarray(0, MAC_BYTES)
}
