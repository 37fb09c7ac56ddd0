import { acquireLease, LeaseLostError, renewLease } from '../../store/leases-repository.ts'
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
