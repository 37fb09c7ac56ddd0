import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { withLimit } from '../cancellable.ts'
import { createDatabase, type DatabaseConnection, type DatabaseOptions } from '../knex.ts'
import { createFreshReader } from './fresh-reader.ts'
import {
  afterFailure,
  afterLook,
  afterLoss,
  afterSuccess,
  judgeLook,
  type ReplicaState,
  replayedOf,
  UNKNOWN_REPLICA,
} from './replica-state.ts'
import { lookAtReplica, REPLICA_SQL, type ReplicaLook, readReplicaLook, type WalPosition } from './wal-position.ts'

/** A server that replays the primary's log, with a pool of its own. */
export interface Replica {
  readonly name: string
  readonly knex: Knex
  /** What it is known to have replayed; undefined while it gets no reads. */
  readonly replayed: () => WalPosition | undefined
  /** Fires when the server, or the connection to it, is lost; afterwards this returns a new signal. */
  readonly lost: () => AbortSignal
  /** Asks the server what it has replayed. Rejects when it does not answer in time; the replica then counts as lost. */
  readonly look: () => Promise<ReplicaLook>
  /** Work on it failed: it gets no reads for a while, longer with each failure. */
  readonly failed: (error: unknown) => void
  readonly succeeded: () => void
  readonly close: () => Promise<void>
}

export interface ReplicaOptions {
  readonly connection: DatabaseConnection
  /** For the log; without a password. */
  readonly name: string
  readonly database: DatabaseOptions
  readonly logger: Logger
  readonly monotonicMs: () => number
  /** How long a look may take. */
  readonly lookTimeoutMs: number
}

export function createReplica(options: ReplicaOptions): Replica {
  const { name, logger, monotonicMs, lookTimeoutMs } = options
  let state: ReplicaState = UNKNOWN_REPLICA
  let lost = new AbortController()
  const pools = openPools(options, () => state)

  const look = createFreshReader(async () => {
    try {
      const found = await withLimit(lookTimeoutMs, (signal) => lookAtReplica(pools.looking, signal))
      const verdict = judgeLook(state, found)
      if (verdict === 'found') logger.info({ replica: name }, 'replica found')
      if (verdict === 'restarted') lose(new Error('the replica was restarted'))
      state = afterLook(state, found)
      return found
    } catch (error) {
      lose(error)
      throw error
    }
  })

  function lose(error: unknown): void {
    if (state.server !== undefined) logger.warn({ replica: name, err: error }, 'replica lost; reads go to the primary')
    state = afterLoss(state)
    lost.abort(error)
    lost = new AbortController()
  }

  return {
    name,
    knex: pools.reading,
    look,
    replayed: () => replayedOf(state, monotonicMs()),
    lost: () => lost.signal,
    failed(error) {
      const nowMs = monotonicMs()
      state = afterFailure(state, nowMs)
      const restMs = state.restsUntilMs - nowMs
      logger.warn({ replica: name, err: error, restMs }, 'read on a replica failed; the primary answers')
    },
    succeeded() {
      state = afterSuccess(state)
    },
    async close() {
      lose(new Error('the replica is no longer used'))
      await Promise.all([pools.looking.destroy(), pools.reading.destroy()])
    },
  }
}

/** Looks have a connection of their own, so that they are answered while all others are busy. */
function openPools({ connection, database, lookTimeoutMs }: ReplicaOptions, stateNow: () => ReplicaState) {
  const looking = createDatabase(connection, {
    ...database,
    poolMax: 1,
    acquireTimeoutMs: lookTimeoutMs,
    statementTimeoutMs: lookTimeoutMs,
    applicationName: 'waybill replica watch',
  })
  const reading = createDatabase(connection, {
    ...database,
    // what is known about the replica holds for the server that was looked at: after a restart it may have replayed less
    async checkConnection(ask) {
      const { startedAt } = readReplicaLook(await ask(REPLICA_SQL))
      if (startedAt !== stateNow().server?.startedAt)
        throw new Error('the replica has been restarted since the last look')
    },
  })
  return { looking, reading }
}
