import type { Knex } from 'knex'
import { withConnection } from '../cancellable.ts'
import { MIGRATIONS } from './list.ts'
import { buildsIndexes, type Migration } from './migration.ts'

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

/** The database was made by another build from before the first release, whose schema no migration changes into the present one. */
export class OtherSchemaError extends Error {
  override readonly name = 'OtherSchemaError'

  constructor() {
    super(
      'The database was made by a build from before release 0.2.0, whose schema no later build can change. Write its requests and payments to files with ' +
        'the build that made it (waybill export requests, waybill export payments), and read them into a new database with this one (waybill import).',
    )
  }
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
 * @throws OtherSchemaError when the database does not begin with the first step
 */
export async function findPending(knex: Knex, migrations: readonly Migration[]) {
  const applied = await appliedSteps(knex)
  const ran = new Set(applied.map(({ name }) => name))
  const [first] = migrations
  if (ran.size > 0 && first !== undefined && !ran.has(first.name)) throw new OtherSchemaError()
  const known = new Set(migrations.map(({ name }) => name))
  const tooNew = applied.filter(({ name, needs }) => !known.has(name) && needs !== null && !known.has(needs))
  if (tooNew.length > 0) throw new DatabaseTooNewError(tooNew.map(({ name }) => name))
  const pending = migrations.filter(({ name }) => !ran.has(name))
  const isContract = ({ contract }: Migration) => contract !== undefined
  return {
    /** Steps that processes of older releases do not notice. */
    expanding: pending.filter((step) => !isContract(step)),
    /** Steps that remove what older releases use. */
    contracting: pending.filter(isContract),
    /** Whether the database has no step yet. */
    isNew: applied.length === 0,
  }
}

/** @throws OtherSchemaError when the database has the tables and does not say how it got them */
async function appliedSteps(knex: Knex): Promise<AppliedStep[]> {
  const { rows } = await knex.raw<{ rows: { hasSteps: boolean; hasTables: boolean }[] }>(
    `select to_regclass('schema_steps') is not null as "hasSteps", to_regclass('payments') is not null as "hasTables"`,
  )
  const { hasSteps, hasTables } = rows[0] as (typeof rows)[0]
  if (hasSteps) return knex<AppliedStep>('schema_steps').select('name', 'needs').orderBy('name')
  if (hasTables) throw new OtherSchemaError()
  return []
}

/** Notes that a step ran. */
export async function recordStep(trx: Knex.Transaction, { name, contract }: Migration): Promise<void> {
  await trx('schema_steps').insert({ name, needs: contract?.unusedSince ?? null })
}

/** Creates the table that remembers the steps. */
export async function createRecords(trx: Knex.Transaction): Promise<void> {
  await trx.raw(
    'create table if not exists schema_steps (name text primary key, needs text, applied_at timestamptz not null default now())',
  )
}

interface Rights {
  readonly role: string
  readonly mayCreate: boolean
  /** Whether the tables belong to the role, or to one that it is a member of; true where there are none. */
  readonly owns: boolean
  readonly pid: number
}

const RIGHTS_SQL = `select current_user as role, has_schema_privilege(current_schema(), 'CREATE') as "mayCreate", pg_backend_pid() as pid,
  coalesce((select pg_has_role(relowner, 'USAGE') from pg_class where oid = to_regclass('schema_steps')), true) as owns`

/**
 * Checks that the schema is up to date or that this connection can bring it there, so that a role which only serves ends with a plain word.
 *
 * @throws Error with what the operator should run
 * @throws DatabaseTooNewError when the database has a step that removed what this version uses
 */
export async function requireMigratable(knex: Knex): Promise<void> {
  const { expanding, isNew } = await findPending(knex, MIGRATIONS)
  const [first] = expanding
  if (first === undefined) return
  const { rights, isPooled } = await withConnection(knex, undefined, async (connection) => {
    const { rows } = await knex.raw<{ rows: Rights[] }>(RIGHTS_SQL).connection(connection)
    const found = rows[0] as Rights
    return { rights: found, isPooled: found.pid !== connection.processID }
  })
  const lacking = isNew ? 'The database has no tables yet' : `The schema lacks the migration ${first.name}`
  if (!rights.mayCreate || !rights.owns) {
    throw new Error(
      `${lacking}, and the role "${rights.role}" may not make it. Run waybill migrate with a DATABASE_URL of the role that owns the tables.`,
    )
  }
  // it takes settings of a session and transactions on two connections
  if (isPooled && !isNew && expanding.some(buildsIndexes)) {
    throw new Error(
      `${lacking}, which builds an index, and a pooler is between. Run waybill migrate with a DATABASE_URL of the server itself.`,
    )
  }
}
