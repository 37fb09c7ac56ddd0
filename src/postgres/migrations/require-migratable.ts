import type { Knex } from 'knex'
import { withConnection } from '../cancellable.ts'
import { findPending } from './applied-migrations.ts'
import { MIGRATIONS } from './list.ts'
import { buildsIndexes } from './migration.ts'

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
