import { followedContracts } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { declareContracts } from '../sql/chain-spans-repository.ts'
import { findChain, readBlocks } from '../sql/chain-state-repository.ts'
import { createFinality } from './finality.ts'
import {
  advance,
  type BlockFollowerOptions,
  type FollowerState,
  noteAgreement,
  noteDisagreement,
  waitForNode,
} from './follower-state.ts'
import {
  ALARM,
  afterRewind,
  CAUGHT_UP,
  chooseStep,
  decideFailure,
  decideFork,
  isForked,
  isReplacementCertain,
  linkHeaders,
  MORE,
  type NextStep,
  NO_SUSPICION,
  noteReplacement,
  type Position,
  type StepOutcome,
  takeBlocksRead,
  withHeights,
} from './next-step.ts'
import { ChainMovedError, createEventReader, inChainOrder } from './read-events.ts'
import { createFinalBlocksReader, type WriteFinalBlocks } from './read-final-blocks.ts'

export type BlockFollower = ReturnType<typeof createBlockFollower>

/** Makes the follower of one chain: of final blocks that were missed as ranges of logs, then block by block by hash. What is far below is read by back-fill. */
export function createBlockFollower(options: BlockFollowerOptions) {
  const { config, chain, logger, clock } = options
  const readEvents = createEventReader({ ...chain, logger })
  const follower: FollowerState = {
    ...options,
    ...chain,
    finality: createFinality({ network: config.name, config: config.finality, logger, clock }),
    readEvents,
    readFinalBlocks: createFinalBlocksReader({ reader: chain.reader, readEvents, clock }),
    position: undefined,
    suspicion: NO_SUSPICION,
  }
  return {
    /**
     * Looks at the chain once and writes what is new.
     *
     * @throws RpcError, errors of the database; then nothing was written, and the next step begins where the last one ended
     */
    step: (signal?: AbortSignal) => step(follower, signal),
    /** How far this process knows the chain to be read; undefined before the first step. */
    position: () => follower.position,
    /** Forgets the position, so that the next step reads it from the database. */
    reset(): void {
      follower.position = undefined
    },
  }
}

async function step(follower: FollowerState, signal?: AbortSignal): Promise<StepOutcome> {
  try {
    return await takeStep(follower, signal)
  } catch (error) {
    const { config, reader, logger } = follower
    const { doubtsNode, retries, suspicion } = decideFailure(error, follower.suspicion)
    follower.suspicion = suspicion
    const reason = error instanceof Error ? error.message : String(error)
    if (doubtsNode) reader.doubt(reason)
    if (!retries) throw error
    logger.debug({ chain: config.name, reason }, 'the chain moved while it was read; it is read again')
    return { kind: 'AGAIN', reason }
  }
}

async function takeStep(follower: FollowerState, signal: AbortSignal | undefined): Promise<StepOutcome> {
  const before = follower.position ?? (await loadPosition(follower, signal))
  if (before === 'ALARM') return ALARM
  follower.position = before
  const { reader, finality, config } = follower
  const view = await reader.view(before.scanned.number, config.finality.useFinalizedTag, signal)
  if (isForked(before, view)) return resolveFork(follower, before, signal)
  follower.suspicion = { ...follower.suspicion, replacement: undefined }
  const finalBlock = finality.finalBlock(view, before.finalBlock)
  const at = withHeights(before, { head: view.head.number, finalBlock })
  return take(follower, chooseStep(at, view), { before, at }, signal)
}

async function take(
  follower: FollowerState,
  next: NextStep,
  { before, at }: { readonly before: Position; readonly at: Position },
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  switch (next.kind) {
    case 'JUMP':
      return jump(follower, at, next.to, signal)
    case 'CATCH_UP': {
      const write: WriteFinalBlocks = (last, findings) => advance(follower, at, { blocks: [last], findings }, signal)
      return follower.readFinalBlocks(next, write, signal)
    }
    case 'FOLLOW': {
      const followed = await followBlocks(follower, at, next.numbers, signal)
      noteAgreement(follower)
      return followed
    }
    case 'STAY':
      await writeHeights(follower, before, at, signal)
      noteAgreement(follower)
      return CAUGHT_UP
    case 'NODE_BEHIND':
      await writeHeights(follower, before, at, signal)
      noteDisagreement(follower, next.reason)
      return { kind: 'WAIT', reason: next.reason }
  }
}

async function writeHeights(
  follower: FollowerState,
  before: Position,
  at: Position,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (before.finalBlock === at.finalBlock && before.headBlock === at.headBlock) return
  await advance(follower, at, { blocks: [], findings: undefined }, signal)
}

/** Goes on at the last final block, and leaves the blocks before it to back-fill. */
async function jump(
  follower: FollowerState,
  at: Position,
  to: number,
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const [header] = await follower.reader.headers([to], signal)
  if (header === undefined) return waitForNode(follower, `block ${to} is final, and the node does not have it`)
  await advance(follower, at, { blocks: [header], findings: undefined, leavesUnread: true }, signal)
  return MORE
}

/** Reads blocks that are not final, each by its hash. */
async function followBlocks(
  follower: FollowerState,
  at: Position,
  numbers: readonly number[],
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const { reader, readEvents } = follower
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
  const findings = await readEvents({ logs: inChainOrder(logs), blocks, areFinal: false, isCanonical }, signal)
  await advance(follower, at, { blocks, findings }, signal)
  return tip.number === at.headBlock ? CAUGHT_UP : MORE
}

/** What loading a chain's position needs. */
type PositionSource = Pick<FollowerState, 'knex' | 'config' | 'reader' | 'writer' | 'finality'>

/**
 * Reads from the database how far a chain was read. Begins to follow one that was never followed.
 *
 * @returns ALARM where the chain is stopped
 * @throws RpcError, of kind WRONG_CHAIN where the nodes are of another chain than before
 */
async function loadPosition(source: PositionSource, signal: AbortSignal | undefined): Promise<Position | 'ALARM'> {
  const { knex, config, finality } = source
  const chainId = caip2Of(config.chainId)
  const stored = await findChain(knex, chainId)
  if (stored?.alarm !== undefined) return 'ALARM'
  if (stored === undefined) {
    await setFirstCheckpoint(source, signal)
    return loadPosition(source, signal)
  }
  await checkGenesis(source, stored.genesisHash, signal)
  finality.recall(stored.hasFinalizedTag)
  const addresses = followedContracts(config).map(({ address }) => address)
  await knex.transaction((trx) => declareContracts(trx, chainId, addresses, stored.scannedBlock))
  const blocks = await readBlocks(knex, chainId)
  const scanned = { number: stored.scannedBlock, hash: stored.scannedHash }
  const { headBlock, finalBlock } = stored
  return { scanned, blocks: blocks.length > 0 ? blocks : [scanned], headBlock, finalBlock }
}

/** A chain with the same id but another genesis block is another chain, and nothing that is stored is true of it. */
async function checkGenesis({ config, reader }: PositionSource, known: Hex, signal: AbortSignal | undefined) {
  const [genesis] = await reader.headers([0], signal)
  if (genesis === undefined || genesis.hash === known) return
  const text = `its genesis block was ${known} and is now ${genesis.hash}`
  throw new RpcError('WRONG_CHAIN', `${config.name} is not the chain that was followed before: ${text}`)
}

/** Sets the first checkpoint: the last final block. The blocks below it are read beside. */
async function setFirstCheckpoint(
  { config, reader, writer, finality }: PositionSource,
  signal: AbortSignal | undefined,
): Promise<void> {
  const view = await reader.view(0, config.finality.useFinalizedTag, signal)
  const byDepth = Math.max(0, view.head.number - config.finality.depth)
  const last = finality.finalBlock(view, byDepth)
  const [genesis, checkpoint] = await reader.headers([0, last], signal)
  if (genesis === undefined || checkpoint === undefined) {
    throw new RpcError('UNREACHABLE', `the node of ${config.name} does not have block ${last}`)
  }
  await writer.open(genesis.hash, checkpoint, view.head.number)
}

/** Takes back the blocks that a reorg replaced. If a final block was replaced, the chain is stopped. */
async function resolveFork(
  follower: FollowerState,
  at: Position,
  signal: AbortSignal | undefined,
): Promise<StepOutcome> {
  const { config, lease, reader, writer, logger } = follower
  const numbers = at.blocks.map(({ number }) => number)
  const decision = decideFork(at, await reader.headers(numbers, signal))
  switch (decision.kind) {
    case 'REWIND': {
      const { to } = decision
      await writer.rewind({ lease, from: at.scanned, to }, signal)
      logger.info(
        { chain: config.name, from: at.scanned.number, to: to.number },
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
async function confirmReplacement(follower: FollowerState, reason: string): Promise<StepOutcome> {
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
