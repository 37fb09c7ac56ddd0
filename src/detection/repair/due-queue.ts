import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { acquireLease, type Lease, releaseLease } from '../../store/leases-repository.ts'

/** Entries of a table that are looked up when they are due. */
interface DueEntries<E> {
  readonly knex: Knex
  /** Of the processes that share a database, one looks up at a time; after a kill, another does once the lease has expired. */
  readonly lease: Lease
  readonly ttlMs: number
  readonly atOnce: number
  readonly pollEveryMs: number
  /** The entries that are due, longest due first. */
  readonly findDue: (limit: number) => Promise<readonly E[]>
  /** Processes some while the lease is held. An entry that was looked up is gone, or due later. */
  readonly lookup: (due: readonly E[], signal: AbortSignal) => Promise<void>
  readonly onError: (error: unknown) => void
}

/** Makes the queue of one process. */
export function createDueQueue<E>(entries: DueEntries<E>) {
  const { knex, lease, ttlMs, atOnce, pollEveryMs: everyMs, findDue, lookup, onError } = entries

  /** Looks up what is due until nothing is, or another process does. @throws what looking up throws; the signal's reason */
  async function drain(signal: AbortSignal): Promise<void> {
    while ((await findDue(1)).length > 0 && (await acquireLease(knex, lease, ttlMs))) {
      try {
        await lookup(await findDue(atOnce), signal)
      } finally {
        await releaseLease(knex, lease)
      }
      signal.throwIfAborted()
    }
  }

  return { drain, run: (signal: AbortSignal) => repeat(() => drain(signal), { everyMs, onError, signal }) }
}

/** Works again and again until the signal fires; never rejects. @param onError - absent for work that never rejects */
export async function repeat(
  work: () => Promise<void>,
  { everyMs, onError, signal }: { everyMs: number; onError?: (error: unknown) => void; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await work().catch((error: unknown) => signal.aborted || onError?.(error))
    await sleep(everyMs, undefined, { signal }).catch(() => {})
  }
}
