import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { withLimit } from '../cancellable.ts'
import { createDatabase, type DatabaseConnection, type DatabaseOptions } from '../knex.ts'
import { raw, readRows } from '../statement.ts'
import type { ReplicaFault, ServerState } from './judge-replica.ts'

export type Replica = ReturnType<typeof createReplica>

export interface ReplicaOptions {
  readonly connection: DatabaseConnection
  /** For the log; without a password. */
  readonly name: string
  readonly database: DatabaseOptions
  readonly logger: Logger
  readonly monotonicMs: () => number
  /** How long a probe may take. */
  readonly probeTimeoutMs: number
  /** Judges what it said when it was last asked. */
  readonly faultOf: (state: ServerState | undefined) => ReplicaFault | undefined
}

/** How long a replica gets no reads after one has failed. */
const REST_MS = 5_000

/** A server that replays the primary's log, with a pool of its own. */
export function createReplica(options: ReplicaOptions) {
  const { name, connection, database, logger, monotonicMs, probeTimeoutMs, faultOf } = options
  let known: ServerState | undefined
  let lost = new AbortController()
  let restsUntilMs = Number.NEGATIVE_INFINITY
  let logged: ReplicaFault | 'none' | undefined

  // probes have a connection of their own, so that they are answered while all others are busy
  const probePool = createDatabase(connection, {
    ...database,
    poolMax: 1,
    acquireTimeoutMs: probeTimeoutMs,
    statementTimeoutMs: probeTimeoutMs,
    applicationName: 'waybill replica watch',
  })
  const knex = createDatabase(connection, {
    ...database,
    // what is known holds for the server that was probed: after a restart it may have replayed less
    async checkConnection(ask) {
      const { isReplica, startedAt } = stateOfRow(await ask(STATE_SQL))
      if (!isReplica || startedAt !== known?.startedAt)
        throw new Error('the replica has been restarted or promoted since the last probe')
    },
  })

  function logChange(): void {
    const fault = faultOf(known)
    if (logged === (fault ?? 'none')) return
    logged = fault ?? 'none'
    if (fault === undefined) logger.info({ replica: name }, 'replica in use')
    else logger.warn({ replica: name, fault }, 'replica not in use; reads go to the primary')
  }

  function lose(): void {
    lost.abort(new Error('the replica was lost'))
    lost = new AbortController()
  }

  return {
    knex,
    /** Whether it may serve reads now. */
    isUsable: () => monotonicMs() >= restsUntilMs && faultOf(known) === undefined,
    /** Fires when the server, or the connection to it, is lost; afterwards this returns a new signal. */
    lost: () => lost.signal,
    /** Asks the server how it stands. Never rejects. */
    probe: async (): Promise<void> => {
      const found = await withLimit(probeTimeoutMs, (signal) => probeServer(probePool, signal)).catch(() => undefined)
      if (found?.isReplica !== true || found.startedAt !== known?.startedAt) lose()
      known = found
      logChange()
    },
    /** Work on it failed: it gets no reads for a while. */
    failed(error: unknown): void {
      restsUntilMs = monotonicMs() + REST_MS
      logger.warn({ replica: name, err: error, restMs: REST_MS }, 'read on a replica failed; the primary answers')
    },
    async close(): Promise<void> {
      lose()
      await Promise.all([probePool.destroy(), knex.destroy()])
    },
  }
}

/**
 * The position that the primary has flushed, not where it inserts: at the end of a page of the log the latter is past the header of the next
 * page, which a replica does not reach before the next write.
 */
const STATE_SQL = `select pg_is_in_recovery()::text as is_replica,
  (case when pg_is_in_recovery() then pg_last_wal_replay_lsn() else pg_current_wal_flush_lsn() end - '0/0'::pg_lsn)::text as position,
  (select system_identifier::text from pg_control_system()) as cluster, pg_postmaster_start_time()::text as started_at`

/** Asks a server how it stands. */
export async function probeServer(knex: Knex, signal?: AbortSignal): Promise<ServerState> {
  const [row = {}] = await readRows<Record<string, string | null>>(knex, raw(STATE_SQL), signal)
  return stateOfRow(Object.values(row))
}

function stateOfRow([isReplica, position = null, cluster, startedAt]: readonly (string | null)[]): ServerState {
  if (position === null || !cluster || !startedAt) throw new Error('the server did not report its position in the log')
  return { isReplica: isReplica === 'true', position: BigInt(position), cluster, startedAt }
}
