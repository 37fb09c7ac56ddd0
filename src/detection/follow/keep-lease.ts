import type { Knex } from 'knex'
import { type Lease, LeaseLostError, renewLease } from '../../store/leases-repository.ts'

/** A lease that is held now, and for how long each renewal lasts. */
export interface HeldLease {
  readonly knex: Knex
  readonly lease: Lease
  readonly ttlMs: number
}

/**
 * Keeps a lease for as long as the work takes: it is renewed three times in its time, so that work may last longer than the lease.
 *
 * @param work - is given a signal that fires when the lease is gone, or with `signal`
 * @param onRenewal - told at each renewal for how long the work has been going on
 * @throws what the work throws; LeaseLostError
 */
export async function keepLease<T>(
  { knex, lease, ttlMs }: HeldLease,
  work: (signal: AbortSignal) => Promise<T>,
  options: { readonly signal?: AbortSignal | undefined; readonly onRenewal?: (elapsedMs: number) => void } = {},
): Promise<T> {
  const { signal, onRenewal } = options
  const lost = new AbortController()
  const startedAtMs = performance.now()
  let renewing: Promise<void> | undefined

  async function renew(): Promise<void> {
    onRenewal?.(performance.now() - startedAtMs)
    // A database that does not answer is met by the work itself.
    const isHeld = await renewLease(knex, lease, ttlMs).catch(() => true)
    if (!isHeld) lost.abort(new LeaseLostError(lease))
    renewing = undefined
  }

  const timer = setInterval(() => {
    renewing ??= renew()
  }, ttlMs / 3)
  try {
    return await work(signal === undefined ? lost.signal : AbortSignal.any([signal, lost.signal]))
  } finally {
    clearInterval(timer)
    await renewing
  }
}
