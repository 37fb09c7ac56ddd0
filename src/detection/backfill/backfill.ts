import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { type BlockFollowerOptions } from '../follow/follower-state.ts'
import { CAUGHT_UP, MORE, type StepOutcome } from '../follow/next-step.ts'
import { createEventReader } from '../follow/read-events.ts'
import { createFinalBlocksReader } from '../follow/read-final-blocks.ts'
import type { Findings } from '../match/detected.ts'
import type { BlockHeader, ChainReader } from '../read/chain-reader.ts'
import { findLast } from '../read/find-last.ts'
import { type ReadContract, readSpans, type Span } from '../sql/chain-spans-repository.ts'
import { findChain, type StoredChain } from '../sql/chain-state-repository.ts'
import { oldestRequestOn, sinceRequest } from '../sql/topics-repository.ts'
import { SpanMovedError, type Start } from '../write/payment-writer.ts'
import { type BackfillMeter, createBackfillMeter } from './backfill-progress.ts'

export type Backfill = ReturnType<typeof createBackfill>

type BackfillOptions = Omit<BlockFollowerOptions, 'onReorg'>

interface State extends BackfillOptions {
  readonly readBlocks: ReturnType<typeof createFinalBlocksReader>
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
  const readEvents = createEventReader({ reader, tools, logger })
  const state: State = {
    ...options,
    readBlocks: createFinalBlocksReader({ reader, readEvents, clock }),
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
const SPAN_SLICE_MS = 5_000

/** Reads a span for a while. The next blocks are read and matched while what was found before is written. */
async function readSpan(
  state: State,
  { spans, span: chosen }: { readonly spans: readonly Span[]; readonly span: Span },
  finalBlock: number,
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const { chain, readBlocks } = state
  const others = spans.filter((each) => each !== chosen)
  const until = Math.min(chosen.until, finalBlock)
  const endsAtMs = performance.now() + SPAN_SLICE_MS
  const writing = createSpanWriting(state, chosen, (span) => state.progress.note([...others, span]), signal)
  let outcome: StepOutcome = MORE
  try {
    while (writing.next() <= until && performance.now() < endsAtMs) {
      const from = writing.next()
      const wanted = { from, until: Math.min(until, from + writing.width() - 1), addresses: chosen.addresses }
      outcome = await readBlocks(wanted, (last, findings) => writing.write(last, findings), signal)
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

/** The first block of a chain to read. It replaces a lower stored one where it is from the chains file, not where it is from the time of a request. */
type FoundStart = Pick<Start, 'block' | 'since' | 'mayRaise'>

/** Whether the start has to be found again: none is stored, the chains file has changed, or an older request was stored. */
function isStartOutdated(stored: StoredChain, { startBlock, since }: ChainConfig): boolean {
  if (stored.startBlock === undefined) return true
  if (startBlock !== undefined) return stored.startBlock !== startBlock || stored.startSince !== undefined
  if (since !== undefined) return stored.startSince?.getTime() !== since.getTime()
  if (stored.startSince === undefined) return true
  return stored.wantedSince !== undefined && stored.wantedSince < stored.startSince
}

/**
 * Finds the block from which a chain is read: the configured one, else that of the oldest request. Without a request, it is the last block that was read.
 *
 * @throws RpcError
 */
async function findStart(
  { knex, config, reader }: { readonly knex: Knex; readonly config: ChainConfig; readonly reader: ChainReader },
  stored: StoredChain,
  signal: AbortSignal | undefined,
): Promise<FoundStart> {
  const { startBlock, since } = config
  if (startBlock !== undefined) return { block: startBlock, since: undefined, mayRaise: true }
  if (since !== undefined) {
    return { block: await findFirstBlock(reader, since, stored.finalBlock, signal), since, mayRaise: true }
  }
  const wanted = await findWanted(knex, config, stored)
  const block = await findFirstBlock(reader, wanted, stored.scannedBlock, signal)
  return { block, since: wanted, mayRaise: false }
}

/** The earliest of three times: that of the oldest stored request, that which older requests have asked for since, and that of the stored start. */
async function findWanted(knex: Knex, { name }: ChainConfig, stored: StoredChain): Promise<Date> {
  const { startSince, wantedSince, scannedTime } = stored
  const oldest = await oldestRequestOn(knex, name)
  const times = [startSince, wantedSince, oldest && sinceRequest(oldest)].filter((time) => time !== undefined)
  return times.length === 0 ? scannedTime : new Date(Math.min(...times.map((time) => time.getTime())))
}

/**
 * Finds the first block whose time is not before a moment, by halving: about 25 requests on a chain of 30 million blocks.
 *
 * @param until - the highest block to look at
 * @returns `until` + 1 where all blocks are older
 * @throws RpcError
 */
async function findFirstBlock(
  reader: Pick<ChainReader, 'headers'>,
  since: Date,
  until: number,
  signal: AbortSignal | undefined,
): Promise<number> {
  if (since.getTime() <= 0) return 0
  const isBefore = async (block: number) => {
    const [header] = await reader.headers([block], signal)
    if (header === undefined) throw new RpcError('UNREACHABLE', `the node does not have block ${block}`)
    return header.timestampSec * 1_000 < since.getTime()
  }
  return (await findLast(-1, until, isBefore)) + 1
}

/** From which block each contract is read. The genesis block has no logs. */
function contractsFrom(config: ChainConfig, start: number): ReadContract[] {
  return followedContracts(config).map(({ address, fromBlock }) => ({
    address,
    fromBlock: Math.max(1, fromBlock, start),
  }))
}
