import { createFinality } from './finality.ts'
import { followBlocks } from './follow-blocks.ts'
import {
  advance,
  type BlockFollowerOptions,
  type FollowerState,
  noteAgreement,
  noteDisagreement,
  waitForNode,
} from './follower-state.ts'
import { loadPosition } from './load-position.ts'
import { chooseStep, isForked, type NextStep, type Position, withHeights } from './next-step.ts'
import { createEventReader } from './read-events.ts'
import { createFinalBlocksReader, type WriteFinalBlocks } from './read-final-blocks.ts'
import { resolveFork } from './resolve-fork.ts'
import { ALARM, CAUGHT_UP, MORE, type StepOutcome } from './step-outcome.ts'
import { decideFailure, NO_SUSPICION } from './suspicion.ts'

export type BlockFollower = ReturnType<typeof createBlockFollower>

/** Makes the follower of one chain: of final blocks that were missed as ranges of logs, then block by block by hash. What is far below is read by back-fill. */
export function createBlockFollower(options: BlockFollowerOptions) {
  const { config, chain, logger, clock } = options
  const events = createEventReader({ ...chain, logger })
  const follower: FollowerState = {
    ...options,
    ...chain,
    finality: createFinality({ network: config.name, config: config.finality, logger, clock }),
    events,
    finalBlocks: createFinalBlocksReader({ reader: chain.reader, events, clock }),
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
    return await look(follower, signal)
  } catch (error) {
    const { config, reader, logger } = follower
    const { doubtsNode, looksAgain, suspicion } = decideFailure(error, follower.suspicion)
    follower.suspicion = suspicion
    const reason = error instanceof Error ? error.message : String(error)
    if (doubtsNode) reader.doubt(reason)
    if (!looksAgain) throw error
    logger.debug({ chain: config.name, reason }, 'the chain moved while it was read; it is read again')
    return { kind: 'AGAIN', reason }
  }
}

async function look(follower: FollowerState, signal: AbortSignal | undefined): Promise<StepOutcome> {
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
      const outcome = await follower.finalBlocks.read(next, write, signal)
      return outcome.kind === 'LACKING' ? waitForNode(follower, outcome.reason) : outcome
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
