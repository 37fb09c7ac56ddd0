import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { WaybillError } from '../../errors/waybill-error.ts'
import type { DatabaseConnection, DatabaseOptions } from '../knex.ts'
import { createAskAfresh } from './ask-afresh.ts'
import { createReplica, type Replica } from './replica.ts'
import { createSeenPositions } from './seen-positions.ts'
import { lookAtPrimary, type PrimaryLook, type WalPosition } from './wal-position.ts'

/** Who reads, and what the answer must not be behind. */
export interface ReadTerms {
  readonly accountId: number
  /** Beyond what the account has seen through this process. */
  readonly atLeast?: WalPosition | undefined
  readonly signal?: AbortSignal | undefined
}

/**
 * Work that only reads.
 *
 * @param position - where the pool stands: to be asked for when all is read, which is then not beyond it
 */
export type ReadWork<T> = (
  pool: Knex,
  signal: AbortSignal | undefined,
  position: () => Promise<WalPosition>,
) => Promise<T>

/** The primary and its replicas, for work that only reads. */
export interface ReadPools {
  /** The primary first. */
  readonly pools: readonly Knex[]
  /**
   * Runs work on a replica that has all that the account has seen, else on the primary. Work that fails on a replica, for whatever reason
   * but the caller's own, is run once more on the primary.
   */
  readonly read: <T>(terms: ReadTerms, work: ReadWork<T>) => Promise<T>
  /**
   * Reads what comes in pieces, from one pool. When a replica fails on the way, the primary goes on behind the last piece.
   *
   * @param begin - `behind` is the last piece that there was, undefined to begin with
   */
  readonly readPieces: <T>(
    terms: ReadTerms,
    begin: (pool: Knex, signal: AbortSignal | undefined, behind: T | undefined) => AsyncIterable<T>,
  ) => AsyncGenerator<T>
  /** Where a pool stands: whatever was read from it before is not beyond that. */
  readonly positionOf: (pool: Knex) => Promise<WalPosition>
  /** Up to where the account has seen the database, as far as this process knows. */
  readonly seenBy: (accountId: number) => WalPosition
  readonly noteSeen: (accountId: number, position: WalPosition) => void
  /** Looks how far each replica is, now and from then on. None is used before. */
  readonly start: () => Promise<void>
  readonly stop: () => Promise<void>
}

export interface ReadPoolsOptions {
  readonly primary: Knex
  readonly replicas: readonly { readonly name: string; readonly connection: DatabaseConnection }[]
  /** Of the pools of replicas. */
  readonly database: DatabaseOptions
  readonly logger: Logger
  readonly monotonicMs: () => number
  readonly lookEveryMs?: number
  readonly lookTimeoutMs?: number
  /** A replica that is further behind than this is not used, whatever its caller has seen. */
  readonly maxLagMs?: number
}

const LOOK_EVERY_MS = 500
const LOOK_TIMEOUT_MS = 1_000
const MAX_LAG_MS = 10_000

export function createReadPools(options: ReadPoolsOptions): ReadPools {
  const { primary, logger, monotonicMs } = options
  const { lookEveryMs = LOOK_EVERY_MS, lookTimeoutMs = LOOK_TIMEOUT_MS, maxLagMs = MAX_LAG_MS } = options
  const replicas = options.replicas.map((replica) =>
    createReplica({ ...replica, database: options.database, logger, monotonicMs, lookTimeoutMs }),
  )
  const seen = createSeenPositions()
  const lag = createLagWatch(monotonicMs, maxLagMs)
  const lookAtThePrimary = createAskAfresh(() => lookAtPrimary(primary))
  const foreign = new Set<Replica>()
  let turn = 0
  let timer: NodeJS.Timeout | undefined
  let polling: Promise<void> | undefined

  async function read<T>(terms: ReadTerms, work: ReadWork<T>): Promise<T> {
    const { accountId, signal } = terms
    const replica = await choose(terms)
    if (replica !== undefined) {
      const outcome = await readFrom(replica, terms, work)
      if (outcome?.kind === 'value') return outcome.value
      if (outcome?.kind === 'refused') throw outcome.error
    }
    signal?.throwIfAborted()
    const position = once(async () => (await lookAtThePrimary()).position)
    const outcome = await settle(work(primary, signal, position))
    if (outcome.kind !== 'failed') seen.note(accountId, await position())
    if (outcome.kind === 'value') return outcome.value
    throw outcome.error
  }

  async function choose({ accountId, atLeast = 0n }: ReadTerms): Promise<Replica | undefined> {
    const seenBefore = seen.of(accountId)
    const needed = atLeast > seenBefore ? atLeast : seenBefore
    turn += 1
    const usable = replicas.filter((replica) => {
      const reached = replica.reached()
      return reached !== undefined && !foreign.has(replica) && lag.isBounded(reached)
    })
    const inTurn = [...usable.slice(turn % usable.length), ...usable.slice(0, turn % usable.length)]
    const ready = inTurn.find((replica) => (replica.reached() ?? -1n) >= needed)
    if (ready !== undefined) return ready
    // What is known may be half a second old.
    const [first] = inTurn
    const found = await first?.look().catch(() => undefined)
    return found !== undefined && found.position >= needed ? first : undefined
  }

  /** Undefined when the primary is to be asked. */
  async function readFrom<T>(
    replica: Replica,
    { accountId, signal }: ReadTerms,
    work: ReadWork<T>,
  ): Promise<Outcome<T> | undefined> {
    const ending = endWith(signal, replica.lost())
    const position = once(async () => (await ending.unlessEnded(replica.look())).position)
    try {
      const outcome = await ending.unlessEnded(settle(work(replica.knex, ending.signal, position)))
      if (outcome.kind === 'failed') throw outcome.error
      seen.note(accountId, await position())
      replica.succeeded()
      return outcome
    } catch (error) {
      if (signal?.aborted) throw signal.reason
      replica.failed(error)
      return undefined
    } finally {
      ending.dispose()
    }
  }

  async function* readPieces<T>(
    terms: ReadTerms,
    begin: (pool: Knex, signal: AbortSignal | undefined, behind: T | undefined) => AsyncIterable<T>,
  ): AsyncGenerator<T> {
    const { accountId, signal } = terms
    let last: T | undefined
    const replica = await choose(terms)
    if (replica !== undefined) {
      const ending = endWith(signal, replica.lost())
      try {
        const pieces = begin(replica.knex, ending.signal, undefined)[Symbol.asyncIterator]()
        for (;;) {
          const result = await ending.unlessEnded(pieces.next())
          // before it goes out: what is seen is known to be seen
          if (last === undefined || result.done === true) {
            seen.note(accountId, (await ending.unlessEnded(replica.look())).position)
          }
          if (result.done === true) return
          last = result.value
          yield result.value
        }
      } catch (error) {
        if (signal?.aborted) throw signal.reason
        if (error instanceof WaybillError) throw error
        replica.failed(error)
      } finally {
        ending.dispose()
      }
    }
    try {
      for await (const piece of begin(primary, signal, last)) {
        if (last === undefined) seen.note(accountId, (await lookAtThePrimary()).position)
        last = piece
        yield piece
      }
    } finally {
      seen.note(accountId, (await lookAtThePrimary()).position)
    }
  }

  async function positionOf(pool: Knex): Promise<WalPosition> {
    const replica = replicas.find(({ knex }) => knex === pool)
    return (await (replica === undefined ? lookAtThePrimary() : replica.look())).position
  }

  async function lookAtAll(): Promise<void> {
    const atMs = monotonicMs()
    const found = await lookAtThePrimary().catch(() => undefined)
    if (found !== undefined) lag.note(found.position, atMs)
    await Promise.all(replicas.map((replica) => lookAtOne(replica, found)))
  }

  async function lookAtOne(replica: Replica, ofPrimary: PrimaryLook | undefined): Promise<void> {
    const found = await replica.look().catch(() => undefined)
    if (found === undefined || ofPrimary === undefined) return
    if (found.cluster === ofPrimary.cluster) foreign.delete(replica)
    else if (!foreign.has(replica)) {
      foreign.add(replica)
      logger.error({ replica: replica.name }, 'a replica is not one of this database; it is not used')
    }
  }

  function lookOn(): void {
    timer = setTimeout(() => {
      polling = lookAtAll().finally(() => {
        if (timer !== undefined) lookOn()
      })
    }, lookEveryMs)
    timer.unref()
  }

  return {
    pools: [primary, ...replicas.map(({ knex }) => knex)],
    read,
    readPieces,
    positionOf,
    seenBy: seen.of,
    noteSeen: seen.note,
    async start() {
      await lookAtAll()
      lookOn()
    },
    async stop() {
      clearTimeout(timer)
      timer = undefined
      await polling
      await Promise.all(replicas.map((replica) => replica.close()))
    },
  }
}

type Outcome<T> =
  | { readonly kind: 'value'; readonly value: T }
  /** The caller's own doing, which is an answer like others. */
  | { readonly kind: 'refused'; readonly error: WaybillError }
  | { readonly kind: 'failed'; readonly error: unknown }

async function settle<T>(work: Promise<T>): Promise<Outcome<T>> {
  try {
    return { kind: 'value', value: await work }
  } catch (error) {
    return error instanceof WaybillError ? { kind: 'refused', error } : { kind: 'failed', error }
  }
}

function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let asked: Promise<T> | undefined
  return () => (asked ??= ask())
}

/** One signal for two, without listeners that outlive the work. */
function endWith(...signals: readonly (AbortSignal | undefined)[]) {
  const controller = new AbortController()
  const { promise: ended, reject } = Promise.withResolvers<never>()
  ended.catch(() => {})
  const end = (event: Event) => {
    const { reason } = event.target as AbortSignal
    reject(reason)
    controller.abort(reason)
  }
  for (const signal of signals) {
    if (signal?.aborted) {
      reject(signal.reason)
      controller.abort(signal.reason)
    } else signal?.addEventListener('abort', end, { once: true })
  }
  return {
    signal: controller.signal,
    unlessEnded: <T>(work: Promise<T>): Promise<T> => Promise.race([work, ended]),
    dispose: () => {
      for (const signal of signals) signal?.removeEventListener('abort', end)
    },
  }
}

/** Knows where the primary stood of late, and so how old what a replica shows is at most, without comparing clocks. */
function createLagWatch(monotonicMs: () => number, maxLagMs: number) {
  let places: { readonly atMs: number; readonly position: WalPosition }[] = []
  return {
    note(position: WalPosition, atMs: number): void {
      places = [...places.filter((place) => place.atMs >= atMs - maxLagMs), { atMs, position }]
    },
    /** Whether there is a moment within the lag at which the primary had no more than that. */
    isBounded(reached: WalPosition): boolean {
      const sinceMs = monotonicMs() - maxLagMs
      return places.some(({ atMs, position }) => atMs >= sinceMs && position <= reached)
    },
  }
}
