import type { Knex } from 'knex'
import { type CancellableQuery, runCancellable, withLimit } from '../postgres/cancellable.ts'

/** The exclusive right to do something for a limited time. */
export interface Lease {
  /** What is claimed, such as `follow:base`. */
  readonly name: string
  /** Who claims it: unique to one run of one process. */
  readonly owner: string
}

/**
 * How long a process that was killed keeps the lease of a chain. The documentation gives it in seconds. It is renewed once a second, and others check
 * every 750 ms, so that another process follows the chain within 5 seconds.
 */
export const CHAIN_LEASE_MS = 3_000

/**
 * A process that pauses within a fenced transaction keeps its lease by the fence. PostgreSQL ends the transaction after this time, so that another
 * process can take over.
 */
const MAX_PAUSE_IN_TRANSACTION_MS = 2_000

/** The lease expired or another owner took it, so the transaction must not write. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError'

  constructor(lease: Lease) {
    super(`${lease.owner} no longer holds the lease ${lease.name}`)
  }
}

/**
 * Takes a lease that is free, expired, or held by the same owner, by the server's clock.
 *
 * @returns whether the owner holds it now
 */
export async function acquireLease(knex: Knex, { name, owner }: Lease, ttlMs: number): Promise<boolean> {
  return (await acquireLeases(knex, owner, [name], ttlMs)).length === 1
}

/** Takes those of several leases that can be taken, as {@link acquireLease} does. @returns the names of those that the owner holds now */
export async function acquireLeases(
  knex: Knex,
  owner: string,
  names: readonly string[],
  ttlMs: number,
): Promise<string[]> {
  const query = knex.raw<{ rows: { name: string }[] }>(
    `insert into leases as held (name, owner, expires_at)
     select name, :owner, clock_timestamp() + :ttlMs * interval '1 millisecond' from unnest(:names::text[]) name
     on conflict (name) do update set owner = excluded.owner, expires_at = excluded.expires_at
       where held.owner = excluded.owner or held.expires_at <= clock_timestamp()
     returning name`,
    { owner, ttlMs, names: names.toSorted() },
  )
  return (await inTime(knex, query)).rows.map(({ name }) => name)
}

/**
 * Prolongs a lease that is still held.
 *
 * @returns false when it expired or another owner took it; stop the work, and acquire it again
 */
export async function renewLease(knex: Knex, lease: Lease, ttlMs: number): Promise<boolean> {
  const query = knex.raw<{ rowCount: number }>(
    `update leases set expires_at = clock_timestamp() + :ttlMs * interval '1 millisecond'
     where name = :name and owner = :owner and expires_at > clock_timestamp()`,
    { ...lease, ttlMs },
  )
  return (await inTime(knex, query)).rowCount === 1
}

/** Whether a lease could be taken now, without waiting for a transaction that it fences. Another owner may be faster. */
export async function isLeaseFree(knex: Knex, { name, owner }: Lease): Promise<boolean> {
  const query = knex('leases')
    .where({ name })
    .whereNot({ owner })
    .whereRaw('expires_at > clock_timestamp()')
    .first('name')
  return (await inTime(knex, query)) === undefined
}

/** Releases a lease. Does nothing when another owner holds it. */
export async function releaseLease(knex: Knex, lease: Lease): Promise<void> {
  await inTime(knex, knex('leases').where({ name: lease.name, owner: lease.owner }).delete())
}

/**
 * How long a statement about a lease may take, in milliseconds. It may wait for a transaction that the lease fences; but work that waits longer than
 * this for its lease does better to ask again, on a connection that answers.
 */
const LEASE_LIMIT_MS = 5_000

function inTime<T>(knex: Knex, query: CancellableQuery<T>): Promise<T> {
  return withLimit(LEASE_LIMIT_MS, (signal) => runCancellable(knex, query, signal))
}

/**
 * Deletes all leases. Only for a database that no other process uses: otherwise the leases of a killed process would block the next one until
 * they expire.
 */
export async function dropLeases(knex: Knex): Promise<void> {
  await knex('leases').delete()
}

/**
 * Fences a transaction: until it ends, no other owner can take the lease, even when the lease expires meanwhile. Statements of the transaction must
 * follow each other within 2 seconds, or the server ends it.
 *
 * @throws LeaseLostError
 */
export async function assertLeaseHeld(trx: Knex.Transaction, lease: Lease): Promise<void> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `select set_config('idle_in_transaction_session_timeout', :maxPause, true) from leases
     where name = :name and owner = :owner and expires_at > clock_timestamp() for share`,
    { ...lease, maxPause: `${MAX_PAUSE_IN_TRANSACTION_MS}` },
  )
  if (rowCount !== 1) throw new LeaseLostError(lease)
}
