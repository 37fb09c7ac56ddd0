import type { Knex } from 'knex'
import type { Logger } from '../../domain/logger.ts'
import { withLimit } from '../cancellable.ts'
import { NoAnswerError } from '../database-error.ts'
import { raw, readRows } from '../statement.ts'

/** The address of a worker. */
interface Place {
  readonly host: string
  readonly port: number
}

export const nameOfPlace = ({ host, port }: Place): string => `${host}:${port}`

/** How long a worker may take to answer the coordinator, in milliseconds. */
const ANSWER_MS = 2_000

/**
 * Asks the coordinator which of its workers do not answer it: they are down, or hang.
 *
 * @throws the coordinator's own error
 */
export async function findLostWorkers<T extends Place>(knex: Knex, workers: readonly T[]): Promise<T[]> {
  const answers = await Promise.all(workers.map((worker) => doesAnswer(knex, worker)))
  return workers.filter((_, at) => answers[at] === false)
}

async function doesAnswer(knex: Knex, { host, port }: Place): Promise<boolean> {
  try {
    const [row] = await ask<{ answers: boolean }>(knex, 'select citus_check_connection_to_node(?, ?) as answers', [
      host,
      port,
    ])
    return row?.answers === true
  } catch (error) {
    if (error instanceof NoAnswerError) return false
    throw error
  }
}

export type WorkerWatch = ReturnType<typeof watchWorkers>

/** Pause between two checks, in milliseconds. */
const CHECK_EVERY_MS = 1_000
/** Checks in a row without an answer after which a worker is lost. One may have hung for the coordinator's sake. */
const MAX_MISSES = 2

/**
 * Looks at the workers of a cluster again and again, and so knows which accounts are out of reach while others are served.
 *
 * @param knex - a pool of its own, so that checks do not wait behind statements that hang
 */
export function watchWorkers(knex: Knex, logger: Logger) {
  const misses = new Map<string, number>()
  const lost = new Set<string>()
  /** The workers of accounts, as of the last loss. */
  const places = new Map<number, string>()
  const listeners: (() => void)[] = []
  const stopping = new AbortController()
  let checking: Promise<void> = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  async function check(): Promise<void> {
    const workers = await readWorkers(knex)
    const silent = new Set((await findLostWorkers(knex, workers)).map(nameOfPlace))
    for (const worker of workers.map(nameOfPlace)) {
      if (!silent.has(worker)) found(worker)
      else if (!lost.has(worker)) missed(worker)
    }
  }

  function found(worker: string): void {
    misses.delete(worker)
    if (lost.delete(worker)) logger.info({ worker }, 'worker found again: its accounts are served')
  }

  function missed(worker: string): void {
    const times = (misses.get(worker) ?? 0) + 1
    misses.set(worker, times)
    if (times < MAX_MISSES) return
    lost.add(worker)
    places.clear()
    logger.error({ worker }, 'worker lost: its accounts are unavailable, the others are served')
    for (const listener of listeners) listener()
  }

  function schedule(): void {
    timer = setTimeout(() => {
      checking = check()
        // the coordinator does not answer: its callers learn that themselves
        .catch((err: unknown) => logger.debug({ err }, 'the workers could not be looked at'))
        .finally(() => {
          if (!stopping.signal.aborted) schedule()
        })
    }, CHECK_EVERY_MS)
    timer.unref()
  }

  return {
    /** Whether the worker that has the account's rows does not answer. */
    async isLost(accountId: number): Promise<boolean> {
      if (lost.size === 0) return false
      const place = places.get(accountId) ?? (await readPlace(knex, accountId).catch(() => undefined))
      if (place === undefined) return false
      places.set(accountId, place)
      return lost.has(place)
    },
    /** Calls back each time that a worker is lost. */
    onLoss: (listener: () => void) => void listeners.push(listener),
    start: schedule,
    async stop(): Promise<void> {
      stopping.abort()
      clearTimeout(timer)
      await checking
      await knex.destroy()
    },
  }
}

/** Nodes that take shards, but for the coordinator itself. */
function readWorkers(knex: Knex): Promise<Place[]> {
  return ask<Place>(
    knex,
    `select nodename as host, nodeport as port from pg_dist_node
     where noderole = 'primary' and isactive and shouldhaveshards and groupid <> 0`,
  )
}

/** The worker of an account; undefined where its tables are not sharded. Needs the coordinator alone. */
async function readPlace(knex: Knex, accountId: number): Promise<string | undefined> {
  const [place] = await ask<Place>(
    knex,
    `select nodename as host, nodeport as port from pg_dist_shard_placement
     where shardid = get_shard_id_for_distribution_column('payments', ?::int)`,
    [accountId],
  )
  return place && nameOfPlace(place)
}

function ask<Row>(knex: Knex, sql: string, bindings: readonly (string | number)[] = []): Promise<Row[]> {
  return withLimit(ANSWER_MS, (signal) => readRows<Row>(knex, raw(sql, bindings), signal))
}
