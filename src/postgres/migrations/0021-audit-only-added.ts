import type { Migration } from './migration.ts'

/**
 * Lines of the audit log are only added. Whoever else was granted the tables (docs/sql/roles.sql grants those of later migrations before there
 * are any) may read it and add to it, and not change or delete its lines.
 */
export const auditOnlyAdded: Migration = {
  name: '0021-audit-only-added',
  async up(knex) {
    const { rows } = await knex.raw<{ rows: { statement: string }[] }>(
      `select distinct 'revoke update, delete, truncate on audit_log from '
         || case granted.grantee when 0 then 'public' else quote_ident(pg_get_userbyid(granted.grantee)) end as statement
       from pg_class, aclexplode(pg_class.relacl) granted
       where pg_class.oid = 'audit_log'::regclass and granted.grantee <> pg_class.relowner`,
    )
    for (const { statement } of rows) await knex.raw(statement)
  },
}
