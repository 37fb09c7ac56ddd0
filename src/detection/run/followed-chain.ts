import type { Lease } from '../../store/leases-repository.ts'
import type { Backfill } from '../backfill/backfill.ts'
import type { OpenChain, OpenChainOptions } from '../chain/open-chain.ts'
import type { BlockFollower } from '../follow/block-follower.ts'
import type { ReplayQueue } from '../repair/replay-queue.ts'
import type { ChainReporter } from '../report/chain-reporter.ts'
import type { ChainHeights } from '../sql/chain-reports-repository.ts'
import type { NodeTrust } from '../trust/node-trust.ts'
import type { ChainHealth } from './chain-health.ts'

export interface ChainFollowerOptions extends OpenChainOptions {
  /** Unique to one run of one process. */
  readonly owner: string
  /** Host and process id, for operators. */
  readonly process: string
  readonly replays: ReplayQueue
  /** Goes on from what is stored of the limits of a chain's nodes. Never throws. @param chainId - CAIP-2 */
  readonly recallLimits: (chainId: string) => Promise<void>
  /** How long a chain stays with a process that no longer renews its lease; default CHAIN_LEASE_MS. */
  readonly leaseTtlMs?: number
  /** Time between two looks at a chain; default half its block time, between 250 and 2,000. */
  readonly pollIntervalMs?: number
  /** How many unmatched events of unknown topics are kept of a chain, and how many of accounts; default 100,000. */
  readonly keepUnknown?: number
}

/** One chain that is followed: its parts, and what this process remembers of it. */
export interface FollowedChain
  extends Pick<ChainFollowerOptions, 'limits' | 'knex' | 'config' | 'replays' | 'logger' | 'clock'> {
  /** Goes on from what an earlier process has learned of the nodes' limits. Never throws. */
  readonly recallLimits: () => Promise<void>
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
