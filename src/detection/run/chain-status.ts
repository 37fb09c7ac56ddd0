import type { BackfillProgress } from '../backfill/backfill-progress.ts'
import type { FollowerFacts } from '../report/chain-reporter.ts'
import type { Condition } from '../sql/chain-report.ts'
import type { SuspectStatus } from '../trust/set-aside.ts'
import type { HealthStatus } from './chain-health.ts'
import type { FollowedChain } from './followed-chain.ts'

/** The status of a chain, as far as this process knows. Block numbers are absent until it has looked at the chain. */
export interface ChainStatus extends HealthStatus {
  readonly network: string
  readonly scanned?: number | undefined
  readonly head?: number | undefined
  readonly final?: number | undefined
  /** Whether this process is the one that follows the chain. */
  readonly following: boolean
  /** Old blocks that this process reads beside following; absent where none are left, or another process reads them. */
  readonly backfill?: BackfillProgress | undefined
  /** Nodes that have answered wrongly and are asked last; empty in a process that does not follow the chain. */
  readonly suspects: readonly SuspectStatus[]
  /** Why what is stored is not proven; absent where it is, and in a process that does not follow the chain. */
  readonly unproven?: Condition | undefined
}

/** The status that this process shows of a chain. */
export function statusOf(follower: FollowedChain): ChainStatus {
  const { network, heights, health, backfill, backfillHealth, isFollowing } = follower
  const status = health.status()
  return {
    network,
    ...heights,
    ...status,
    failing: status.failing ?? backfillHealth.status().failing,
    following: isFollowing,
    backfill: isFollowing ? backfill.progress() : undefined,
    suspects: isFollowing ? follower.trust.suspects() : [],
    unproven: isFollowing ? follower.trust.unproven() : undefined,
  }
}

/** What operators see; undefined while another process follows the chain. */
export function factsOf(follower: FollowedChain): FollowerFacts | undefined {
  const { network, limits, followingSince } = follower
  const { following, failing, unproven, backfill, suspects } = statusOf(follower)
  if (!following) return undefined
  return {
    followingSince: followingSince.toISOString(),
    trouble: failing && { since: failing.since.toISOString(), reason: failing.reason },
    unproven: unproven && { since: unproven.since.toISOString(), reason: unproven.reason },
    backfill: backfill && {
      blocksDone: backfill.done,
      blocksTotal: backfill.done + backfill.left,
      blocksPerSecond: backfill.blocksPerSecond,
      secondsLeft: backfill.secondsLeft,
    },
    suspects: suspects.map(({ node, reason, since }) => ({ host: node, reason, at: since.toISOString() })),
    nodes: limits?.figures().filter(({ chain }) => chain === network) ?? [],
  }
}
