import type { Knex } from 'knex'
import type { Migration } from './migration.ts'
import { OLD_LOCKS } from './old-locks.ts'

/** The database has steps that this version of the program does not know and cannot run beside. */
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

/** The steps that a database lacks. */
export interface PendingMigrations {
  /** Steps that processes of older releases do not notice. */
  readonly expanding: readonly Migration[]
  /** Steps that remove what older releases use. */
  readonly contracting: readonly Migration[]
  /** Whether the database has no step yet. */
  readonly isNew: boolean
}

interface AppliedStep {
  readonly name: string
  /** The step that a process has to know to run beside this one; null for none. */
  readonly needs: string | null
}

/**
 * The steps that the database still lacks, each list in order.
 *
 * Steps of newer releases are accepted when they only add, so that older processes go on and can be started while a fleet is replaced.
 *
 * @throws DatabaseTooNewError when the database has a step that removed what this version uses
 */
export async function findPending(knex: Knex, migrations: readonly Migration[]): Promise<PendingMigrations> {
  const applied = await appliedSteps(knex)
  const known = new Set(migrations.map(({ name }) => name))
  const tooNew = applied.filter(({ name, needs }) => !known.has(name) && needs !== null && !known.has(needs))
  if (tooNew.length > 0) throw new DatabaseTooNewError(tooNew.map(({ name }) => name))
  const ran = new Set(applied.map(({ name }) => name))
  const pending = migrations.filter(({ name }) => !ran.has(name))
  const [contracting = [], expanding = []] = [true, false].map((isContract) =>
    pending.filter(({ contract }) => (contract !== undefined) === isContract),
  )
  return { expanding, contracting, isNew: applied.length === 0 }
}

/** The names of the steps that the database has, in order. */
export async function appliedNames(knex: Knex): Promise<string[]> {
  return (await appliedSteps(knex)).map(({ name }) => name)
}

/**
 * `schema_migrations` has the steps that a process must know to serve: all up to 0016, later those that remove something. Releases up to
 * 0016 know this table only and refuse what they do not know. `schema_steps` has every step since 0017; `needs` says who may run beside it.
 */
async function appliedSteps(knex: Knex): Promise<AppliedStep[]> {
  const { rows } = await knex.raw<{ rows: { migrations: boolean; steps: boolean }[] }>(
    `select to_regclass('schema_migrations') is not null as migrations, to_regclass('schema_steps') is not null as steps`,
  )
  const [present] = rows
  const steps: AppliedStep[] = present?.steps ? await knex('schema_steps').select('name', 'needs') : []
  const detailed = new Set(steps.map(({ name }) => name))
  const names: string[] = present?.migrations ? await knex('schema_migrations').pluck('name') : []
  const others = names.filter((name) => !detailed.has(name)).map((name) => ({ name, needs: name }))
  return [...steps, ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

/** Notes that a step ran. */
export async function recordStep(trx: Knex.Transaction, { name, contract }: Migration): Promise<void> {
  const isOld = name in OLD_LOCKS
  if (isOld || contract !== undefined) await trx('schema_migrations').insert({ name })
  if (!isOld) await trx('schema_steps').insert({ name, needs: contract?.unusedSince ?? null })
}

/** Creates the tables that remember the steps. */
export async function createRecords(trx: Knex.Transaction): Promise<void> {
  await trx.raw(
    'create table if not exists schema_migrations (name text primary key, applied_at timestamptz not null default now())',
  )
  await trx.raw(
    'create table if not exists schema_steps (name text primary key, needs text, applied_at timestamptz not null default now())',
  )
}
