import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { WaybillError } from '../../errors/waybill-error.ts'
import { readPromptly, withLimit } from '../cancellable.ts'
import { createDatabase, type DatabaseConnection, type DatabaseOptions } from '../knex.ts'
import { raw, readRows } from '../statement.ts'

/** Work that only reads. */
export type ReadWork<T> = (pool: Knex, signal: AbortSignal | undefined) => Promise<T>

/**
 * Work that reads in pieces.
 *
 * @param last - the piece after which to resume; undefined at the beginning
 */
export type ReadPiecesWork<T> = (pool: Knex, signal: AbortSignal | undefined, last: T | undefined) => AsyncIterable<T>

export interface ReadTerms<T> {
  readonly signal?: AbortSignal | undefined
  /** Whether the answer of a replica is older than what its caller has seen. The primary then answers. */
  readonly isTooOld?: (answer: T) => boolean
}

export type ReadPools = ReturnType<typeof createReadPools>

export interface ReadPoolsOptions {
  readonly primary: Knex
  readonly replicas: readonly { readonly name: string; readonly connection: DatabaseConnection }[]
  /** For the pools of replicas. */
  readonly database: DatabaseOptions
  readonly logger: Logger
  readonly monotonicMs: () => number
  /** Default 500. */
  readonly probeEveryMs?: number | undefined
  /** Default 1,000. */
  readonly probeTimeoutMs?: number | undefined
  /** A replica that lags further behind gets no reads; default 10,000. */
  readonly maxLagMs?: number | undefined
}

/** A primary and its replicas, for work that only reads. What a replica answers is at most {@link ReadPoolsOptions.maxLagMs} old. */
export function createReadPools(options: ReadPoolsOptions) {
  const { primary, database, logger, monotonicMs } = options
  const { probeEveryMs = 500, probeTimeoutMs = 1_000, maxLagMs = 10_000 } = options
  let history: PrimaryHistory = []
  const replicas = options.replicas.map((replica) =>
    createReplica({
      ...replica,
      database,
      logger,
      monotonicMs,
      probeTimeoutMs,
      faultOf: (state) => faultOf(state, history, monotonicMs() - maxLagMs),
    }),
  )
  const stopping = new AbortController()
  let probing: Promise<unknown> | undefined
  /** Reads so far: replicas alternate. */
  let reads = 0

  async function probePrimary(): Promise<void> {
    const atMs = monotonicMs()
    const state = await readPromptly((signal) => probeServer(primary, signal), maxLagMs).catch(() => undefined)
    if (state === undefined) return
    history = [...history.filter((moment) => moment.atMs >= atMs - maxLagMs), { ...state, atMs }]
  }

  /** Undefined: the primary has to answer. */
  function nextReplica(): Replica | undefined {
    const usable = replicas.filter((replica) => replica.isUsable())
    reads += 1
    return usable[reads % usable.length]
  }

  return {
    primary,
    replicas: replicas.map(({ knex }) => knex),
    /**
     * Runs work on the next replica in use, else on the primary. Work that fails on a replica, unless it refuses the request with a
     * WaybillError, runs once more on the primary.
     */
    async read<T>(work: ReadWork<T>, { signal, isTooOld = () => false }: ReadTerms<T> = {}): Promise<T> {
      const replica = nextReplica()
      if (replica !== undefined) {
        try {
          const answer = await work(replica.knex, endWith(replica, signal))
          if (!isTooOld(answer)) return answer
        } catch (error) {
          blame(replica, error, signal)
        }
      }
      signal?.throwIfAborted()
      return work(primary, signal)
    },
    /** Reads in pieces from one server. When a replica fails on the way, the primary resumes after the last piece. */
    async *readPieces<T>(work: ReadPiecesWork<T>, signal?: AbortSignal): AsyncGenerator<T> {
      const replica = nextReplica()
      let last: T | undefined
      if (replica !== undefined) {
        try {
          for await (const piece of work(replica.knex, endWith(replica, signal), undefined)) {
            last = piece
            yield piece
          }
          return
        } catch (error) {
          blame(replica, error, signal)
        }
      }
      yield* work(primary, signal, last)
    },
    /** Begins to probe the servers, again and again; no replica is used before. */
    async start(): Promise<void> {
      const probes = replicas.map((replica) => replica.probe)
      probing = probePrimary().then(() => Promise.all(probes.map((probe) => probe())))
      await probing
      probing = Promise.all([probePrimary, ...probes].map((probe) => repeat(probe, probeEveryMs, stopping.signal)))
    },
    async stop(): Promise<void> {
      stopping.abort()
      await probing
      await Promise.all(replicas.map((replica) => replica.close()))
    },
  }
}

async function repeat(work: () => Promise<void>, everyMs: number, stopping: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(everyMs, undefined, { signal: stopping, ref: false }).catch(() => {})
    if (stopping.aborted) return
    await work()
  }
}

/** Fires with the caller's signal, and when the replica is lost. */
function endWith(replica: Replica, signal: AbortSignal | undefined): AbortSignal {
  return signal === undefined ? replica.lost() : AbortSignal.any([signal, replica.lost()])
}

/** Returns where the primary has to answer. @throws what the caller has to get: its own signal's reason, or that the work refused the request */
function blame(replica: Replica, error: unknown, signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw signal.reason
  if (error instanceof WaybillError) throw error
  replica.failed(error)
}

type Replica = ReturnType<typeof createReplica>

interface ReplicaOptions extends Pick<ReadPoolsOptions, 'database' | 'logger' | 'monotonicMs'> {
  readonly connection: DatabaseConnection
  /** For the log; without a password. */
  readonly name: string
  /** How long a probe may take. */
  readonly probeTimeoutMs: number
  /** Judges what it said when it was last asked. */
  readonly faultOf: (state: ServerState | undefined) => ReplicaFault | undefined
}

/** How long a replica gets no reads after one has failed. */
const REST_MS = 5_000

/** A server that replays the primary's log, with a pool of its own. */
function createReplica(options: ReplicaOptions) {
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

/** What a server says about itself. */
export interface ServerState {
  readonly isReplica: boolean
  /** How much of the primary's log it has replayed, or as the primary written to disk, in bytes. It only grows. */
  readonly position: bigint
  /** The system identifier: a primary and its replicas have the same. */
  readonly cluster: string
  /** When the server process was started: tells it from another one that answers at the same address later. */
  readonly startedAt: string
}

/** What the primary said at recent moments of this process. Tells how old a replica's data are at most, without comparing clocks of two machines. */
export type PrimaryHistory = readonly PrimaryMoment[]

interface PrimaryMoment extends Pick<ServerState, 'position' | 'cluster'> {
  /** Monotonic time, from before the primary was asked. */
  readonly atMs: number
}

/** Why a replica gets no reads. */
type ReplicaFault =
  | 'it does not answer'
  | 'it is not a replica'
  | 'it belongs to another database cluster'
  | 'it is not known to be within the lag allowed'

/**
 * Why a replica gets no reads; undefined: it may have them. It has to have replayed everything that the primary had at some moment since `sinceMs`.
 *
 * @param state - what it said when it was last asked; undefined where it did not answer
 */
export function faultOf(
  state: ServerState | undefined,
  history: PrimaryHistory,
  sinceMs: number,
): ReplicaFault | undefined {
  if (state === undefined) return 'it does not answer'
  if (!state.isReplica) return 'it is not a replica'
  const recent = history.filter(({ atMs }) => atMs >= sinceMs)
  if (recent.some(({ cluster }) => cluster !== state.cluster)) return 'it belongs to another database cluster'
  if (recent.some(({ position }) => position <= state.position)) return undefined
  return 'it is not known to be within the lag allowed'
}
