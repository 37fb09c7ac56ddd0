import { setImmediate as othersHadTheirTurn } from 'node:timers/promises'
import { WaybillError } from '../errors/waybill-error.ts'
import type { LineTarget, Outcome } from './import-lines.ts'
import { parseJsonLine } from './parse-json-line.ts'
import { type Line, textOfLine } from './read-lines.ts'

/** Lines that are read one by one, and stored together. */
export interface ParsedLines<T> {
  /** @throws WaybillError for a line that is wrong */
  readonly parse: (json: unknown) => T
  /** Stores items in one transaction. One outcome an item, in their order. */
  readonly write: (items: readonly T[]) => Promise<readonly Outcome[]>
}

/** Makes a target of them. */
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

/** What a line says, or what is wrong with it. */
export type ReadLine<T> = { readonly ok: true; readonly item: T } | { readonly ok: false; readonly error: WaybillError }

/** Reads one line. */
export function readLine<T>(line: Line, parse: (json: unknown) => T): ReadLine<T> {
  try {
    return { ok: true, item: parse(parseJsonLine(textOfLine(line))) }
  } catch (error) {
    if (!(error instanceof WaybillError)) throw error
    return { ok: false, error }
  }
}

/** So long at a time is nobody else served: the database waits for its next command meanwhile. */
const TURN_MS = 2
/** The clock is not looked at more often. */
const TURN_ITEMS = 16

/** Lets others have their turn every few milliseconds. */
export async function forEachInTurns<T>(items: readonly T[], work: (item: T) => void): Promise<void> {
  let turnEndsMs = performance.now() + TURN_MS
  for (const [at, item] of items.entries()) {
    if (at % TURN_ITEMS === 0 && performance.now() > turnEndsMs) {
      await othersHadTheirTurn()
      turnEndsMs = performance.now() + TURN_MS
    }
    work(item)
  }
}
