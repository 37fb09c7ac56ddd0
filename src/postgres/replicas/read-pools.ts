import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { WaybillError } from '../../errors/waybill-error.ts'
import { readPromptly } from '../cancellable.ts'
import type { DatabaseConnection, DatabaseOptions } from '../knex.ts'
import { faultOf, type PrimaryHistory } from './judge-replica.ts'
import { createReplica, probeServer, type Replica } from './replica.ts'

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

const PROBE_EVERY_MS = 500
const PROBE_TIMEOUT_MS = 1_000
const MAX_LAG_MS = 10_000

/** A primary and its replicas, for work that only reads. What a replica answers is at most {@link ReadPoolsOptions.maxLagMs} old. */
export function createReadPools(options: ReadPoolsOptions) {
  const { primary, database, logger, monotonicMs } = options
  const { probeEveryMs = PROBE_EVERY_MS, probeTimeoutMs = PROBE_TIMEOUT_MS, maxLagMs = MAX_LAG_MS } = options
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
     * Runs work on a replica in use, alternately, else on the primary. Work that fails on a replica, unless it refuses the request with a
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
