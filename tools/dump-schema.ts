/** Writes src/postgres/schema.sql: the schema that the migrations make, so that a review shows how it changes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { startEmbeddedServer } from '../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../src/postgres/knex.ts'
import { migrate } from '../src/postgres/migrations/migrate.ts'

/** Objects that the dump does not write. It writes tables with their indexes, identity sequences and row types. */
const UNDUMPED = `
  select case relkind when 'v' then 'view' when 'm' then 'materialized view' when 'f' then 'foreign table'
           when 'S' then 'sequence' else 'composite type' end || ' ' || relname as object
    from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('v', 'm', 'f', 'S', 'c')
     and not exists (select from pg_depend where objid = c.oid and classid = 'pg_class'::regclass and deptype = 'i')
  union all
  select 'function ' || proname from pg_proc where pronamespace = 'public'::regnamespace
  union all
  select 'type ' || typname from pg_type where typnamespace = 'public'::regnamespace and typtype in ('e', 'd', 'r')
  union all
  select 'trigger ' || tgname from pg_trigger where not tgisinternal
  union all
  select 'policy ' || polname from pg_policy
  order by 1`

const TABLES = `
  select c.oid, relname as name, array_to_string(reloptions, ', ') as options,
         pg_get_partkeydef(c.oid) as partition_key, obj_description(c.oid, 'pg_class') as comment
    from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by relname collate "C"`

const COLUMNS = `
  select a.attrelid, attname as name, format_type(atttypid, atttypmod) as type, attnotnull as not_null,
         attidentity as identity, attgenerated as generated, pg_get_expr(adbin, adrelid) as expression,
         case when attcollation <> typcollation then (select quote_ident(collname) from pg_collation
           where oid = attcollation) end as collation,
         col_description(attrelid, attnum) as comment
    from pg_attribute a join pg_type t on t.oid = atttypid
    left join pg_attrdef d on adrelid = attrelid and adnum = attnum
   where attrelid = any(?) and attnum > 0 and not attisdropped order by attrelid, attnum`

/** Not-null constraints are written with their columns. */
const CONSTRAINTS = `
  select conrelid, conname as name, pg_get_constraintdef(oid) as definition from pg_constraint
   where conrelid = any(?) and contype <> 'n'
   order by conrelid, array_position('{p,u,f,c,x}'::text[], contype::text), conname collate "C"`

/** Indexes of primary keys and unique constraints belong to those. Printed for people, so that the table has no schema before its name. */
const INDEXES = `
  select indrelid, pg_get_indexdef(indexrelid, 0, true) as definition from pg_index i
   where indrelid = any(?) and not exists (select from pg_constraint where conindid = i.indexrelid)
   order by indrelid, (indexrelid::regclass::text) collate "C"`

interface Table {
  oid: number
  name: string
  options: string | null
  partition_key: string | null
  comment: string | null
}

interface Column {
  attrelid: number
  name: string
  type: string
  not_null: boolean
  identity: '' | 'a' | 'd'
  generated: '' | 's' | 'v'
  expression: string | null
  collation: string | null
  comment: string | null
}

/**
 * The tables of the `public` schema as SQL: columns, constraints, indexes, comments. Equal schemas give equal text, whatever the order in
 * which they were made.
 *
 * @throws Error when the schema has an object of a kind that the dump cannot write
 */
export async function dumpSchema(knex: Knex): Promise<string> {
  const undumped = await select<{ object: string }>(knex, UNDUMPED)
  if (undumped.length > 0) {
    throw new Error(
      `the schema dump cannot write ${undumped.map(({ object }) => object).join(', ')}; add that kind to tools/dump-schema.ts`,
    )
  }
  const tables = await select<Table>(knex, TABLES)
  const oids = tables.map(({ oid }) => oid)
  const columns = Map.groupBy(await select<Column>(knex, COLUMNS, oids), (row) => row.attrelid)
  const constraints = Map.groupBy(
    await select<{ conrelid: number; name: string; definition: string }>(knex, CONSTRAINTS, oids),
    (row) => row.conrelid,
  )
  const indexes = Map.groupBy(
    await select<{ indrelid: number; definition: string }>(knex, INDEXES, oids),
    (row) => row.indrelid,
  )
  const dumped = tables.map((table) => {
    const lines = [
      ...(columns.get(table.oid) ?? []).map(columnLine),
      ...(constraints.get(table.oid) ?? []).map((row) => `constraint ${quote(row.name)} ${row.definition}`),
    ]
    return [
      `create table ${quote(table.name)} (\n${lines.map((line) => `  ${line}`).join(',\n')}\n)${tableSuffix(table)};`,
      ...(indexes.get(table.oid) ?? []).map((row) => `${row.definition};`),
      ...comments(table, columns.get(table.oid) ?? []),
    ].join('\n')
  })
  return `-- Written by "npm run schema:dump" from a database with all migrations. Do not edit.\n\n${dumped.join('\n\n')}\n`
}

async function select<Row>(knex: Knex, sql: string, oids?: number[]): Promise<Row[]> {
  const { rows } = await knex.raw<{ rows: Row[] }>(sql, oids === undefined ? [] : [oids])
  return rows
}

function columnLine(column: Column): string {
  const words = [quote(column.name), column.type]
  if (column.collation !== null) words.push(`collate ${column.collation}`)
  if (column.not_null) words.push('not null')
  if (column.identity !== '') words.push(`generated ${column.identity === 'a' ? 'always' : 'by default'} as identity`)
  if (column.generated !== '') {
    words.push(`generated always as (${column.expression}) ${column.generated === 's' ? 'stored' : 'virtual'}`)
  } else if (column.expression !== null) words.push(`default ${column.expression}`)
  return words.join(' ')
}

function tableSuffix(table: Table): string {
  const partition = table.partition_key === null ? '' : ` partition by ${table.partition_key}`
  return partition + (table.options === null ? '' : ` with (${table.options})`)
}

function comments(table: Table, columns: Column[]): string[] {
  const onTable = table.comment === null ? [] : [`comment on table ${quote(table.name)} is ${literal(table.comment)};`]
  const onColumns = columns.flatMap(({ name, comment }) =>
    comment === null ? [] : [`comment on column ${quote(table.name)}.${quote(name)} is ${literal(comment)};`],
  )
  return [...onTable, ...onColumns]
}

const quote = (name: string) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`)
const literal = (text: string) => `'${text.replaceAll("'", "''")}'`

async function writeSchema(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'waybill-schema-'))
  try {
    const server = await startEmbeddedServer({ dataDir, settings: { fsync: 'off' } })
    const knex = createDatabase(server.connection())
    try {
      await migrate(knex)
      await writeFile(new URL('../src/postgres/schema.sql', import.meta.url), await dumpSchema(knex))
    } finally {
      await knex.destroy()
      await server.stop()
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

if (import.meta.main) await writeSchema()
