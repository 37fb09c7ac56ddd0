import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { scanJson } from '../../transcoding/messages/json-text.ts'
import type { LineTarget, Outcome } from './import-lines.ts'
import { type Line, textOfLine } from './read-lines.ts'

/** How lines are parsed one by one and stored together. */
export interface ParsedLines<T> {
  /** @throws WaybillError for a bad line */
  readonly parse: (json: unknown) => T
  /** Stores items in one transaction; returns one outcome an item, in their order. */
  readonly write: (items: readonly T[]) => Promise<readonly Outcome[]>
}

export function parsedLines<T>({ parse, write }: ParsedLines<T>): LineTarget {
  return {
    async prepare(lines) {
      const read: ReadLine<T>[] = []
      await forEachYielding(lines, (line) => void read.push(readLine(line, parse)))
      return {
        async store() {
          const items = read.flatMap((one) => (one.ok ? [one.item] : []))
          const stored = items.length === 0 ? [] : await write(items)
          let at = 0
          return read.map((one): Outcome => (one.ok ? (stored[at++] as Outcome) : { kind: 'bad', error: one.error }))
        },
      }
    },
  }
}

/** A parsed line or its error. */
export type ReadLine<T> = { readonly ok: true; readonly item: T } | { readonly ok: false; readonly error: WaybillError }

export function readLine<T>(line: Line, parse: (json: unknown) => T): ReadLine<T> {
  try {
    return { ok: true, item: parse(parseJsonLine(textOfLine(line))) }
  } catch (error) {
    if (!(error instanceof WaybillError)) throw error
    return { ok: false, error }
  }
}

/** How long work runs before it yields. The connection to the database is idle meanwhile. */
const SLICE_MS = 2
/** Items between two looks at the clock. */
const SLICE_ITEMS = 16

/** Runs work on each item and yields to other work every few milliseconds. */
export async function forEachYielding<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  let slotEndsMs = performance.now() + SLICE_MS
  for (const [at, item] of items.entries()) {
    if (at % SLICE_ITEMS === 0 && performance.now() > slotEndsMs) {
      await yieldToOthers()
      slotEndsMs = performance.now() + SLICE_MS
    }
    work(item)
  }
}

/** Levels of nested objects and lists; a payment has three. */
const MAX_DEPTH = 32

/**
 * Parses the JSON of a line. Unlike JSON.parse it limits the nesting and refuses duplicate keys, of which JSON.parse would silently keep
 * the last.
 *
 * @throws WaybillError MALFORMED_LINE
 */
export function parseJsonLine(text: string): unknown {
  const json = parse(text)
  if (mayBeDeep(text) || countKeyEnds(text) !== countKeys(json)) scanJson(text, { onOpen, onTwice })
  return json
}

function onOpen(depth: number): void {
  if (depth > MAX_DEPTH) throw malformed(`it is nested deeper than ${MAX_DEPTH} levels`)
}

function onTwice(key: string): void {
  throw malformed(`"${key}" is given twice`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw malformed((cause as Error).message, cause)
  }
}

/** Counts brackets anywhere, even in strings, which is cheap. */
function mayBeDeep(text: string): boolean {
  let brackets = 0
  for (const bracket of ['{', '[']) {
    for (let at = text.indexOf(bracket); at >= 0 && brackets <= MAX_DEPTH; at = text.indexOf(bracket, at + 1))
      brackets++
  }
  return brackets > MAX_DEPTH
}

/**
 * Counts `":`. In the usual form that is the number of keys; a string may contain it too. -1 when white space stands between a key and
 * its colon.
 */
function countKeyEnds(text: string): number {
  if (/"\s+:/.test(text)) return -1
  let count = 0
  for (let at = text.indexOf('":'); at >= 0; at = text.indexOf('":', at + 2)) count++
  return count
}

function countKeys(json: unknown): number {
  if (typeof json !== 'object' || json === null) return 0
  let count = 0
  if (Array.isArray(json)) {
    for (const entry of json) count += countKeys(entry)
    return count
  }
  for (const name in json) count += 1 + countKeys((json as Record<string, unknown>)[name])
  return count
}

function malformed(detail: string, cause?: unknown): Error {
  return waybillError('MALFORMED_LINE', { detail }, { cause })
}
