import type { Knex } from 'knex'
import { inTransaction } from '../cancellable.ts'
import { MIGRATIONS } from './list.ts'
import type { Migration } from './migration.ts'

/** The database has migrations that this version of the program does not know. */
export class DatabaseTooNewError extends Error {
  override readonly name = 'DatabaseTooNewError'
  readonly unknown: readonly string[]

  constructor(unknown: readonly string[]) {
    super(
      `The database was migrated by a newer version of this program (it has ${unknown.join(', ')}, unknown here). Start that version, or use another database.`,
    )
    this.unknown = unknown
  }
}

/** The key of the advisory lock: the bytes of "waybillm", which no other program is likely to use. */
const LOCK_KEY = '8602248640120188013'

/**
 * Brings the schema up to date. Several processes may call it at once: one works, the others wait. A process that dies on the way leaves
 * only complete steps.
 *
 * @returns the names of the steps that this call ran
 * @throws DatabaseTooNewError when the database has migrations that are not in the list
 */
export async function migrate(knex: Knex, migrations: readonly Migration[] = MIGRATIONS): Promise<string[]> {
  const ran: string[] = []
  for (;;) {
    const name = await inTransaction(knex, undefined, (trx) => runNext(trx, migrations))
    if (name === undefined) return ran
    ran.push(name)
  }
}

/**
 * The advisory lock belongs to the transaction, so it is released however the process ends. (Knex's own migrations keep their lock as a
 * row, which a killed process leaves locked.)
 */
async function runNext(trx: Knex.Transaction, migrations: readonly Migration[]): Promise<string | undefined> {
  // waiting for another process, or building an index, may take longer than the timeout
  await trx.raw('set local statement_timeout = 0')
  await trx.raw('select pg_advisory_xact_lock(?)', [LOCK_KEY])
  await trx.raw(
    'create table if not exists schema_migrations (name text primary key, applied_at timestamptz not null default now())',
  )
  const [next] = await pendingMigrations(trx, migrations)
  if (next === undefined) return undefined
  await migrations.find(({ name }) => name === next)?.up(trx)
  await trx('schema_migrations').insert({ name: next })
  return next
}

/**
 * The names of the steps that the database still lacks, in order; none when it is ready for use.
 *
 * @throws DatabaseTooNewError when the database has migrations that are not in the list
 */
export async function pendingMigrations(knex: Knex, migrations: readonly Migration[] = MIGRATIONS): Promise<string[]> {
  const applied = await appliedMigrations(knex)
  const known = new Set(migrations.map(({ name }) => name))
  const unknown = applied.filter((name) => !known.has(name))
  if (unknown.length > 0) throw new DatabaseTooNewError(unknown)
  return [...known].filter((name) => !applied.includes(name))
}

async function appliedMigrations(knex: Knex): Promise<string[]> {
  const { rows } = await knex.raw<{ rows: { present: boolean }[] }>(
    `select to_regclass('schema_migrations') is not null as present`,
  )
  if (!rows[0]?.present) return []
  return knex('schema_migrations').orderBy('name').pluck('name')
}
