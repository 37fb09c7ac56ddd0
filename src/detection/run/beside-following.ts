import { inLane } from '../../nodes/lanes.ts'
import { LeaseLostError } from '../../store/leases-repository.ts'
import type { FollowedChain } from './followed-chain.ts'
import { keepLease } from './keep-lease.ts'

/** What is done beside following, while this process holds the lease of the chain. */

/** Compares the nodes of the chain and repairs what one got wrong, while this process follows it. Never rejects. */
export async function compareNodes(follower: FollowedChain, signal?: AbortSignal): Promise<void> {
  const { blocks, trust, network, logger } = follower
  const [final] = blocks.position()?.blocks ?? []
  if (!follower.isFollowing || final === undefined) return
  try {
    await keepLease(follower, (ending) => inLane('ENRICHMENT', () => trust.tick(final, ending)), signal)
  } catch (error) {
    if (signal?.aborted || error instanceof LeaseLostError) return
    logger.warn({ chain: network, err: error }, 'the nodes of the chain could not be compared; it is tried again')
  }
}

/** Takes one step of back-fill. @throws what a step throws */
export async function fillStep(follower: FollowedChain, signal?: AbortSignal) {
  const { backfill, backfillHealth } = follower
  const outcome = await inLane('BACKFILL', () => keepLease(follower, (ending) => backfill.step(ending), signal))
  if (outcome.kind === 'AGAIN' || outcome.kind === 'WAIT') backfillHealth.waits(outcome.reason)
  else backfillHealth.moved()
  return outcome
}
