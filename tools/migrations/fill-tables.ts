import type { Knex } from 'knex'

/** Columns without a default that a row must have, of tables without rows. */
const EMPTY_TABLES = `
  select c.relname as table, array_agg(a.attname::text) filter (where a.attname is not null) as columns,
         array_agg(format_type(a.atttypid, null)) filter (where a.attname is not null) as types
    from pg_class c left join pg_attribute a on a.attrelid = c.oid and attnum > 0 and not attisdropped and attnotnull
     and not atthasdef and attidentity = ''
   where relnamespace = 'public'::regnamespace and relkind = 'r'
   group by c.oid`

const VALUES: Readonly<Record<string, string>> = {
  integer: '1',
  smallint: '1',
  bigint: '1',
  numeric: '1',
  text: `'a'`,
  boolean: 'true',
  bytea: `'\\x01'`,
  uuid: `'00000000-0000-0000-0000-000000000001'`,
  jsonb: `'{}'`,
  'text[]': `'{}'`,
  'integer[]': `'{}'`,
  date: `'2026-01-01'`,
  'timestamp with time zone': `'2026-01-01'`,
}

/** Gives each table without rows one row, so that a step that rewrites, reads or refuses rows shows it. */
export async function fillTables(knex: Knex): Promise<void> {
  const { rows } = await knex.raw<{ rows: { table: string; columns: string[] | null; types: string[] | null }[] }>(
    EMPTY_TABLES,
  )
  for (const { table, columns, types } of rows) {
    const values = (types ?? []).map((type) => {
      const value = VALUES[type]
      if (value === undefined) throw new Error(`${table}: no value for the type ${type}; add one to fill-tables.ts`)
      return value
    })
    const row =
      columns === null ? 'default values' : `(${columns.map((name) => `"${name}"`).join()}) values (${values.join()})`
    await knex.raw(`insert into "${table}" ${row} on conflict do nothing`)
  }
}
