import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Logger } from '../../domain/logger.ts'
import type { Lease } from '../../store/leases-repository.ts'
import type { Findings } from '../match/detected.ts'
import type { OpenChain } from '../open-chain.ts'
import type { BlockHeader } from '../read/chain-reader.ts'
import { createFinality, type Finality } from './finality.ts'
import { loadPosition } from './load-position.ts'
import {
  afterBlocks,
  afterRewind,
  chooseStep,
  decideFork,
  isForked,
  linkHeaders,
  type NextStep,
  type Position,
  takeBlocksRead,
  withHeights,
} from './next-step.ts'
import { ChainMovedError, createEventReader, type EventReader, inChainOrder } from './read-events.ts'
import {
  createFinalBlocksReader,
  type FinalBlocksReader,
  type WantedBlocks,
  type WriteFinalBlocks,
} from './read-final-blocks.ts'
import {
  decideFailure,
  isContradictionOfNode,
  isReplacementCertain,
  NO_SUSPICION,
  noteContradiction,
  noteReplacement,
  type Suspicion,
} from './suspicion.ts'

/**
 * What a step came to.
 * - `MORE`: it moved, and there is more to do at once
 * - `CAUGHT_UP`: there is nothing to do before the next block
 * - `ALARM`: the chain is stopped
 * - `AGAIN`: it came to nothing and is to be tried again
 * - `WAIT`: it came to nothing because of the node
 */
export type StepOutcome =
  | { readonly kind: 'MORE' | 'CAUGHT_UP' | 'ALARM' }
  | { readonly kind: 'AGAIN' | 'WAIT'; readonly reason: string }

const MORE: StepOutcome = { kind: 'MORE' }
const CAUGHT_UP: StepOutcome = { kind: 'CAUGHT_UP' }
const ALARM: StepOutcome = { kind: 'ALARM' }

/** Follows one chain: final blocks that were missed as ranges of logs, then block by block by hash. What is far below is read by back-fill. */
export interface BlockFollower {
  /**
   * Looks at the chain once and writes what is new.
   *
   * @throws RpcError, errors of the database; then nothing was written, and the next step begins where the last one ended
   */
  step(signal?: AbortSignal): Promise<StepOutcome>
  /** How far this process knows the chain to be read; undefined before the first step. */
  position(): Position | undefined
  /** Forgets the position, so that the next step reads it from the database. */
  reset(): void
}

interface BlockFollowerOptions {
  readonly knex: Knex
  readonly config: ChainConfig
  readonly lease: Lease
  readonly chain: OpenChain
  readonly logger: Logger
  readonly clock: () => Date
  /** Called after each commit with what was found. */
  readonly onCommitted: (findings: Findings) => Promise<void>
  /** Called after a reorg was taken back, with the number of blocks that it removed. */
  readonly onReorg: (blocks: number) => void
}

/** A follower: what it works with, and what it remembers. The rules are in `next-step.ts`, `suspicion.ts`, `finality.ts`, `log-range.ts`. */
interface Follower extends BlockFollowerOptions, OpenChain {
  readonly finality: Finality
  readonly events: EventReader
  readonly finalBlocks: FinalBlocksReader
  position: Position | undefined
  suspicion: Suspicion
}

/** Makes the follower of one chain. */
export function createBlockFollower(options: BlockFollowerOptions): BlockFollower {
  const { config, chain, logger, clock } = options
  const events = createEventReader({ ...chain, logger })
  const follower: Follower = {
    ...options,
    ...chain,
    finality: createFinality({ network: config.name, config: config.finality, logger, clock }),
    events,
    finalBlocks: createFinalBlocksReader({ reader: chain.reader, events, clock }),
    position: undefined,
    suspicion: NO_SUSPICION,
  }
  return {
    step: (signal) => step(follower, signal),
    position: () => follower.position,
    reset: () => {
      follower.position = undefined
    },
  }
}

async function step(follower: Follower, signal?: AbortSignal): Promise<StepOutcome> {
  try {
    return await look(follower, signal)
  } catch (error) {
    const { config, reader, logger } = follower
    const { doubtsNode, looksAgain, suspicion } = decideFailure(error, follower.suspicion)
    follower.suspicion = suspicion
    const reason = error instanceof Error ? error.message : String(error)
    if (doubtsNode) reader.doubt(reason)
    if (!looksAgain) throw error
    logger.debug({ network: config.name, reason }, 'the chain moved while it was read; it is read again')
    return { kind: 'AGAIN', reason }
  }
}

async function look(follower: Follower, signal: AbortSignal | undefined): Promise<StepOutcome> {
  const before = follower.position ?? (await load(follower, signal))
  if (before === undefined) return ALARM
  const { reader, finality, config } = follower
  const view = await reader.view(before.scanned.number, config.finality.useFinalizedTag, signal)
  if (isForked(before, view)) return resolveFork(follower, before, signal)
  follower.suspicion = { ...follower.suspicion, replacement: undefined }
  const finalBlock = finality.finalBlock(view, before.finalBlock)
  const at = withHeights(before, { head: view.head.number, finalBlock })
  return take(follower, chooseStep(at, view), { before, at }, signal)
}

/** @returns undefined where the chain is stopped */
async function load(follower: Follower, signal: AbortSignal | undefined): Promise<Position | undefined> {
  const loaded = await loadPosition(follower, signal)
  if (loaded === 'ALARM') return undefined
  follower.position = loaded
  return loaded
}

async function take(
  follower: Follower,
  next: NextStep,
  { before, at }: { readonly before: Position; readonly at: Position },
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  switch (next.kind) {
    case 'JUMP':
      return jump(follower, at, next.to, signal)
    case 'CATCH_UP': {
      const write: WriteFinalBlocks = (last, findings) => advance(follower, at, { blocks: [last], findings }, signal)
      return readFinal(follower, next, write, signal)
    }
    case 'FOLLOW': {
      const followed = await followBlocks(follower, at, next.numbers, signal)
      trust(follower)
      return followed
    }
    case 'STAY':
      await writeHeights(follower, before, at, signal)
      trust(follower)
      return CAUGHT_UP
    case 'NODE_BEHIND':
      await writeHeights(follower, before, at, signal)
      contradict(follower, next.reason)
      return { kind: 'WAIT', reason: next.reason }
  }
}

/** The node's answers agreed with what was read. */
function trust(follower: Follower): void {
  follower.suspicion = { ...follower.suspicion, contradictions: 0 }
}

/** The node's answers contradicted what was read. */
function contradict(follower: Follower, reason: string): void {
  follower.suspicion = noteContradiction(follower.suspicion)
  if (isContradictionOfNode(follower.suspicion)) follower.reader.doubt(reason)
}

/** The node lacks blocks that it should have; another may have them. */
function waitForNode({ reader }: Follower, reason: string): StepOutcome {
  reader.doubt(reason)
  return { kind: 'WAIT', reason }
}

async function writeHeights(
  follower: Follower,
  before: Position,
  at: Position,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (before.finalBlock === at.finalBlock && before.headBlock === at.headBlock) return
  await advance(follower, at, { blocks: [], findings: undefined }, signal)
}

async function advance(
  follower: Follower,
  at: Position,
  read: {
    readonly blocks: readonly BlockHeader[]
    readonly findings: Findings | undefined
    readonly leavesUnread?: boolean
  },
  signal: AbortSignal | undefined,
): Promise<void> {
  const { lease, writer, finality, onCommitted } = follower
  const { scanned: from, headBlock, finalBlock } = at
  const { blocks, findings } = read
  const hasFinalizedTag = finality.hasTag()
  await writer.advance({ lease, from, headBlock, finalBlock, hasFinalizedTag, ...read }, signal)
  follower.position = afterBlocks(at, blocks)
  if (findings !== undefined) await onCommitted(findings)
}

/** Goes on at the last final block, and leaves the blocks before it to back-fill. */
async function jump(
  follower: Follower,
  at: Position,
  to: number,
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const [header] = await follower.reader.headers([to], signal)
  if (header === undefined) return waitForNode(follower, `block ${to} is final, and the node does not have it`)
  await advance(follower, at, { blocks: [header], findings: undefined, leavesUnread: true }, signal)
  return MORE
}

async function readFinal(
  follower: Follower,
  wanted: WantedBlocks,
  write: WriteFinalBlocks,
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const outcome = await follower.finalBlocks.read(wanted, write, signal)
  return outcome.kind === 'LACKING' ? waitForNode(follower, outcome.reason) : outcome
}

/** Reads blocks that are not final, each by its hash. */
async function followBlocks(
  follower: Follower,
  at: Position,
  numbers: readonly number[],
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const { reader, events } = follower
  const linked = linkHeaders(at.scanned, await reader.headers(numbers, signal))
  const hashesAsked = linked.map(({ hash }) => hash)
  const { blocks, logs, refusal } = takeBlocksRead(linked, await reader.logsOfBlocks(hashesAsked, signal))
  const tip = blocks.at(-1)
  if (tip === undefined) {
    throw new ChainMovedError(refusal?.message ?? `the parent of block ${numbers[0]} is not the block that was read`)
  }
  // A node may answer the hash of an orphaned block with no logs. If the last block is part of the chain now, all below it were too.
  const [current] = await reader.headers([tip.number], signal)
  if (current?.hash !== tip.hash) throw new ChainMovedError(`block ${tip.number} was replaced while it was read`)
  const hashes = new Set(blocks.map(({ hash }) => hash))
  const isCanonical = (_: number, hash: Hex) => hashes.has(hash)
  const findings = await events.read({ logs: inChainOrder(logs), blocks, areFinal: false, isCanonical }, signal)
  await advance(follower, at, { blocks, findings }, signal)
  return tip.number === at.headBlock ? CAUGHT_UP : MORE
}

/** Takes back the blocks that a reorg replaced. If a final block was replaced, the chain is stopped. */
async function resolveFork(follower: Follower, at: Position, signal: AbortSignal | undefined): Promise<StepOutcome> {
  const { config, lease, reader, writer, logger } = follower
  const numbers = at.blocks.map(({ number }) => number)
  const decision = decideFork(at, await reader.headers(numbers, signal))
  switch (decision.kind) {
    case 'REWIND': {
      const { to } = decision
      await writer.rewind({ lease, from: at.scanned, to }, signal)
      logger.info(
        { network: config.name, from: at.scanned.number, to: to.number },
        'reorg: the blocks above were removed',
      )
      follower.position = afterRewind(at, to)
      follower.onReorg(at.scanned.number - to.number)
      return MORE
    }
    case 'CAME_BACK':
      return { kind: 'AGAIN', reason: decision.reason }
    case 'NODE_BEHIND':
      return waitForNode(follower, decision.reason)
    case 'FINAL_REPLACED':
      return confirmReplacement(follower, decision.reason)
  }
}

/** Asks the other nodes whether a final block was replaced, one node a step, then stops the chain. */
async function confirmReplacement(follower: Follower, reason: string): Promise<StepOutcome> {
  const { config, lease, reader, writer, clock } = follower
  const nowMs = clock().getTime()
  const suspicion = noteReplacement(follower.suspicion, nowMs)
  if (!isReplacementCertain(suspicion, { nodes: config.rpcUrls.length, nowMs })) {
    follower.suspicion = noteReplacement(suspicion, nowMs, reader.doubt(reason))
    return { kind: 'AGAIN', reason }
  }
  await writer.raiseAlarm(lease, reason)
  follower.suspicion = { ...suspicion, replacement: undefined }
  follower.position = undefined
  return ALARM
}
