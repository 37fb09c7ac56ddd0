import { compareNodes, fillStep } from './beside-following.ts'
import { ChainFollowedError, holdLease } from './chain-lease.ts'
import { type FollowOutcome, followStep } from './follow-step.ts'
import type { FollowedChain } from './followed-chain.ts'

/** Steps in a row that come to nothing, after which a scan gives up. */
const MAX_FRUITLESS_STEPS = 50

/** Steps until there is nothing new and nothing left to back-fill. @throws what a step throws; ChainFollowedError */
export async function scanOnce(follower: FollowedChain): Promise<void> {
  try {
    await repeat(follower.network, () => followStep(follower))
    // The steps of a back-fill may be too short to renew the lease, and yet together take longer than it lasts.
    await repeat(follower.network, async () =>
      (await holdLease(follower)) ? fillStep(follower) : { kind: 'ELSEWHERE' as const },
    )
  } finally {
    // A node that was found out may answer rightly by now.
    await compareNodes(follower)
  }
  await follower.reporter.write()
}

/** Steps until nothing is left to do. */
async function repeat(network: string, takeStep: () => Promise<FollowOutcome>): Promise<void> {
  for (let fruitless = 0; ; ) {
    const outcome = await takeStep()
    if (outcome.kind === 'ELSEWHERE') throw new ChainFollowedError(network)
    if (outcome.kind !== 'MORE' && outcome.kind !== 'AGAIN') return
    fruitless = outcome.kind === 'AGAIN' ? fruitless + 1 : 0
    if (outcome.kind === 'AGAIN' && fruitless > MAX_FRUITLESS_STEPS) throw new Error(`${network}: ${outcome.reason}`)
  }
}
