import type { Knex } from 'knex'
import { type LockMode, lockModes } from './lock-mode.ts'

/** What the catalog tells of one table. */
export interface TableState {
  readonly name: string
  /** Changes when the table is rewritten. */
  readonly file: string
  /** By their number, which a rename does not change. */
  readonly columns: Readonly<Record<string, ColumnState>>
  readonly indexes: Readonly<Record<string, IndexState>>
  readonly constraints: Readonly<Record<string, { readonly definition: string; readonly isValid: boolean }>>
  /** The columns of the primary key. */
  readonly key: readonly string[]
}

interface IndexState {
  readonly isUnique: boolean
  readonly definition: string
  readonly columns: readonly string[]
}

interface ColumnState {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly isIdentity: boolean
  readonly hasDefault: boolean
}

/** What a step did. */
export interface Observation {
  /** By table; only tables that were there before. */
  readonly before: ReadonlyMap<string, TableState>
  /** By the table's name of before. */
  readonly after: ReadonlyMap<string, TableState>
  /** The locks that the step holds at its end, by table; tables of before only. */
  readonly locks: ReadonlyMap<string, LockMode>
  /** Tables of before whose rows the step read, all or some; a rewrite and the building of an index count. */
  readonly read: readonly string[]
  /** Tables of before of which rows were written. */
  readonly written: readonly string[]
  /** The statements, as they were sent. */
  readonly statements: readonly string[]
}

const STATES = `
  select c.oid::text as id, relname as name, pg_relation_filenode(c.oid)::text as file,
    (select coalesce(jsonb_object_agg(attnum, jsonb_build_object('name', attname, 'type', format_type(atttypid, atttypmod) ||
        coalesce(' collate ' || nullif(attcollation, 0)::regcollation::text, ''), 'isRequired', attnotnull,
        'isIdentity', attidentity <> '', 'hasDefault', atthasdef)), '{}')
      from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) as columns,
    (select coalesce(jsonb_object_agg(indexrelid::regclass::text, jsonb_build_object('isUnique', indisunique, 'definition', pg_get_indexdef(indexrelid), 'columns',
        (select coalesce(jsonb_agg(attname), '[]') from pg_attribute where attrelid = c.oid and attnum = any(indkey)))), '{}')
      from pg_index where indrelid = c.oid) as indexes,
    (select coalesce(jsonb_object_agg(conname, jsonb_build_object('definition', pg_get_constraintdef(oid), 'isValid', convalidated)), '{}')
      from pg_constraint where conrelid = c.oid and contype <> 'n') as constraints,
    (select coalesce(jsonb_agg(attname order by array_position(indkey::int2[], attnum)), '[]') from pg_index
      join pg_attribute on attrelid = indrelid and attnum = any(indkey) where indrelid = c.oid and indisprimary) as key
  from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')`

const LOCKS = `
  select relation::text as id, mode from pg_locks where pid = pg_backend_pid() and granted and locktype = 'relation'`

/** Counts since some earlier time. */
const USES = `
  select relid::text as id, seq_scan + coalesce(idx_scan, 0) as read, n_tup_ins + n_tup_upd + n_tup_del as written
  from pg_stat_xact_user_tables`

interface Uses {
  readonly id: string
  readonly read: bigint
  readonly written: bigint
}

type Row = TableState & { readonly id: string }

/**
 * Runs a step in a transaction and compares the catalog before and after.
 *
 * @param trx - ended by the caller
 */
export async function observeStep(
  trx: Knex.Transaction,
  up: (trx: Knex.Transaction) => Promise<void>,
): Promise<Observation> {
  const before = await select<Row>(trx, STATES)
  const names = new Map(before.map(({ id, name }) => [id, name]))
  const statements: string[] = []
  const listen = ({ sql }: { sql: string }) => statements.push(sql)
  trx.on('query', listen)
  const usesBefore = await usesOf(trx)
  await up(trx)
  trx.removeListener('query', listen)
  const locks = await select<{ id: string; mode: string }>(trx, LOCKS)
  const usesAfter = await usesOf(trx)
  const grown = (what: 'read' | 'written') =>
    [...names].flatMap(([id, name]) => {
      const [then = 0n, now = 0n] = [usesBefore, usesAfter].map((uses) => uses.get(id)?.[what])
      return now > then ? [name] : []
    })
  const after = await select<Row>(trx, STATES)
  const byName = (rows: readonly Row[]) =>
    new Map(rows.flatMap((row) => (names.has(row.id) ? [[names.get(row.id) as string, row] as const] : [])))
  return {
    before: byName(before),
    after: byName(after),
    locks: strongest(
      locks.flatMap(({ id, mode }) => (names.has(id) ? [{ table: names.get(id) as string, mode }] : [])),
    ),
    read: grown('read'),
    written: grown('written'),
    statements,
  }
}

function strongest(locks: readonly { readonly table: string; readonly mode: string }[]): Map<string, LockMode> {
  const found = new Map<string, LockMode>()
  for (const { table, mode } of locks) {
    const word = wordOf(mode)
    const known = found.get(table)
    if (known === undefined || lockModes.indexOf(word) > lockModes.indexOf(known)) found.set(table, word)
  }
  return found
}

/** `ShareRowExclusiveLock` → `SHARE ROW EXCLUSIVE` */
function wordOf(mode: string): LockMode {
  const words = mode
    .replace(/Lock$/, '')
    .replaceAll(/(?!^)[A-Z]/g, ' $&')
    .toUpperCase()
  const word = lockModes.find((each) => each === words)
  if (word === undefined) throw new Error(`unknown lock ${mode}`)
  return word
}

async function usesOf(trx: Knex.Transaction): Promise<Map<string, Uses>> {
  await trx.raw('select pg_stat_clear_snapshot()')
  return new Map((await select<Uses>(trx, USES)).map((uses) => [uses.id, uses]))
}

async function select<T>(trx: Knex.Transaction, sql: string): Promise<T[]> {
  const { rows } = await trx.raw<{ rows: T[] }>(sql)
  return rows
}
