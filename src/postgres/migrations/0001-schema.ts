import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { TransactionMigration } from './migration.ts'

const statements = statementsOf(readFileSync(new URL('../schema.sql', import.meta.url), 'utf8'))

/** Differs for each state of the schema, whatever its comments and spaces. */
const STATE = createHash('sha256').update(statements.join(';').replaceAll(/\s+/g, ' ')).digest('hex').slice(0, 8)

/** All of the schema. */
export const schema: TransactionMigration = {
  name: `0001-schema-${STATE}`,
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
    await keepAuditLines(knex)
  },
}

/** The statements of an SQL text in which comments have lines of their own, and a semicolon at the end of a line ends a statement. */
function statementsOf(text: string): string[] {
  const code = text.replaceAll(/^--.*\n/gm, '')
  return code
    .split(/;\n/)
    .map((statement) => statement.trim())
    .filter((statement) => statement !== '')
}

/**
 * Lines of the audit log are only added. Whoever is granted new tables (docs/sql/roles.sql grants those of later migrations before there are any)
 * may read it and add to it, and not change or delete its lines.
 */
async function keepAuditLines(knex: Parameters<TransactionMigration['up']>[0]): Promise<void> {
  const { rows } = await knex.raw<{ rows: { statement: string }[] }>(
    `select distinct 'revoke update, delete, truncate on audit_log from '
       || case granted.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(granted.grantee)) end as statement
     from pg_class, aclexplode(pg_class.relacl) granted
     where pg_class.oid = 'audit_log'::regclass and granted.grantee <> pg_class.relowner`,
  )
  for (const { statement } of rows) await knex.raw(statement)
}
