import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { WaybillError } from '../../errors/waybill-error.ts'
import { readPromptly } from '../cancellable.ts'
import type { DatabaseConnection, DatabaseOptions } from '../knex.ts'
import { chooseServer, judgeReplicaError } from './choose-replica.ts'
import { createFreshReader } from './fresh-reader.ts'
import { createReplica, type Replica } from './replica.ts'
import { createSeenPositions, type SeenPositions } from './seen-positions.ts'
import { lookAtPrimary, type PrimaryLook, type WalPosition } from './wal-position.ts'
import { type ReplicaWatch, watchReplicas } from './watch-replicas.ts'

/** Who reads, and how recent the data have to be. */
export interface ReadTerms {
  readonly accountId: number
  /** A position that the account has seen through another process, for instance from its cursor. */
  readonly atLeast?: WalPosition | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Work that only reads.
 *
 * @param position - the WAL position of the server. Ask for it once everything has been read: the data are then not newer than it
 */
export type ReadWork<T> = (
  pool: Knex,
  signal: AbortSignal | undefined,
  position: () => Promise<WalPosition>,
) => Promise<T>

/**
 * Work that reads in pieces.
 *
 * @param last - the piece after which to resume; undefined at the beginning
 */
export type ReadPiecesWork<T> = (pool: Knex, signal: AbortSignal | undefined, last: T | undefined) => AsyncIterable<T>

/** The primary and its replicas, for work that only reads. An account never sees an older state than it has seen before. */
export interface ReadPools {
  /** The primary first. */
  readonly pools: readonly Knex[]
  /**
   * Runs work on a replica that has replayed everything the account has seen, else on the primary. Work that fails on a replica, unless it
   * refuses the request with a WaybillError, runs once more on the primary.
   */
  readonly read: <T>(terms: ReadTerms, work: ReadWork<T>) => Promise<T>
  /** Reads in pieces from one server. When a replica fails on the way, the primary resumes after the last piece. */
  readonly readPieces: <T>(terms: ReadTerms, work: ReadPiecesWork<T>) => AsyncGenerator<T>
  /** The WAL position of a pool's server: what was read from it before is not newer. */
  readonly positionOf: (pool: Knex) => Promise<WalPosition>
  /** The position that the account has seen, as far as this process knows. */
  readonly seenBy: (accountId: number) => WalPosition
  readonly noteSeen: (accountId: number, position: WalPosition) => void
  /** Begins to look at the replicas; none is used before. */
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
}

export interface ReadPoolsOptions {
  readonly primary: Knex
  readonly replicas: readonly { readonly name: string; readonly connection: DatabaseConnection }[]
  /** For the pools of replicas. */
  readonly database: DatabaseOptions
  readonly logger: Logger
  readonly monotonicMs: () => number
  /** Default 500. */
  readonly lookEveryMs?: number | undefined
  /** Default 1,000. */
  readonly lookTimeoutMs?: number | undefined
  /** A replica that lags further behind gets no reads, whatever its account has seen; default 10,000. */
  readonly maxLagMs?: number | undefined
}

const LOOK_EVERY_MS = 500
const LOOK_TIMEOUT_MS = 1_000
const MAX_LAG_MS = 10_000
/** How long reads wait for the position of the primary, which they share. */
const POSITION_TIMEOUT_MS = 10_000

/** The servers and what this process knows of them. */
interface Servers {
  readonly primary: Knex
  readonly lookAtPrimary: () => Promise<PrimaryLook>
  readonly watch: ReplicaWatch
  readonly seen: SeenPositions
  /** Reads so far: replicas take turns. */
  turn: number
}

export function createReadPools(options: ReadPoolsOptions): ReadPools {
  const { primary, database, logger, monotonicMs } = options
  const { lookEveryMs = LOOK_EVERY_MS, lookTimeoutMs = LOOK_TIMEOUT_MS, maxLagMs = MAX_LAG_MS } = options
  const replicas = options.replicas.map((replica) =>
    createReplica({ ...replica, database, logger, monotonicMs, lookTimeoutMs }),
  )
  const look = createFreshReader(() => readPromptly((signal) => lookAtPrimary(primary, signal), POSITION_TIMEOUT_MS))
  const watch = watchReplicas({ replicas, lookAtPrimary: look, logger, monotonicMs, lookEveryMs, maxLagMs })
  const seen = createSeenPositions()
  const servers: Servers = { primary, lookAtPrimary: look, watch, seen, turn: 0 }
  return {
    pools: [primary, ...replicas.map(({ knex }) => knex)],
    read: (terms, work) => read(servers, terms, work),
    readPieces: (terms, work) => readPieces(servers, terms, work),
    async positionOf(pool) {
      const replica = replicas.find(({ knex }) => knex === pool)
      return (await (replica === undefined ? look() : replica.look())).position
    },
    seenBy: seen.of,
    noteSeen: seen.note,
    start: watch.start,
    async stop() {
      await watch.stop()
      await Promise.all(replicas.map((replica) => replica.close()))
    },
  }
}

/** The replica that serves a read; undefined: the primary. */
async function findReplica(servers: Servers, { accountId, atLeast = 0n }: ReadTerms): Promise<Replica | undefined> {
  const seen = servers.seen.of(accountId)
  const needed = atLeast > seen ? atLeast : seen
  servers.turn += 1
  const choice = chooseServer(servers.watch.usable(), { needed, turn: servers.turn })
  if (choice.kind === 'primary') return undefined
  if (choice.kind === 'replica') return choice.replica
  const look = await choice.replica.look().catch(() => undefined)
  return look !== undefined && look.position >= needed ? choice.replica : undefined
}

/** A result of work. That the work refused the request is a result as well, which any server would give. */
type Outcome<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'refused'; readonly error: WaybillError }

async function outcomeOf<T>(work: Promise<T>): Promise<Outcome<T>> {
  try {
    return { kind: 'value', value: await work }
  } catch (error) {
    if (error instanceof WaybillError) return { kind: 'refused', error }
    throw error
  }
}

async function read<T>(servers: Servers, terms: ReadTerms, work: ReadWork<T>): Promise<T> {
  const replica = await findReplica(servers, terms)
  const answered = replica && (await readFromReplica(servers, replica, terms, work))
  const outcome = answered ?? (await readFromPrimary(servers, terms, work))
  if (outcome.kind === 'refused') throw outcome.error
  return outcome.value
}

async function readFromPrimary<T>(
  { primary, lookAtPrimary: look, seen }: Servers,
  { accountId, signal }: ReadTerms,
  work: ReadWork<T>,
): Promise<Outcome<T>> {
  signal?.throwIfAborted()
  const position = once(async () => (await look()).position)
  const outcome = await outcomeOf(work(primary, signal, position))
  seen.note(accountId, await position())
  return outcome
}

/** Undefined where the replica failed, so that the primary has to answer. */
async function readFromReplica<T>(
  { seen }: Servers,
  replica: Replica,
  { accountId, signal }: ReadTerms,
  work: ReadWork<T>,
): Promise<Outcome<T> | undefined> {
  const ending = endWith(signal, replica.lost())
  const position = once(async () => (await ending.unlessEnded(replica.look())).position)
  try {
    const outcome = await ending.unlessEnded(outcomeOf(work(replica.knex, ending.signal, position)))
    seen.note(accountId, await position())
    replica.succeeded()
    return outcome
  } catch (error) {
    blameReplica(replica, error, signal)
    return undefined
  } finally {
    ending.dispose()
  }
}

/** Takes the replica out of use for a while, unless the error is one that the caller has to get. */
function blameReplica(replica: Replica, error: unknown, signal: AbortSignal | undefined): void {
  switch (judgeReplicaError(error, signal)) {
    case 'cancelled':
      throw signal?.reason
    case 'refused':
      throw error
    case 'ask primary':
      replica.failed(error)
  }
}

async function* readPieces<T>(servers: Servers, terms: ReadTerms, work: ReadPiecesWork<T>): AsyncGenerator<T> {
  const replica = await findReplica(servers, terms)
  const read = replica && (yield* piecesOfReplica(servers, replica, terms, work))
  if (read?.isComplete !== true) yield* piecesOfPrimary(servers, terms, work, read?.last)
}

/** How far a replica got. */
interface PiecesRead<T> {
  readonly isComplete: boolean
  /** Undefined where there was none. */
  readonly last: T | undefined
}

/** Returns when all is read, or when the replica fails. */
async function* piecesOfReplica<T>(
  { seen }: Servers,
  replica: Replica,
  { accountId, signal }: ReadTerms,
  work: ReadPiecesWork<T>,
): AsyncGenerator<T, PiecesRead<T>> {
  const ending = endWith(signal, replica.lost())
  let last: T | undefined
  try {
    const pieces = work(replica.knex, ending.signal, undefined)[Symbol.asyncIterator]()
    for (;;) {
      const result = await ending.unlessEnded(pieces.next())
      // noted before the piece goes out, so that the caller's next read cannot show an older state
      if (last === undefined || result.done === true) {
        seen.note(accountId, (await ending.unlessEnded(replica.look())).position)
      }
      if (result.done === true) return { isComplete: true, last }
      last = result.value
      yield result.value
    }
  } catch (error) {
    blameReplica(replica, error, signal)
    return { isComplete: false, last }
  } finally {
    ending.dispose()
  }
}

async function* piecesOfPrimary<T>(
  { primary, lookAtPrimary: look, seen }: Servers,
  { accountId, signal }: ReadTerms,
  work: ReadPiecesWork<T>,
  after: T | undefined,
): AsyncGenerator<T, void> {
  let isNoted = after !== undefined
  try {
    for await (const piece of work(primary, signal, after)) {
      if (!isNoted) seen.note(accountId, (await look()).position)
      isNoted = true
      yield piece
    }
  } finally {
    seen.note(accountId, (await look()).position)
  }
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => (asked ??= ask())
}

/** One signal for several. Its listeners are removed when the work ends, because the signal of a replica lives as long as the replica. */
function endWith(...signals: readonly (AbortSignal | undefined)[]) {
  const controller = new AbortController()
  const { promise: ended, reject } = Promise.withResolvers<never>()
  ended.catch(() => {})
  const end = (reason: unknown) => {
    reject(reason)
    controller.abort(reason)
  }
  const onAbort = ({ target }: Event) => end((target as AbortSignal).reason)
  for (const signal of signals) {
    if (signal?.aborted) end(signal.reason)
    else signal?.addEventListener('abort', onAbort, { once: true })
  }
  return {
    signal: controller.signal,
    unlessEnded: <T>(work: Promise<T>): Promise<T> => Promise.race([work, ended]),
    dispose: () => {
      for (const signal of signals) signal?.removeEventListener('abort', onAbort)
    },
  }
}
