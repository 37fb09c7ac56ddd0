import {
  acquireLease,
  isLeaseFree,
  type Lease,
  LeaseLostError,
  releaseLease,
  renewLease,
} from '../../store/leases-repository.ts'
import type { Backfill } from '../backfill/backfill.ts'
import type { BackfillProgress } from '../backfill/backfill-progress.ts'
import type { OpenChain, OpenChainOptions } from '../chain/open-chain.ts'
import type { BlockFollower } from '../follow/block-follower.ts'
import type { ReplayQueue } from '../repair/replay-queue.ts'
import type { ChainReporter, FollowerFacts } from '../report/chain-reporter.ts'
import type { ChainHeights, Condition } from '../sql/chain-reports-repository.ts'
import type { NodeTrust } from '../trust/node-trust.ts'
import type { SuspectStatus } from '../trust/set-aside.ts'
import type { ChainHealth, HealthStatus } from './chain-health.ts'

export interface ChainFollowerOptions extends OpenChainOptions {
  /** Unique to one run of one process. */
  readonly owner: string
  /** Host and process id, for operators. */
  readonly process: string
  readonly replays: ReplayQueue
  /** How long a chain stays with a process that no longer renews its lease; default CHAIN_LEASE_MS. */
  readonly leaseTtlMs?: number
  /** Time between two looks at a chain; default half its block time, between 250 and 2,000. */
  readonly pollIntervalMs?: number
  /** Called with the time from the block of each new payment until it was stored, in seconds. */
  readonly onFound?: ((seconds: number) => void) | undefined
  /** How many unmatched events of unknown topics are kept of a chain, and how many of accounts; default 100,000. */
  readonly keepUnknown?: number
}

/** One chain that is followed: its parts, and what this process remembers of it. */
export interface FollowedChain
  extends Pick<ChainFollowerOptions, 'limits' | 'knex' | 'config' | 'replays' | 'logger' | 'clock'> {
  readonly network: string
  readonly chainId: string
  readonly lease: Lease
  readonly leaseTtlMs: number
  readonly pollMs: number
  readonly keepUnknown: number
  readonly chain: OpenChain
  readonly health: ChainHealth
  /** What keeps back-fill from moving. */
  readonly backfillHealth: ChainHealth
  readonly blocks: BlockFollower
  readonly backfill: Backfill
  readonly trust: NodeTrust
  readonly reporter: ChainReporter
  isFollowing: boolean
  followingSince: Date
  /** The newest block numbers that this process knows. */
  heights: Omit<ChainHeights, 'scannedTime'> | undefined
  sweptAtMs: number
  /** Unmatched events that were stored since the last pruning. */
  unpruned: number
}

/** The status of a chain, as far as this process knows. Block numbers are absent until it has looked at the chain. */
export interface ChainStatus extends HealthStatus, Partial<Omit<ChainHeights, 'scannedTime'>> {
  readonly network: string
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

/**
 * Renews the lease of a chain three times in its lifetime while some work runs, so that the work may take longer than the lease lasts.
 *
 * @param work - its signal fires when the lease is lost, or with `signal`
 * @param onRenewal - called at each renewal with the time that the work has taken so far
 * @throws what the work throws; LeaseLostError
 */
export async function keepLease<T>(
  { knex, lease, leaseTtlMs }: Pick<FollowedChain, 'knex' | 'lease' | 'leaseTtlMs'>,
  work: (signal: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
  onRenewal?: (elapsedMs: number) => void,
): Promise<T> {
  const lost = new AbortController()
  const startedAtMs = performance.now()
  let renewing: Promise<void> | undefined

  async function renew(): Promise<void> {
    onRenewal?.(performance.now() - startedAtMs)
    // If the database does not answer, the work itself fails.
    const isRenewed = await renewLease(knex, lease, leaseTtlMs).catch(() => true)
    // A renewal waits for the transaction that writes what was found, and the lease may expire meanwhile. Unless another process took it, nothing is lost.
    const isHeld = isRenewed || (await acquireLease(knex, lease, leaseTtlMs).catch(() => true))
    if (!isHeld) lost.abort(new LeaseLostError(lease))
    renewing = undefined
  }

  const timer = setInterval(() => {
    renewing ??= renew()
  }, leaseTtlMs / 3)
  try {
    return await work(signal === undefined ? lost.signal : AbortSignal.any([signal, lost.signal]))
  } finally {
    clearInterval(timer)
    await renewing
  }
}

/** Another process holds the lease on the chain. */
export class ChainFollowedError extends Error {
  override readonly name = 'ChainFollowedError'

  constructor(network: string) {
    super(`another process follows ${network}`)
  }
}

/** Renews the lease of the chain, or takes it where no process holds it. @returns whether this process holds it now */
export async function holdLease(follower: FollowedChain): Promise<boolean> {
  const { knex, lease, leaseTtlMs } = follower
  const isRenewed = follower.isFollowing && (await renewLease(knex, lease, leaseTtlMs))
  const isHeld = isRenewed || ((await isLeaseFree(knex, lease)) && (await acquireLease(knex, lease, leaseTtlMs)))
  // Another process may have written meanwhile, and died before it compared new events with new requests.
  if (!isRenewed) follower.blocks.reset()
  if (isHeld && !isRenewed) {
    follower.sweptAtMs = Number.NEGATIVE_INFINITY
    await follower.trust.takeOver()
  }
  if (isHeld !== follower.isFollowing) {
    const message = isHeld ? 'this process follows the chain now' : 'another process follows the chain now'
    follower.logger.info({ chain: follower.network }, message)
  }
  if (isHeld && !follower.isFollowing) follower.followingSince = follower.clock()
  follower.isFollowing = isHeld
  return isHeld
}

/** Lets another process follow the chain at once. */
export async function giveUpLease(follower: FollowedChain): Promise<void> {
  if (follower.isFollowing) await releaseLease(follower.knex, follower.lease).catch(() => {})
  follower.isFollowing = false
}
