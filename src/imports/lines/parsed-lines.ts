import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { WaybillError } from '../../errors/waybill-error.ts'
import type { LineTarget, Outcome } from './import-lines.ts'
import { parseJsonLine } from './parse-json-line.ts'
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
      await forEachInTurns(lines, (line) => void read.push(readLine(line, parse)))
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
const TURN_MS = 2
/** Items between two looks at the clock. */
const TURN_ITEMS = 16

/** Runs work on each item and yields to other work every few milliseconds. */
export async function forEachInTurns<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  let turnEndsMs = performance.now() + TURN_MS
  for (const [at, item] of items.entries()) {
    if (at % TURN_ITEMS === 0 && performance.now() > turnEndsMs) {
      await yieldToOthers()
      turnEndsMs = performance.now() + TURN_MS
    }
    work(item)
  }
}
