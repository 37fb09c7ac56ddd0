import type { Knex } from 'knex'
import { TABLE_KINDS } from '../sharding/table-kinds.ts'

/** A table as a backup has it. */
export interface BackupTable {
  readonly name: string
  readonly columns: readonly BackupColumn[]
}

interface BackupColumn {
  readonly name: string
  /** As PostgreSQL writes it: `timestamp(3) with time zone`. */
  readonly type: string
}

/** The numbers that a column's next rows get. */
export interface BackupSequence {
  readonly table: string
  readonly column: string
  /** The last number that was given out, in decimal; null for none. */
  readonly last: string | null
}

/** Migrations write the records of steps, and leases are those of processes that run. */
const LEFT_OUT = new Set(['schema_steps', 'leases'])

/** The tables that a backup has, as far as they are present. */
const BACKUP_TABLES: readonly string[] = Object.keys(TABLE_KINDS).filter((name) => !LEFT_OUT.has(name))

interface ColumnRow {
  readonly table: string
  readonly column: string
  readonly type: string
}

/** Reads the tables that are present. */
export async function readTables(knex: Knex): Promise<BackupTable[]> {
  const { rows } = await knex.raw<{ rows: ColumnRow[] }>(
    `select t.name as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type
     from unnest(?::text[]) with ordinality as t (name, place)
     join pg_attribute a on a.attrelid = to_regclass(t.name) and a.attnum > 0 and not a.attisdropped
     order by t.place, a.attnum`,
    [[...BACKUP_TABLES]],
  )
  const tables = new Map<string, BackupColumn[]>()
  for (const { table, column, type } of rows) {
    const columns = tables.get(table) ?? []
    tables.set(table, [...columns, { name: column, type }])
  }
  return [...tables].map(([name, columns]) => ({ name, columns }))
}

/** The columns by name, for a comparison: their order differs with the age of a database. */
export function describeTable({ columns }: BackupTable): string {
  return columns
    .map(({ name, type }) => `${name} ${type}`)
    .toSorted()
    .join(', ')
}

/** `copy payments (account_id, id) to stdout`. Names come from the catalog. */
export function copyStatement({ name, columns }: BackupTable, direction: 'to stdout' | 'from stdin'): string {
  return `copy ${name} (${columns.map((column) => `"${column.name}"`).join(', ')}) ${direction}`
}

/** Reads the last numbers of identity columns. A number may be newer than the transaction's rows, never older. */
export async function readSequences(knex: Knex): Promise<BackupSequence[]> {
  const { rows } = await knex.raw<{ rows: BackupSequence[] }>(
    `select t.name as table, a.attname as column,
       pg_sequence_last_value(pg_get_serial_sequence(t.name, a.attname)::regclass)::text as last
     from unnest(?::text[]) with ordinality as t (name, place)
     join pg_attribute a on a.attrelid = to_regclass(t.name) and a.attidentity <> '' and not a.attisdropped
     order by t.place, a.attnum`,
    [[...BACKUP_TABLES]],
  )
  return rows
}

/** Lets a column's numbers go on behind those of the backup and of its rows. */
export async function setSequence(trx: Knex.Transaction, { table, column, last }: BackupSequence): Promise<void> {
  const row = await trx(table).max<{ max: string | number | null }[]>({ max: column }).first()
  const used = [last, row?.max].flatMap((value) => (value === null || value === undefined ? [] : [BigInt(value)]))
  const newest = used.reduce((most, value) => (value > most ? value : most), 0n)
  if (newest > 0n)
    await trx.raw('select setval(pg_get_serial_sequence(?, ?), ?::bigint)', [table, column, String(newest)])
}

/** The first table with rows; undefined where all are empty. */
export async function findFilledTable(knex: Knex, tables: readonly BackupTable[]): Promise<string | undefined> {
  for (const { name } of tables) {
    const { rows } = await knex.raw<{ rows: unknown[] }>('select 1 from ?? limit 1', [name])
    if (rows.length > 0) return name
  }
  return undefined
}

/** Keeps everybody else from writing until the transaction ends. */
export async function lockTables(trx: Knex.Transaction, tables: readonly BackupTable[]): Promise<void> {
  await trx.raw(`lock table ${tables.map(({ name }) => name).join(', ')} in exclusive mode`)
}

/** Removes the indexes that are no key, which are built faster than rows are added to them. @returns the statements that build them */
export async function dropIndexes(trx: Knex.Transaction, { name }: BackupTable): Promise<string[]> {
  const { rows } = await trx.raw<{ rows: { index: string; statement: string }[] }>(
    `select i.indexrelid::regclass::text as index, pg_get_indexdef(i.indexrelid) as statement from pg_index i
     where i.indrelid = to_regclass(?) and not i.indisprimary
       and not exists (select from pg_constraint c where c.conindid = i.indexrelid)
     order by 1`,
    [name],
  )
  if (rows.length > 0) await trx.raw(`drop index ${rows.map(({ index }) => index).join(', ')}`)
  return rows.map(({ statement }) => statement)
}
