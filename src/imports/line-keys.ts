import { hash } from 'node:crypto'
import type { Line } from './read-lines.ts'

/**
 * What lines are known by before they are read: the id that they seem to have, and a hash of all their bytes.
 *
 * Both are arrays of PostgreSQL in its binary form, since text would cost both sides more than the look-up itself. A row that holds the hash of
 * a line was written from that very line, so that an id which is found at the wrong place finds nothing.
 */
export interface LineKeys {
  /** uuid[]; null where no id was found, or the line is at fault. */
  readonly ids: Buffer
  /** bytea[], of 16 bytes each. */
  readonly hashes: Buffer
}

/**
 * The first byte of a stored hash: how lines are read. It must change when a line that was taken once may come to mean something else, so that
 * all are read anew.
 */
const READING = 1

const KEY_BYTES = 16
const SHA256_BYTES = 32
const UUID = 2950
const BYTEA = 17
/** Dimensions, whether there are nulls, type; then of the one dimension its length and lowest index. */
const HEADER_BYTES = 20
const LENGTH_BYTES = 4
const NULL_LENGTH = -1

/** The form that search and export give; behind it stands the id. */
const BEGINNING = Buffer.from('{"id":"')
const NAME = BEGINNING.subarray(1)
const QUOTE = 0x22
const ID_LENGTH = 36

/** An array that is filled from the front. */
interface KeyArray {
  readonly bytes: Buffer
  at: number
}

/** Keys that are still being found. */
export interface LineKeyWriter {
  /** Takes the lines in their order. */
  add(line: Line): void
  /** After the last one. */
  keys(): LineKeys
}

/** Finds the keys of so many lines. */
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

/** What is stored of a line to know it again: 16 bytes. */
export function lineHashOf(content: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(KEY_BYTES)
  writeLineHash(content, bytes, 0)
  return bytes
}

/** As a string of single bytes the hash costs half of what it costs as a buffer. */
function writeLineHash(content: Buffer, bytes: Buffer, at: number): void {
  const digest = hash('sha256', content, { outputEncoding: 'binary' })
  if (digest.length !== SHA256_BYTES) throw new RangeError('a hash is not as long as it should be')
  bytes[at] = READING
  bytes.write(digest, at + 1, KEY_BYTES - 1, 'latin1')
}

/** The id that a line seems to have, in lower case; undefined where none is found as search and export write it. */
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

/** Writes the bytes of the id, or null where what stands there is none. */
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
/** The value of each byte that is a hexadecimal digit, and -1 of others. */
const DIGITS = Int8Array.from({ length: 256 }, (_, byte) =>
  '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase()),
)
