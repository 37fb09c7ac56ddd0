import { hash } from 'node:crypto'
import type { Line } from './read-lines.ts'

/**
 * The keys of lines before parsing: the id that a line seems to have, and a hash of all its bytes.
 *
 * Both are PostgreSQL arrays in binary form; as text they would cost both sides more than the look-up itself. A row with the hash of a line
 * was written from exactly that line, so an id taken from a wrong place in the line finds no row.
 */
export interface LineKeys {
  /** uuid[]; null where no id was found or the line has a fault. */
  readonly ids: Buffer
  /** bytea[], of 16 bytes each. */
  readonly hashes: Buffer
}

/**
 * The first byte of a stored hash: the version of the parser. Increment it when a line may now mean something else than when it was
 * imported, so that all lines are parsed again.
 */
const PARSER_VERSION = 1

const KEY_BYTES = 16
const SHA256_BYTES = 32
const UUID = 2950
const BYTEA = 17
/** Number of dimensions, whether there are nulls, element type; then length and lower bound of the one dimension. */
const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const NULL_LENGTH = -1

/** How lines of search and export begin; the id follows. */
const BEGINNING = Buffer.from('{"id":"')
const NAME = BEGINNING.subarray(1)
const QUOTE = 0x22
const ID_LENGTH = 36

/** An array that is filled from the front. */
interface KeyArray {
  readonly bytes: Buffer
  at: number
}

/** Collects the keys of lines. */
export interface LineKeyWriter {
  /** Adds the next line. */
  add(line: Line): void
  /** Call after the last line. */
  keys(): LineKeys
}

/** @param count - how many lines will be added */
export function writeLineKeys(count: number): LineKeyWriter {
  const ids = beginArray(UUID, count)
  const hashes = beginArray(BYTEA, count)
  return {
    add({ content }) {
      if (content === undefined) {
        addNull(ids)
        addNull(hashes)
        return
      }
      addId(ids, content)
      beginEntry(hashes)
      writeLineHash(content, hashes.bytes, hashes.at)
      hashes.at += KEY_BYTES
    },
    keys: () => ({ ids: endArray(ids), hashes: endArray(hashes) }),
  }
}

/** The 16 bytes by which a stored row recognizes the line that it was written from. */
export function lineHashOf(content: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(KEY_BYTES)
  writeLineHash(content, bytes, 0)
  return bytes
}

/** The digest is taken as a binary string, which costs half as much as a buffer. */
function writeLineHash(content: Buffer, bytes: Buffer, at: number): void {
  const digest = hash('sha256', content, { outputEncoding: 'binary' })
  if (digest.length !== SHA256_BYTES) throw new RangeError(`a SHA-256 digest has ${digest.length} bytes`)
  bytes[at] = PARSER_VERSION
  bytes.write(digest, at + 1, KEY_BYTES - 1, 'latin1')
}

/** The id that a line seems to have, in lower case; undefined when none stands where search and export write it. */
export function idOfLine(content: Buffer): string | undefined {
  const at = findId(content)
  return at < 0 ? undefined : content.toString('latin1', at, at + ID_LENGTH).toLowerCase()
}

function findId(content: Buffer): number {
  const begins =
    content.length > BEGINNING.length && content.compare(BEGINNING, 0, BEGINNING.length, 0, BEGINNING.length) === 0
  const name = begins ? 1 : content.indexOf(NAME)
  const at = name + NAME.length
  return name >= 0 && content[at + ID_LENGTH] === QUOTE ? at : -1
}

function beginArray(type: number, count: number): KeyArray {
  const bytes = Buffer.allocUnsafe(HEADER_BYTES + count * (LENGTH_BYTES + KEY_BYTES))
  let at = 0
  for (const part of [1, 1, type, count, 1]) at = bytes.writeInt32BE(part, at)
  return { bytes, at }
}

function endArray({ bytes, at }: KeyArray): Buffer {
  return bytes.subarray(0, at)
}

function beginEntry(array: KeyArray): void {
  array.at = array.bytes.writeInt32BE(KEY_BYTES, array.at)
}

function addNull(array: KeyArray): void {
  array.at = array.bytes.writeInt32BE(NULL_LENGTH, array.at)
}

/** Appends the bytes of the id, or null when the text there is not a UUID. */
function addId(array: KeyArray, content: Buffer): void {
  const from = findId(content)
  const entryAt = array.at
  if (from < 0) return addNull(array)
  beginEntry(array)
  for (let at = from; at < from + ID_LENGTH; at++) {
    if (DASHES.has(at - from)) {
      if (content[at] === DASH) continue
    } else {
      const high = DIGITS[content[at] as number] as number
      const low = DIGITS[content[++at] as number] as number
      if (high >= 0 && low >= 0) {
        array.bytes[array.at++] = (high << 4) | low
        continue
      }
    }
    array.at = entryAt
    return addNull(array)
  }
}

const DASH = 0x2d
const DASHES: ReadonlySet<number> = new Set([8, 13, 18, 23])
/** The value of each byte as a hexadecimal digit; -1 for other bytes. */
const DIGITS = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase()),
)
