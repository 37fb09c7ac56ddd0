import { type FollowerState, waitForNode } from './follower-state.ts'
import { afterRewind, decideFork, type Position } from './next-step.ts'
import { ALARM, MORE, type StepOutcome } from './step-outcome.ts'
import { isReplacementCertain, noteReplacement } from './suspicion.ts'

/** Takes back the blocks that a reorg replaced. If a final block was replaced, the chain is stopped. */
export async function resolveFork(
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
