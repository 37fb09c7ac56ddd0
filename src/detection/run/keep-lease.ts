import { acquireLease, isLeaseFree, LeaseLostError, releaseLease, renewLease } from '../../store/leases-repository.ts'
import type { FollowedChain } from './followed-chain.ts'

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
