import { isUtf8 } from 'node:buffer'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'

/** A line of a file, or a fault found before parsing. */
export type Line =
  | { readonly number: number; readonly content: Buffer; readonly fault?: undefined }
  | { readonly number: number; readonly content?: undefined; readonly fault: WaybillError }

/** A payment has about 2 kB. */
export const MAX_LINE_BYTES = 1024 * 1024

const NEWLINE = 0x0a
const CARRIAGE_RETURN = 0x0d
const BRACE = 0x7b
const SPACE = 0x20
const TAB = 0x09
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Splits a stream of bytes into lines and yields the lines of a chunk together, so that the consumer waits once a chunk. Lines end with LF or
 * CRLF, which is cut off; the last line may end without. Lines of JSON's white space alone are skipped but counted. The file's first bytes may be
 * a byte order mark; anywhere else it is part of its line. Holds at most a chunk and one line; the lines are views of the chunks.
 */
export async function* readLines(source: AsyncIterable<Uint8Array>, maxBytes = MAX_LINE_BYTES): AsyncGenerator<Line[]> {
  let number = 0
  /** The beginning of an unfinished line; once the line is too long, only its length is kept. */
  let held: Buffer[] = []
  let heldBytes = 0

  const take = (part: Buffer): Line | undefined => {
    number += 1
    const bytes = heldBytes + part.length
    const whole = held.length === 0 ? part : Buffer.concat([...held, part])
    held = []
    heldBytes = 0
    return bytes > maxBytes ? tooLong(number, bytes, maxBytes) : toLine(number, whole)
  }
  const hold = (part: Buffer) => {
    heldBytes += part.length
    if (heldBytes > maxBytes) held = []
    else if (part.length > 0) held.push(part)
  }

  for await (const chunk of source) {
    const buffer = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const lines: Line[] = []
    let start = 0
    for (let end = buffer.indexOf(NEWLINE); end >= 0; end = buffer.indexOf(NEWLINE, start)) {
      const line = take(buffer.subarray(start, end))
      if (line !== undefined) lines.push(line)
      start = end + 1
    }
    hold(buffer.subarray(start))
    if (lines.length > 0) yield lines
  }
  const last = heldBytes === 0 ? undefined : take(Buffer.alloc(0))
  if (last !== undefined) yield [last]
}

function toLine(number: number, raw: Buffer): Line | undefined {
  const content = number === 1 ? withoutMark(raw) : raw
  const whole = content.at(-1) === CARRIAGE_RETURN ? content.subarray(0, -1) : content
  return whole[0] !== BRACE && isBlank(whole) ? undefined : { number, content: whole }
}

function withoutMark(raw: Buffer): Buffer {
  const { length } = BYTE_ORDER_MARK
  return raw.subarray(0, length).equals(BYTE_ORDER_MARK) ? raw.subarray(length) : raw
}

/** Whether it is white space of JSON. `trim` would take away a byte order mark too. */
function isBlank(content: Buffer): boolean {
  return content.every((byte) => byte === SPACE || byte === TAB || byte === CARRIAGE_RETURN)
}

function tooLong(number: number, bytes: number, maxBytes: number): Line {
  const detail = `it has ${bytes} bytes, at most ${maxBytes}`
  return { number, fault: waybillError('VALUE_TOO_LONG', { field: 'the line', detail }) }
}

/**
 * The text of a line.
 *
 * @throws WaybillError the line's own fault, INVALID_UTF8
 */
export function textOfLine(line: Line): string {
  if (line.fault !== undefined) throw line.fault
  if (!isUtf8(line.content)) throw waybillError('INVALID_UTF8', { field: 'the line' })
  return line.content.toString('utf8')
}
