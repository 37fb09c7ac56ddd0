import type { Knex } from 'knex'
import type { Logger } from '../domain/logger.ts'
import { raw, readRows } from './statement.ts'

/** Who holds a lock that keeps others waiting. */
interface LockHolder {
  readonly pid: number
  readonly applicationName: string
  /** `idle in transaction`, `active`, …; null where this role may not see it. */
  readonly state: string | null
  /** How long its transaction has been open; null where this role may not see it. */
  readonly openSeconds: number | null
  /** How many statements of ours wait for it, and the longest of them for how long. */
  readonly waiting: number
  readonly waitedSeconds: number
}

export interface LockWatchOptions {
  /** The service's pool. */
  readonly knex: Knex
  /** A pool of its own: statements that wait may have taken every connection of the other. Closed by `stop`. */
  readonly ownKnex: Knex
  readonly logger: Logger
  /** How long a statement has to wait until its lock is looked at, in milliseconds; default 5,000. */
  readonly afterMs?: number
}

export type LockWatch = ReturnType<typeof watchLocks>

const USUAL_WAIT_MS = 5_000
/** One warning in so many milliseconds. */
const WARN_EVERY_MS = 60_000

/** Watches statements that take long, and names in the log who holds the lock for which they wait. Asks the database only while there are any. */
export function watchLocks({ knex, ownKnex, logger, afterMs = USUAL_WAIT_MS }: LockWatchOptions) {
  let warnedAtMs = Number.NEGATIVE_INFINITY
  let checking: Promise<void> = Promise.resolve()

  async function check(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - warnedAtMs < WARN_EVERY_MS || !hasLongStatement(knex, afterMs)) return
    const [holder] = await findHolders(ownKnex, afterMs)
    if (holder === undefined) return
    warnedAtMs = nowMs
    logger.warn({ holder }, 'statements wait for a lock that another session holds: end its transaction')
  }

  const timer = setInterval(() => {
    checking = check().catch((err: unknown) => logger.debug({ err }, 'locks could not be looked at'))
  }, afterMs)
  timer.unref()
  return {
    async stop(): Promise<void> {
      clearInterval(timer)
      await checking
      await ownKnex.destroy()
    },
  }
}

/** Whether a connection may have been in use for so long: the pool knows since when it has not been free. */
function hasLongStatement({ client }: Knex, afterMs: number): boolean {
  const { pool } = client as { readonly pool: { readonly used: readonly { readonly timestamp: number }[] } }
  return pool.used.some(({ timestamp }) => Date.now() - timestamp >= afterMs)
}

/** Those who wait for nobody themselves, the one with the most waiting statements first. */
function findHolders(knex: Knex, afterMs: number): Promise<LockHolder[]> {
  const statement = raw(
    `select holder.pid, holder.application_name as "applicationName", holder.state,
       round(extract(epoch from clock_timestamp() - holder.xact_start))::int as "openSeconds",
       count(distinct waiting.pid)::int as waiting,
       round(max(extract(epoch from clock_timestamp() - waiting.query_start)))::int as "waitedSeconds"
     from pg_stat_activity waiting
     cross join lateral unnest(pg_blocking_pids(waiting.pid)) as blocking (pid)
     join pg_stat_activity holder on holder.pid = blocking.pid
     where waiting.datname = current_database() and waiting.usename = current_user
       and waiting.wait_event_type = 'Lock' and waiting.query_start <= clock_timestamp() - ? * interval '1 ms'
       and holder.wait_event_type is distinct from 'Lock'
     group by holder.pid, holder.application_name, holder.state, holder.xact_start
     order by waiting desc, holder.pid`,
    [afterMs],
  )
  return readRows<LockHolder>(knex, statement, AbortSignal.timeout(afterMs))
}
