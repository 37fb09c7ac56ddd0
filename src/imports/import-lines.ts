import { WaybillError } from '../errors.ts'
import { parseJsonLine } from './parse-json-line.ts'
import { type Line, LONGEST_LINE_BYTES, readLines } from './read-lines.ts'

/** What became of a line. */
export type Outcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'bad'; readonly error: WaybillError }

/** What lines are read as, and where they go. */
export interface LineTarget<T> {
  /** @throws WaybillError for a line that is wrong */
  parse(json: unknown): T
  /** Stores a batch in one transaction: all of it is there afterwards, or nothing. One outcome an item, in their order. */
  write(batch: readonly T[]): Promise<readonly Outcome[]>
}

/** What has become of the lines so far. */
export interface ImportCounts {
  /** Blank ones are not counted. */
  readonly lines: number
  readonly written: number
  readonly unchanged: number
  readonly bad: number
}

/** A line that did not go in. */
export interface BadLine {
  /** From 1, blank lines counted. */
  readonly number: number
  readonly error: WaybillError
}

export interface ImportOptions {
  /** Called after each batch, in the order of the lines; the import waits for it. */
  readonly onBatch?: (counts: ImportCounts, bad: readonly BadLine[]) => Promise<void> | void
  /** When it fires, what is being written is finished and the rest is left. */
  readonly signal?: AbortSignal
  readonly batchLines?: number
}

/** Enough that a batch costs little beside its rows, and little enough that two fit into memory. */
const BATCH_LINES = 4_000
const BATCH_BYTES = 8 * LONGEST_LINE_BYTES

interface Batch<T> {
  readonly items: { readonly number: number; readonly value: T }[]
  readonly faults: BadLine[]
  bytes: number
}

/**
 * Reads lines of JSON and stores them in batches, while the next batch is read. What is wrong with a line is told of, and the others go
 * in. Holds two batches at most.
 *
 * @returns the counts of what was stored, also when the signal has fired
 * @throws what reading or storing met; the batches before it are stored
 */
export async function importLines<T>(
  source: AsyncIterable<Uint8Array>,
  target: LineTarget<T>,
  { onBatch, signal, batchLines = BATCH_LINES }: ImportOptions = {},
): Promise<ImportCounts> {
  let counts: ImportCounts = { lines: 0, written: 0, unchanged: 0, bad: 0 }
  let batch = emptyBatch<T>()
  let writing: Promise<void> = Promise.resolve()

  async function store({ items, faults }: Batch<T>): Promise<void> {
    const outcomes = items.length === 0 ? [] : await target.write(items.map(({ value }) => value))
    const bad = [...faults, ...items.flatMap(({ number }, at) => badLineOf(number, outcomes[at]))]
    const written = outcomes.filter(({ kind }) => kind === 'written').length
    counts = {
      lines: counts.lines + items.length + faults.length,
      written: counts.written + written,
      unchanged: counts.unchanged + items.length + faults.length - written - bad.length,
      bad: counts.bad + bad.length,
    }
    await onBatch?.(
      counts,
      bad.toSorted((a, b) => a.number - b.number),
    )
  }

  async function handOver(): Promise<void> {
    await writing
    const full = batch
    batch = emptyBatch()
    writing = store(full)
    // it is awaited later, and must not count as unhandled until then
    writing.catch(() => {})
  }

  try {
    for await (const lines of readLines(stoppedBy(source, signal))) {
      for (const line of lines) {
        addLine(batch, line, target)
        if (batch.items.length + batch.faults.length >= batchLines || batch.bytes >= BATCH_BYTES) await handOver()
        if (signal?.aborted) break
      }
      if (signal?.aborted) break
    }
    if (!signal?.aborted) await handOver()
  } finally {
    await writing
  }
  return counts
}

function emptyBatch<T>(): Batch<T> {
  return { items: [], faults: [], bytes: 0 }
}

function addLine<T>(batch: Batch<T>, line: Line, target: LineTarget<T>): void {
  const { number } = line
  batch.bytes += line.bytes
  const parsed = parseLine(line, target)
  if (parsed.ok) batch.items.push({ number, value: parsed.value })
  else batch.faults.push({ number, error: parsed.error })
}

function parseLine<T>(line: Line, target: LineTarget<T>) {
  if (line.fault !== undefined) return { ok: false as const, error: line.fault }
  try {
    return { ok: true as const, value: target.parse(parseJsonLine(line.text)) }
  } catch (error) {
    if (!(error instanceof WaybillError)) throw error
    return { ok: false as const, error }
  }
}

function badLineOf(number: number, outcome: Outcome | undefined): BadLine[] {
  return outcome?.kind === 'bad' ? [{ number, error: outcome.error }] : []
}

/** Ends when the signal fires, also while nothing comes. */
async function* stoppedBy(source: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) {
  if (signal === undefined) return yield* source
  const { promise: stopped, resolve } = Promise.withResolvers<'stopped'>()
  const stop = () => resolve('stopped')
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  const iterator = source[Symbol.asyncIterator]()
  try {
    for (;;) {
      const next = await Promise.race([stopped, iterator.next()])
      if (next === 'stopped' || next.done === true) return
      yield next.value
    }
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
