import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { inTransaction, withConnection } from '../cancellable.ts'
import { classifyDatabaseError } from '../database-error.ts'
import { distributeNewTables } from '../sharding/distribute.ts'
import { readCluster } from '../sharding/read-cluster.ts'
import { liftTimeouts } from '../without-timeouts.ts'
import { createRecords, findPending, recordStep } from './applied-migrations.ts'
import { changeIndexes } from './change-indexes.ts'
import { MIGRATIONS } from './list.ts'
import { buildsIndexes, type IndexMigration, type Migration, type TransactionMigration } from './migration.ts'
import type { MigrationReport } from './migration-report.ts'

export interface MigrateOptions {
  /** Every step of the schema, oldest first; default {@link MIGRATIONS}. */
  readonly migrations?: readonly Migration[]
  /** Also runs the steps that remove what older releases use. Without it they run in a new database only. */
  readonly contract?: boolean
  readonly report?: MigrationReport
  /** How often the building of an index is reported, in milliseconds; default 10,000. */
  readonly reportEveryMs?: number
  /** Ends the work: a statement that runs is cancelled, and what it began is continued by the next call. */
  readonly signal?: AbortSignal | undefined
  /** How long a step waits for a lock, while it holds up everybody who comes after it, in milliseconds; default 1,000. */
  readonly lockTimeoutMs?: number
  /** How often a step is tried that does not get its locks or loses its connection; default 60, which is about ten minutes. */
  readonly maxTries?: number
  /** The pause after the first failed try, in milliseconds; it doubles up to ten seconds; default 1,000. */
  readonly firstPauseMs?: number
}

/** The key of the advisory lock: the bytes of "waybillm", which no other program is likely to use. */
const LOCK_KEY = '8602248640120188013'

const LONGEST_PAUSE_MS = 10_000

/** An older snapshot would not show the steps that another process has run while this one waited. */
const NEWEST_ROWS = { isolationLevel: 'read committed' } as const

/**
 * Brings the schema up to date. Several processes may call it at once: one works, the others wait. A process that dies on the way leaves
 * complete steps and at most one index that is not valid, which the next call builds again.
 *
 * @returns the names of the steps that this call ran
 * @throws DatabaseTooNewError when the database has a step that removed what this version uses
 * @throws OtherSchemaError when another build from before the first release made the database
 */
export async function migrate(knex: Knex, options: MigrateOptions = {}): Promise<string[]> {
  const ran: string[] = []
  if ((await readCluster(knex))?.isWorker === true) {
    throw new Error('DATABASE_URL leads to a worker of a Citus cluster. Give it the coordinator.')
  }
  const { isNew } = await findPending(knex, options.migrations ?? MIGRATIONS)
  const complete = { ...options, contract: options.contract === true || isNew }
  for (;;) {
    const step = await nextOf(knex, complete)
    if (step === undefined) return ran
    if (await tryRepeatedly(step, knex, complete)) ran.push(step.name)
  }
}

/**
 * The names of the steps that a process needs and the database lacks, in order; none when it is ready for use.
 *
 * @throws DatabaseTooNewError when the database has a step that removed what this version uses
 * @throws OtherSchemaError when another build from before the first release made the database
 */
export async function pendingMigrations(knex: Knex, migrations: readonly Migration[] = MIGRATIONS): Promise<string[]> {
  const { expanding } = await findPending(knex, migrations)
  return expanding.map(({ name }) => name)
}

async function nextOf(knex: Knex, options: MigrateOptions): Promise<Migration | undefined> {
  const { migrations = MIGRATIONS, contract } = options
  const { expanding, contracting } = await findPending(knex, migrations)
  const pending = new Set(contract === true ? [...expanding, ...contracting] : expanding)
  return migrations.find((step) => pending.has(step))
}

/** @returns whether this call ran the step; otherwise another process did */
async function tryRepeatedly(step: Migration, knex: Knex, options: MigrateOptions): Promise<boolean> {
  const { maxTries = 60, firstPauseMs = 1_000, report, signal } = options
  for (let tries = 1; ; tries++) {
    try {
      return await (buildsIndexes(step) ? runIndexes(knex, step, options) : runStep(knex, step, options))
    } catch (error) {
      if (!isWorthRetrying(error, step)) throw error
      if (tries >= maxTries) throw new Error(`${step.name} was tried ${tries} times`, { cause: error })
      const pauseMs = Math.min(firstPauseMs * 2 ** (tries - 1), LONGEST_PAUSE_MS)
      const blockers = await findBlockers(knex)
      report?.waits({ step: step.name, error: error as Error, blockers, pauseMs })
      await sleep(pauseMs, undefined, { signal })
    }
  }
}

const LOCK_NOT_AVAILABLE = '55P03'

function isWorthRetrying(error: unknown, step: Migration): boolean {
  const isBlocked = (error as { code?: unknown } | undefined)?.code === LOCK_NOT_AVAILABLE
  const kind = classifyDatabaseError(error)
  return isBlocked || kind === 'serialization' || (kind === 'unavailable' && buildsIndexes(step))
}

/**
 * The advisory lock belongs to the transaction, so it is released however the process ends. (Knex's own migrations keep their lock as a
 * row, which a killed process leaves locked.)
 */
async function runStep(knex: Knex, step: TransactionMigration, options: MigrateOptions): Promise<boolean> {
  const work = async (trx: Knex.Transaction) => {
    // waiting for another process, or the work of an old step, may take longer than the timeouts of the role or the pool
    await liftTimeouts(trx)
    await trx.raw('select pg_advisory_xact_lock(?)', [LOCK_KEY])
    await createRecords(trx)
    if ((await nextOf(trx, options)) !== step) return false
    // who waits for a strong lock holds up everybody who comes after it
    await trx.raw(`select set_config('lock_timeout', ?, true)`, [`${options.lockTimeoutMs ?? 1_000}ms`])
    await step.up(trx)
    await distributeNewTables(trx)
    await recordStep(trx, step)
    return true
  }
  return inTransaction(knex, options.signal, work, NEWEST_ROWS)
}

/** Others wait by asking again and again. Processes that only run steps in transactions do not use this key. */
const INDEX_LOCK_KEY = '8602248640120188014'
const ASK_EVERY_MS = 250

/** The lock belongs to a connection beside the work; it is released however the process ends. */
async function runIndexes(knex: Knex, step: IndexMigration, options: MigrateOptions): Promise<boolean> {
  const { signal } = options
  return withConnection(knex, signal, async (connection) => {
    const lock = async () => {
      const asked = knex.raw<{ rows: [{ done: boolean }] }>('select pg_try_advisory_lock(?) as done', [INDEX_LOCK_KEY])
      return (await asked.connection(connection)).rows[0].done
    }
    try {
      while (!(await lock())) await sleep(ASK_EVERY_MS, undefined, { signal })
      if ((await nextOf(knex, options)) !== step) return false
      await changeIndexes(knex, step.indexes, options)
      await inTransaction(knex, signal, async (trx) => {
        await createRecords(trx)
        await recordStep(trx, step)
      })
      return true
    } finally {
      await connection.end()
    }
  })
}

/** Sessions with locks on tables of the schema, for the operator; none where the server does not answer. */
async function findBlockers(knex: Knex): Promise<string[]> {
  const { rows } = await knex
    .raw<{ rows: { text: string }[] }>(
      `select format('pid %s (%s, %s, for %s s)', pid, application_name, state, extract(epoch from now() - xact_start)::int) as text
       from pg_stat_activity where pid <> pg_backend_pid() and pid in (
         select pid from pg_locks where granted and database = (select oid from pg_database where datname = current_database())
           and relation in (select oid from pg_class where relnamespace = current_schema()::regnamespace))
       order by xact_start limit 3`,
    )
    .catch(() => ({ rows: [] }))
  return rows.map(({ text }) => text)
}
