import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { Lease } from '../../store/leases-repository.ts'
import type { Findings } from '../match/detected.ts'
import type { OpenChain } from '../open-chain.ts'
import { readSpans, type Span } from '../sql/chain-spans-repository.ts'
import { findChain, type StoredChain } from '../sql/chain-state-repository.ts'
import { SpanMovedError } from '../write/payment-writer.ts'
import type { StepOutcome } from './block-follower.ts'
import { contractsFrom, findStart, isStartOpen } from './find-start.ts'
import { createEventReader } from './read-events.ts'
import { createFinalBlocksReader, type FinalBlocksReader } from './read-final-blocks.ts'

/** Reads final blocks that following left out, beside following: those before the chain was followed, missed during a long stop, or of added contracts. */
export interface Backfill {
  /**
   * Reads some blocks and writes what they hold. The process must hold the chain's lease.
   *
   * @throws RpcError, LeaseLostError, errors of the database; then nothing was written
   */
  step(signal?: AbortSignal): Promise<StepOutcome>
  /** What is left; undefined where nothing is, or before the first step. */
  left(): readonly Span[] | undefined
}

interface BackfillOptions {
  readonly knex: Knex
  readonly config: ChainConfig
  readonly lease: Lease
  readonly chain: OpenChain
  readonly logger: Logger
  readonly clock: () => Date
  /** Called after each commit with what was found. */
  readonly onCommitted: (findings: Findings) => Promise<void>
}

interface State extends BackfillOptions {
  readonly blocks: FinalBlocksReader
  /** Whether the configuration of this process was applied. */
  isStartApplied: boolean
  /** The span that could not be read last: the others go first. */
  failed: Span | undefined
  left: readonly Span[] | undefined
}

const MORE: StepOutcome = { kind: 'MORE' }
const CAUGHT_UP: StepOutcome = { kind: 'CAUGHT_UP' }

/** Makes the back-fill of one chain. All that it knows is in the database, so it goes on after any stop. */
export function createBackfill(options: BackfillOptions): Backfill {
  const { chain, logger, clock } = options
  const { reader, tools } = chain.backfill
  const events = createEventReader({ reader, tools, logger })
  const state: State = {
    ...options,
    blocks: createFinalBlocksReader({ reader, events, clock }),
    isStartApplied: false,
    failed: undefined,
    left: undefined,
  }
  return { step: (signal) => step(state, signal), left: () => state.left }
}

async function step(state: State, signal: AbortSignal | undefined): Promise<StepOutcome> {
  const { knex, config } = state
  const chainId = caip2Of(config.chainId)
  const stored = await findChain(knex, chainId)
  if (stored === undefined || stored.alarm !== undefined) return CAUGHT_UP
  if (!state.isStartApplied || isStartOpen(stored, config)) {
    await applyStart(state, stored, signal)
    return MORE
  }
  const spans = await readSpans(knex, chainId)
  state.left = spans.length === 0 ? undefined : spans
  const span = chooseSpan(spans, stored.finalBlock, state.failed)
  return span === undefined ? CAUGHT_UP : readSpan(state, span, stored.finalBlock, signal)
}

async function applyStart(state: State, stored: StoredChain, signal: AbortSignal | undefined): Promise<void> {
  const { knex, config, lease, chain, logger } = state
  const known = isStartOpen(stored, config) ? undefined : stored.startBlock
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
    logger.info({ network: config.name, startBlock: start.block, since: start.since }, 'the chain is read from here on')
  }
}

/** Chooses the span to read: the highest, since newer payments are waited for; one that failed comes last. Undefined where none has final blocks left. */
function chooseSpan(spans: readonly Span[], finalBlock: number, failed?: Span): Span | undefined {
  const readable = spans.filter(({ next }) => next <= finalBlock)
  const isFailed = ({ from, next, until }: Span) =>
    failed !== undefined && from === failed.from && next === failed.next && until === failed.until
  return readable.find((span) => !isFailed(span)) ?? readable[0]
}

async function readSpan(
  state: State,
  span: Span,
  finalBlock: number,
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const { lease, chain, blocks, onCommitted } = state
  const { next: from, addresses } = span
  const until = Math.min(span.until, finalBlock)
  try {
    const outcome = await blocks.read(
      { from, until, addresses },
      async (last, findings) => {
        await chain.writer.writeSpan({ lease, span, last, findings }, signal)
        await onCommitted(findings)
      },
      signal,
    )
    state.failed = outcome.kind === 'LACKING' ? span : undefined
    if (outcome.kind !== 'LACKING') return outcome
    chain.backfill.reader.doubt(outcome.reason)
    return { kind: 'WAIT', reason: outcome.reason }
  } catch (error) {
    if (error instanceof SpanMovedError) return MORE
    state.failed = span
    // Another node may have what this one lacks. What is too large is so for every node.
    if (error instanceof RpcError && error.kind !== 'TOO_LARGE') chain.backfill.reader.doubt(error.message)
    throw error
  }
}
