import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { createDatabase, type DatabaseConnection, type DatabaseOptions } from '../knex.ts'
import { createAskAfresh } from './ask-afresh.ts'
import { lookAtReplica, REPLICA_SQL, type ReplicaLook, readReplicaLook, type WalPosition } from './wal-position.ts'

/** A server that follows the primary, with a pool of its own. */
export interface Replica {
  readonly name: string
  readonly knex: Knex
  /** Up to where it is known to have replayed; undefined while it is not to be used. */
  readonly reached: () => WalPosition | undefined
  /** Fires when the server, or the way to it, is lost. */
  readonly lost: () => AbortSignal
  /** Looks anew how far it is. Rejects when it does not say so in time; it is then lost. */
  readonly look: () => Promise<ReplicaLook>
  /** Work on it failed: it is left alone for a while, for longer each time. */
  readonly failed: (error: unknown) => void
  readonly succeeded: () => void
  readonly close: () => Promise<void>
}

export interface ReplicaOptions {
  readonly connection: DatabaseConnection
  /** For the log: what tells it from others, without a password. */
  readonly name: string
  readonly database: DatabaseOptions
  readonly logger: Logger
  readonly monotonicMs: () => number
  /** How long it may take to say how far it is. */
  readonly lookTimeoutMs: number
}

/** How long a replica is left alone after work on it failed, and at most. */
const LEAVE_ALONE_MS = 1_000
const LEAVE_ALONE_AT_MOST_MS = 30_000

export function createReplica(options: ReplicaOptions): Replica {
  const { connection, name, logger, monotonicMs, lookTimeoutMs } = options
  let server: ReplicaLook | undefined
  let lost = new AbortController()
  let failures = 0
  let leftAloneUntilMs = Number.NEGATIVE_INFINITY

  // A connection of its own says how far the replica is also when all others are busy.
  const watcher = createDatabase(connection, {
    ...options.database,
    poolMax: 1,
    acquireTimeoutMs: lookTimeoutMs,
    statementTimeoutMs: lookTimeoutMs,
    applicationName: 'waybill replica watch',
  })
  const knex = createDatabase(connection, {
    ...options.database,
    // What is known of the replica is known of the server that was looked at: after a restart it may be behind where it was.
    async checkConnection(ask) {
      const { startedAt } = readReplicaLook(await ask(REPLICA_SQL))
      if (startedAt !== server?.startedAt) throw new Error('the replica is another server than it was')
    },
  })

  const look = createAskAfresh(async () => {
    try {
      const found = await within(lookTimeoutMs, (signal) => lookAtReplica(watcher, signal))
      if (server === undefined) logger.info({ replica: name }, 'a replica is there')
      else if (server.startedAt !== found.startedAt) lose(new Error('the replica was restarted'))
      server = found
      return found
    } catch (error) {
      lose(error)
      throw error
    }
  })

  function lose(error: unknown): void {
    if (server !== undefined) logger.warn({ replica: name, err: error }, 'a replica is lost; the primary answers')
    server = undefined
    lost.abort(error)
    lost = new AbortController()
  }

  return {
    name,
    knex,
    look,
    reached: () => (monotonicMs() < leftAloneUntilMs ? undefined : server?.position),
    lost: () => lost.signal,
    failed(error) {
      const ms = Math.min(LEAVE_ALONE_MS * 2 ** failures, LEAVE_ALONE_AT_MOST_MS)
      failures += 1
      leftAloneUntilMs = monotonicMs() + ms
      logger.warn({ replica: name, err: error, leftAloneMs: ms }, 'work on a replica failed; the primary answers')
    },
    succeeded() {
      failures = 0
    },
    async close() {
      lose(new Error('the replica is no longer used'))
      await Promise.all([watcher.destroy(), knex.destroy()])
    },
  }
}

/** Rejects in time, whether the work listens to its signal or not. */
async function within<T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    const error = new Error(`the replica has not answered within ${timeoutMs} ms`)
    reject(error)
    controller.abort(error)
  }, timeoutMs)
  try {
    const working = work(controller.signal)
    working.catch(() => {})
    return await Promise.race([working, late])
  } finally {
    clearTimeout(timer)
  }
}
