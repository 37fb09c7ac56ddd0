import type { WaybillError } from '../errors/waybill-error.ts'
import { type Line, LONGEST_LINE_BYTES, readLines } from './read-lines.ts'

/** What became of a line. */
export type Outcome =
  | { readonly kind: 'written' }
  | { readonly kind: 'unchanged' }
  | { readonly kind: 'bad'; readonly error: WaybillError }

/** What lines are read as, and where they go. */
export interface LineTarget {
  /**
   * Reads a batch, while those before it may still be read or stored; batches come in the order of the lines. Work that takes long leaves
   * room for other work in between.
   */
  prepare(lines: readonly Line[]): Promise<PreparedBatch>
}

/** Lines that were read. */
export interface PreparedBatch {
  /**
   * Stores them in one transaction: all of them are there afterwards, or nothing. Not called before all batches before it are stored.
   *
   * @returns an outcome a line, in their order
   */
  store(): Promise<readonly Outcome[]>
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

/** Enough that a batch costs little beside its rows, and little enough that three fit into memory. */
const BATCH_LINES = 4_000
const BATCH_BYTES = 8 * LONGEST_LINE_BYTES

/**
 * Reads lines of JSON and stores them in batches: while one is stored, the next is prepared and the one after it is read. What is wrong with a
 * line is told of, and the others go in. Holds three batches at most.
 *
 * @returns the counts of what was stored, also when the signal has fired
 * @throws what reading or storing met; the batches before it are stored
 */
export async function importLines(
  source: AsyncIterable<Uint8Array>,
  target: LineTarget,
  { onBatch, signal, batchLines = BATCH_LINES }: ImportOptions = {},
): Promise<ImportCounts> {
  let counts: ImportCounts = { lines: 0, written: 0, unchanged: 0, bad: 0 }
  /** Each of them waits for those before it. */
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
    // both are awaited later, and must not count as unhandled until then
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

/** Ends when the signal fires, also while nothing comes. */
async function* stoppedBy(source: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined) {
  if (signal === undefined) return yield* source
  const iterator = source[Symbol.asyncIterator]()
  for (;;) {
    const next = await unlessStopped(iterator.next(), signal)
    if (next === undefined || next.done === true) return
    yield next.value
  }
}

/** Undefined when the signal fires first. Not by racing with one promise of the signal's: it would hold on to everything that has won. */
function unlessStopped<T>(promise: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: first, resolve, reject } = Promise.withResolvers<T | undefined>()
  const stop = () => resolve(undefined)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  promise.then(resolve, reject)
  return first.finally(() => signal.removeEventListener('abort', stop))
}
