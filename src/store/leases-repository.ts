import type { Knex } from 'knex'

/** A claim to be the only one who does something, for a limited time. */
export interface Lease {
  /** what is claimed, as `follow:base` */
  readonly name: string
  /** who claims it: unique to one run of one process */
  readonly owner: string
}

/** How long a chain stays with a process that no longer says anything, in milliseconds. The documentation tells it in seconds. */
export const CHAIN_LEASE_MS = 15_000

/** The lease ran out or went to another, so what was about to be written must not be. */
export class LeaseLostError extends Error {
  override readonly name = 'LeaseLostError'

  constructor(lease: Lease) {
    super(`${lease.owner} no longer holds the lease ${lease.name}`)
  }
}

/**
 * Takes a lease that is free, has run out, or is the owner's already; by the server's clock.
 *
 * @returns whether the owner holds it now
 */
export async function acquireLease(knex: Knex, lease: Lease, ttlMs: number): Promise<boolean> {
  const { rowCount } = await knex.raw<{ rowCount: number }>(
    `insert into leases as held (name, owner, expires_at)
     values (:name, :owner, clock_timestamp() + :ttlMs * interval '1 millisecond')
     on conflict (name) do update set owner = excluded.owner, expires_at = excluded.expires_at
       where held.owner = excluded.owner or held.expires_at <= clock_timestamp()`,
    { ...lease, ttlMs },
  )
  return rowCount === 1
}

/**
 * Prolongs a lease that is still held.
 *
 * @returns false when it ran out or went to another: stop, and acquire it anew
 */
export async function renewLease(knex: Knex, lease: Lease, ttlMs: number): Promise<boolean> {
  const { rowCount } = await knex.raw<{ rowCount: number }>(
    `update leases set expires_at = clock_timestamp() + :ttlMs * interval '1 millisecond'
     where name = :name and owner = :owner and expires_at > clock_timestamp()`,
    { ...lease, ttlMs },
  )
  return rowCount === 1
}

/** Gives a lease back; nothing happens if it is not the owner's. */
export async function releaseLease(knex: Knex, lease: Lease): Promise<void> {
  await knex('leases').where({ name: lease.name, owner: lease.owner }).delete()
}

/**
 * Takes all leases from whoever held them. For a database that no other service can use: a process that was killed would keep what
 * it held until that ran out.
 */
export async function dropLeases(knex: Knex): Promise<void> {
  await knex('leases').delete()
}

/**
 * Fences a transaction: from here to its end nobody else can take the lease, even when it runs out meanwhile.
 *
 * @throws LeaseLostError
 */
export async function assertLeaseHeld(trx: Knex.Transaction, lease: Lease): Promise<void> {
  const { rowCount } = await trx.raw<{ rowCount: number }>(
    `select from leases where name = :name and owner = :owner and expires_at > clock_timestamp() for share`,
    { ...lease },
  )
  if (rowCount !== 1) throw new LeaseLostError(lease)
}
