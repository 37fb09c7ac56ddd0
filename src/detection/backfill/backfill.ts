import { caip2Of } from '../../domain/chain.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { BlockFollowerOptions } from '../follow/follower-state.ts'
import { createEventReader } from '../follow/read-events.ts'
import { createFinalBlocksReader, type FinalBlocksReader } from '../follow/read-final-blocks.ts'
import { CAUGHT_UP, MORE, type StepOutcome } from '../follow/step-outcome.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import { readSpans, type Span } from '../sql/chain-spans-repository.ts'
import { findChain, type StoredChain } from '../sql/chain-state-repository.ts'
import { SpanMovedError } from '../write/payment-writer.ts'
import { type BackfillMeter, createBackfillMeter } from './backfill-progress.ts'
import { contractsFrom, findStart, isStartOutdated } from './find-start.ts'

export type Backfill = ReturnType<typeof createBackfill>

type BackfillOptions = Omit<BlockFollowerOptions, 'onReorg'>

interface State extends BackfillOptions {
  readonly blocks: FinalBlocksReader
  /** Whether this process has stored the first block that follows from its chains file. */
  isStartApplied: boolean
  /** The span that could not be read the last time: others are read before it. */
  failed: Span | undefined
  readonly progress: BackfillMeter
}

/**
 * Makes the back-fill of one chain. It reads final blocks that following left out, beside following: those before the chain was followed, missed during
 * a long stop, or of added contracts. Its progress is in the database, so it continues after any stop.
 */
export function createBackfill(options: BackfillOptions) {
  const { chain, logger, clock } = options
  const { reader, tools } = chain.backfill
  const events = createEventReader({ reader, tools, logger })
  const state: State = {
    ...options,
    blocks: createFinalBlocksReader({ reader, events, clock }),
    isStartApplied: false,
    failed: undefined,
    progress: createBackfillMeter(() => performance.now()),
  }
  return {
    /**
     * Reads some blocks and writes what they hold. The process must hold the chain's lease.
     *
     * @throws RpcError, LeaseLostError, errors of the database; then nothing was written
     */
    step: (signal?: AbortSignal) => step(state, signal),
    /** Undefined where nothing is left, or before the first step. */
    progress: () => state.progress.progress(),
  }
}

async function step(state: State, signal: AbortSignal | undefined): Promise<StepOutcome> {
  const { knex, config } = state
  const chainId = caip2Of(config.chainId)
  const stored = await findChain(knex, chainId)
  if (stored === undefined || stored.alarm !== undefined) return CAUGHT_UP
  if (!state.isStartApplied || isStartOutdated(stored, config)) {
    await applyStart(state, stored, signal)
    return MORE
  }
  const spans = await readSpans(knex, chainId)
  state.progress.note(spans)
  const span = chooseSpan(spans, stored.finalBlock, state.failed)
  return span === undefined ? CAUGHT_UP : readSpan(state, { spans, span }, stored.finalBlock, signal)
}

async function applyStart(state: State, stored: StoredChain, signal: AbortSignal | undefined): Promise<void> {
  const { knex, config, lease, chain, logger } = state
  const known = isStartOutdated(stored, config) ? undefined : stored.startBlock
  const start =
    known === undefined
      ? await findStart({ knex, config, reader: chain.backfill.reader }, stored, signal)
      : {
          block: known,
          since: stored.startSince,
          mayRaise: config.startBlock !== undefined || config.since !== undefined,
        }
  const contracts = contractsFrom(config, start.block)
  await chain.writer.setStart({ lease, ...start, contracts }, signal)
  state.isStartApplied = true
  if (start.since !== undefined && stored.startBlock !== start.block) {
    logger.info(
      { chain: config.name, startBlock: start.block, since: start.since },
      'found the block from which the chain is read',
    )
  }
}

/** Chooses the span to read: the highest, since its payments are the newest; one that failed comes last. @returns undefined where none has final blocks left */
function chooseSpan(spans: readonly Span[], finalBlock: number, failed?: Span): Span | undefined {
  const readable = spans.filter(({ next }) => next <= finalBlock)
  const isFailed = ({ from, next, until }: Span) =>
    failed !== undefined && from === failed.from && next === failed.next && until === failed.until
  return readable.find((span) => !isFailed(span)) ?? readable[0]
}

/**
 * Events to match and write in one step. While a step is matched, following has no processor time and the lease is not renewed: a step that took longer
 * than the lease would lose it. Smaller steps also overlap better, since one is matched while the database still receives the one before. With even
 * smaller ones, the fixed cost of each statement would weigh more.
 */
const EVENTS_A_STEP = 1_000

/** How long one span is read before the span to read is chosen again. */
const SPAN_TURN_MS = 5_000

/** Reads a span for a while. The next blocks are read and matched while what was found before is written. */
async function readSpan(
  state: State,
  { spans, span: chosen }: { readonly spans: readonly Span[]; readonly span: Span },
  finalBlock: number,
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const { chain, blocks } = state
  const others = spans.filter((each) => each !== chosen)
  const until = Math.min(chosen.until, finalBlock)
  const endsAtMs = performance.now() + SPAN_TURN_MS
  const writing = createSpanWriting(state, chosen, (span) => state.progress.note([...others, span]), signal)
  let outcome: StepOutcome = MORE
  try {
    while (writing.next() <= until && performance.now() < endsAtMs) {
      const from = writing.next()
      const wanted = { from, until: Math.min(until, from + writing.width() - 1), addresses: chosen.addresses }
      const read = await blocks.read(wanted, (last, findings) => writing.write(last, findings), signal)
      outcome = read.kind === 'LACKING' ? { kind: 'WAIT', reason: read.reason } : read
      if (read.kind === 'LACKING') chain.backfill.reader.doubt(read.reason)
      // After a range that was too wide, a narrower one is asked for at once.
      if (outcome.kind === 'WAIT') break
    }
    await writing.end()
    state.failed = outcome.kind === 'WAIT' ? writing.span() : undefined
    return outcome
  } catch (error) {
    // What was read before the failure is written.
    await writing.end().catch(() => {})
    if (error instanceof SpanMovedError) return MORE
    state.failed = writing.span()
    // Another node may have what this one lacks. A refusal for the size is no reason to avoid the node.
    if (error instanceof RpcError && error.kind !== 'TOO_LARGE') chain.backfill.reader.doubt(error.message)
    throw error
  }
}

function countEvents({ accounts, unmatched }: Findings): number {
  return [...accounts.values()].reduce((sum, { payments }) => sum + payments.length, unmatched.length)
}

/** Makes what writes the parts of a span one after the other. */
function createSpanWriting(
  { lease, chain, onCommitted }: State,
  chosen: Span,
  onWritten: (span: Span) => void,
  signal: AbortSignal | undefined,
) {
  let span = chosen
  let { next } = chosen
  let width = Number.POSITIVE_INFINITY
  let before: Findings | undefined
  let running: Promise<void> = Promise.resolve()

  async function commit(last: BlockHeader, findings: Findings): Promise<void> {
    await chain.writer.writeSpan({ lease, span, last, findings, unseen: before }, signal)
    span = { ...span, next: last.number + 1 }
    before = findings
    onWritten(span)
    await onCommitted(findings)
  }

  return {
    /** The block after the last part that is written or being written. */
    next: () => next,
    /** How many blocks to read next, computed from the events in the last part. */
    width: () => width,
    /** Begins to write a part once the part before is written. @throws what writing that one threw */
    async write(last: BlockHeader, findings: Findings): Promise<void> {
      const blocks = last.number - next + 1
      width = Math.max(1, Math.floor((blocks * EVENTS_A_STEP) / Math.max(1, countEvents(findings))))
      await running
      next = last.number + 1
      running = commit(last, findings)
      // The next `write`, or `end`, throws its error.
      running.catch(() => {})
    },
    /** Resolves once all is written. @throws what writing threw */
    end: () => running,
    /** The span as it is stored. */
    span: () => span,
  }
}
