import { addAbortListener } from 'node:events'
import type { WaybillError } from '../../errors/waybill-error.ts'
import { type Line, MAX_LINE_BYTES, readLines } from './read-lines.ts'

/** The result of importing one line. */
export type Outcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'bad'; readonly error: WaybillError }

/** Parses lines and stores them. */
export interface LineTarget {
  /**
   * Parses a batch. Earlier batches may still be parsing or storing; batches come in the order of the lines. Long work yields to
   * other work in between.
   */
  prepare(lines: readonly Line[]): Promise<PreparedBatch>
}

/** A batch of parsed lines. */
export interface PreparedBatch {
  /**
   * Stores the batch in one transaction, all or nothing. Called only after all earlier batches are stored.
   *
   * @returns one outcome a line, in their order
   */
  store(): Promise<readonly Outcome[]>
}

/** Totals of the lines stored so far. */
export interface ImportCounts {
  /** Without blank lines. */
  readonly lines: number
  readonly written: number
  readonly unchanged: number
  readonly bad: number
}

/** A line that was not imported. */
export interface BadLine {
  /** From 1; blank lines count too. */
  readonly number: number
  readonly error: WaybillError
}

export interface ImportOptions {
  /** Called after each batch, in the order of the lines; the import waits for it. */
  readonly onBatch?: (counts: ImportCounts, bad: readonly BadLine[]) => Promise<void> | void
  /** When it fires, the batch being stored is finished and the rest is not imported. */
  readonly signal?: AbortSignal
  readonly batchLines?: number
}

/** Large enough that the cost of a batch itself is small, small enough that three batches fit into memory. */
const BATCH_LINES = 4_000
const BATCH_BYTES = 8 * MAX_LINE_BYTES

/**
 * Imports lines of JSON in batches: while one batch is stored, the next is parsed and the one after it is read. Bad lines are reported,
 * the others are stored. Holds at most three batches in memory.
 *
 * @returns the totals of what was stored, also when the signal has fired
 * @throws errors of reading or storing; the batches before them are stored
 */
export async function importLines(
  source: AsyncIterable<Uint8Array>,
  target: LineTarget,
  { onBatch, signal, batchLines = BATCH_LINES }: ImportOptions = {},
): Promise<ImportCounts> {
  let counts: ImportCounts = { lines: 0, written: 0, unchanged: 0, bad: 0 }
  /** The last two batches. Each waits for the one before it. */
  let [beforeLast, last] = [Promise.resolve(), Promise.resolve()]

  async function store(lines: readonly Line[], prepared: PreparedBatch): Promise<void> {
    if (signal?.aborted) return
    const outcomes = await prepared.store()
    const bad = outcomes.flatMap((outcome, at) =>
      outcome.kind === 'bad' ? [{ number: lines[at]?.number ?? 0, error: outcome.error }] : [],
    )
    counts = addOutcomes(counts, outcomes, bad.length)
    await onBatch?.(counts, bad)
  }

  async function handOver(lines: readonly Line[]): Promise<void> {
    await beforeLast
    beforeLast = last
    const preparing = target.prepare(lines)
    last = Promise.all([preparing, beforeLast]).then(([prepared]) => store(lines, prepared))
    // Both are awaited later; until then a rejection must not count as unhandled.
    preparing.catch(() => {})
    last.catch(() => {})
  }

  try {
    for await (const lines of batchesOf(stoppedBy(source, signal), batchLines)) {
      if (signal?.aborted) break
      await handOver(lines)
    }
  } finally {
    await last
  }
  return counts
}

function addOutcomes(before: ImportCounts, outcomes: readonly Outcome[], bad: number): ImportCounts {
  const written = outcomes.filter(({ kind }) => kind === 'written').length
  return {
    lines: before.lines + outcomes.length,
    written: before.written + written,
    unchanged: before.unchanged + outcomes.length - written - bad,
    bad: before.bad + bad,
  }
}

async function* batchesOf(source: AsyncIterable<Uint8Array>, batchLines: number): AsyncGenerator<Line[]> {
  let batch: Line[] = []
  let bytes = 0
  for await (const lines of readLines(source)) {
    for (const line of lines) {
      batch.push(line)
      bytes += line.content?.length ?? 0
      if (batch.length < batchLines && bytes < BATCH_BYTES) continue
      yield batch
      batch = []
      bytes = 0
    }
  }
  if (batch.length > 0) yield batch
}

/** Ends when the signal fires, even while the source is silent. */
async function* stoppedBy(source: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) {
  if (signal === undefined) return yield* source
  const iterator = source[Symbol.asyncIterator]()
  for (;;) {
    const next = await unlessStopped(iterator.next(), signal)
    if (next === undefined || next.done === true) return
    yield next.value
  }
}

/**
 * Undefined when the signal fires first. Promise.race with one long-lived promise of the signal would keep every value in memory that ever
 * won the race.
 */
async function unlessStopped<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: first, resolve, reject } = Promise.withResolvers<T | undefined>()
  using _listener = addAbortListener(signal, () => resolve(undefined))
  promise.then(resolve, reject)
  return await first
}
