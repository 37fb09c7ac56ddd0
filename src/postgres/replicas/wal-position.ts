import type { Knex } from 'knex'
import { runPreparedText } from '../prepared.ts'

/**
 * A place in the write-ahead log of a primary, as a number that grows. Whatever was committed when the log stood there is on every
 * server that has replayed up to it.
 */
export type WalPosition = bigint

/** Where a primary stands. */
export interface PrimaryLook {
  readonly position: WalPosition
  /** Which database cluster it is: a replica has the same. */
  readonly cluster: string
}

/** Where a replica stands. */
export interface ReplicaLook extends PrimaryLook {
  /** When the server was started, which tells it from whatever else answers at its address at another time. */
  readonly startedAt: string
}

/** What is inserted, and not only what is flushed: a commit that nobody waits for on the disk is seen before it is there. */
const PRIMARY_SQL = `select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text, (select system_identifier::text from pg_control_system())`

/** Null for a server that is no replica, or has replayed nothing. */
export const REPLICA_SQL = `select case when pg_is_in_recovery() then (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::text end,
  (select system_identifier::text from pg_control_system()), pg_postmaster_start_time()::text`

/** Looks where a primary stands: whatever was seen of it before is not beyond that. */
export async function lookAtPrimary(knex: Knex, signal?: AbortSignal): Promise<PrimaryLook> {
  const [row] = await runPreparedText(knex, { sql: PRIMARY_SQL, bindings: [] }, signal)
  const [position = null, cluster = null] = row ?? []
  if (position === null || cluster === null) throw new Error('the primary does not say where it stands')
  return { position: BigInt(position), cluster }
}

/** Looks how far a replica is: whatever it is asked from then on has all that the primary had there. */
export async function lookAtReplica(knex: Knex, signal?: AbortSignal): Promise<ReplicaLook> {
  const [row] = await runPreparedText(knex, { sql: REPLICA_SQL, bindings: [] }, signal)
  return readReplicaLook(row ?? [])
}

/** @throws Error for a server that is no replica */
export function readReplicaLook(row: readonly (string | null)[]): ReplicaLook {
  const [position = null, cluster = null, startedAt = null] = row
  if (position === null || cluster === null || startedAt === null) throw new Error('the server is no replica')
  return { position: BigInt(position), cluster, startedAt }
}
