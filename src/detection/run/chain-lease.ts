import { acquireLease, isLeaseFree, releaseLease, renewLease } from '../../store/leases-repository.ts'
import type { FollowedChain } from './followed-chain.ts'

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
  if (isHeld && !follower.isFollowing) {
    follower.followingSince = follower.clock()
    await follower.recallLimits()
  }
  follower.isFollowing = isHeld
  return isHeld
}

/** Lets another process follow the chain at once. */
export async function giveUpLease(follower: FollowedChain): Promise<void> {
  if (follower.isFollowing) await releaseLease(follower.knex, follower.lease).catch(() => {})
  follower.isFollowing = false
}
