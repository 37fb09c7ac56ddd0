import type { Knex } from 'knex'
import { runPreparedText } from '../prepared.ts'

/**
 * A position in the primary's write-ahead log, in bytes; it only grows. Every commit before it is visible on any server that has replayed
 * up to it.
 */
export type WalPosition = bigint

/** What a primary says about itself. */
export interface PrimaryLook {
  readonly position: WalPosition
  /** The system identifier of the database cluster; replicas have the same. */
  readonly cluster: string
}

/** What a replica says about itself; its position is what it has replayed. */
export interface ReplicaLook extends PrimaryLook {
  /** When the server process was started: tells it from another server that answers at the same address later. */
  readonly startedAt: string
}

/** The insert position, not the flush position: with `synchronous_commit = off` a commit is visible before it is flushed. */
const PRIMARY_SQL = `select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::text, (select system_identifier::text from pg_control_system())`

/** The position is null for a server that is no replica or has replayed nothing. */
export const REPLICA_SQL = `select case when pg_is_in_recovery() then (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::text end,
  (select system_identifier::text from pg_control_system()), pg_postmaster_start_time()::text`

/** Reads the primary's position: what was read from it before is not newer. */
export async function lookAtPrimary(knex: Knex, signal?: AbortSignal): Promise<PrimaryLook> {
  const [row] = await runPreparedText(knex, { sql: PRIMARY_SQL, bindings: [] }, signal)
  const [position = null, cluster = null] = row ?? []
  if (position === null || cluster === null) throw new Error('the primary did not report its WAL position')
  return { position: BigInt(position), cluster }
}

/** Reads what a replica has replayed: later reads from it are at least as recent. */
export async function lookAtReplica(knex: Knex, signal?: AbortSignal): Promise<ReplicaLook> {
  const [row] = await runPreparedText(knex, { sql: REPLICA_SQL, bindings: [] }, signal)
  return readReplicaLook(row ?? [])
}

/** @throws Error for a server that is no replica */
export function readReplicaLook(row: readonly (string | null)[]): ReplicaLook {
  const [position = null, cluster = null, startedAt = null] = row
  if (position === null || cluster === null || startedAt === null) throw new Error('the server is not a replica')
  return { position: BigInt(position), cluster, startedAt }
}
