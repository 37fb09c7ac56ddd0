import type { Knex } from 'knex'
import { inTransaction } from '../cancellable.ts'
import { findPending } from './applied-migrations.ts'
import { MIGRATIONS } from './list.ts'
import { type LockMode, stoppedBy } from './lock-mode.ts'
import { buildsIndexes, locksOf, type Migration } from './migration.ts'

/** What the pending steps will do to a database. */
export interface MigrationPlan {
  readonly steps: readonly PlannedStep[]
  /** The tables whose rows the steps read, and what the times are estimated from. */
  readonly samples: readonly TableSample[]
}

interface PlannedStep {
  readonly step: string
  /** Whether it runs on `waybill migrate --contract` only. */
  readonly contract: boolean
  readonly locks: readonly {
    readonly table: string
    readonly mode: LockMode
    readonly stops: ReturnType<typeof stoppedBy>
  }[]
  /** Indexes that are built or dropped while the service writes. */
  readonly indexes: readonly string[]
  /** How long the step works and holds its locks, estimated; 0 where it reads no rows and takes milliseconds. Waiting for locks is not counted. */
  readonly seconds: number
}

/** Some rows of a table, read and sorted by its primary key to see how fast this database does that. */
export interface TableSample {
  readonly table: string
  /** Of the table without its indexes. */
  readonly bytes: number
  /** Estimated from the sample. */
  readonly rows: number
  readonly sampledRows: number
  readonly sampleMs: number
  /** The time to read and sort all rows. */
  readonly seconds: number
}

/** Pages chosen at random, about 16 MB: enough rows for a rate, and read within a second also from a slow disk. */
const SAMPLE_BYTES = 16 * 2 ** 20
const SAMPLE_TIMEOUT = '30s'

/** Says what the pending steps will lock and for how long, without changing or locking anything. */
export async function planMigrations(
  knex: Knex,
  {
    migrations = MIGRATIONS,
    signal,
  }: { readonly migrations?: readonly Migration[]; readonly signal?: AbortSignal } = {},
): Promise<MigrationPlan> {
  const work = async (trx: Knex.Transaction) => {
    const { expanding, contracting } = await findPending(trx, migrations)
    const steps = [...expanding, ...contracting]
    const tables = await presentTables(trx, new Set(steps.flatMap(locksOf).map(({ table }) => table)))
    const read = new Set(
      steps.flatMap(locksOf).flatMap(({ table, passes }) => (passes > 0 && tables.has(table) ? [table] : [])),
    )
    const samples: TableSample[] = []
    for (const table of read) samples.push(await sampleTable(trx, table))
    return { steps: steps.map((step) => planStep(step, tables, samples)), samples }
  }
  return inTransaction(knex, signal, work, { readOnly: true })
}

/** Tables that the steps themselves create are empty and used by nobody. */
function planStep(step: Migration, tables: ReadonlySet<string>, samples: readonly TableSample[]): PlannedStep {
  const locks = locksOf(step).filter(({ table }) => tables.has(table))
  const secondsOf = (table: string) => samples.find((sample) => sample.table === table)?.seconds ?? 0
  return {
    step: step.name,
    contract: step.contract !== undefined,
    locks: locks
      .filter(({ mode }) => mode !== 'ACCESS SHARE')
      .map(({ table, mode }) => ({ table, mode, stops: stoppedBy(mode) })),
    indexes: buildsIndexes(step) ? step.indexes.map((change) => ('drop' in change ? change.drop : change.build)) : [],
    seconds: locks.reduce((sum, { table, passes }) => sum + passes * secondsOf(table), 0),
  }
}

async function presentTables(trx: Knex.Transaction, names: ReadonlySet<string>): Promise<Set<string>> {
  const { rows } = await trx.raw<{ rows: { name: string }[] }>(
    'select name from unnest(?::text[]) as t (name) where to_regclass(quote_ident(name)) is not null',
    [[...names]],
  )
  return new Set(rows.map(({ name }) => name))
}

async function sampleTable(trx: Knex.Transaction, table: string): Promise<TableSample> {
  const bytes = await sizeOf(trx, table)
  const keys = await keysOf(trx, table)
  const percent = Math.min(100, (100 * SAMPLE_BYTES) / Math.max(bytes, 1))
  await trx.raw(`select set_config('statement_timeout', ?, true)`, [SAMPLE_TIMEOUT])
  const order = keys.map(() => '??').join()
  const startedMs = performance.now()
  const { rows } = await trx.raw<{ rows: { n: bigint }[] }>(
    `select count(*) as n from (select ${order} from ?? tablesample system (?) order by ${order}) t`,
    [...keys, table, percent, ...keys],
  )
  const sampleMs = performance.now() - startedMs
  const sampledRows = Number(rows[0]?.n)
  const seconds = (sampleMs / 1_000) * (100 / percent)
  return { table, bytes, rows: Math.round(sampledRows * (100 / percent)), sampledRows, sampleMs, seconds }
}

/** Of a sharded table the server that is asked has no rows itself. */
async function sizeOf(trx: Knex.Transaction, table: string): Promise<number> {
  const { rows: found } = await trx.raw<{ rows: { sharded: boolean }[] }>(
    `select to_regclass('pg_dist_partition') is not null as sharded`,
  )
  const isSharded = found[0]?.sharded === true && (await isDistributed(trx, table))
  const { rows } = await trx.raw<{ rows: { bytes: bigint }[] }>(
    `select ${isSharded ? 'citus_relation_size' : 'pg_relation_size'}(to_regclass(quote_ident(?))) as bytes`,
    [table],
  )
  return Number(rows[0]?.bytes)
}

async function isDistributed(trx: Knex.Transaction, table: string): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: unknown[] }>(
    'select 1 from pg_dist_partition where logicalrelid = to_regclass(quote_ident(?))',
    [table],
  )
  return rows.length > 0
}

async function keysOf(trx: Knex.Transaction, table: string): Promise<string[]> {
  const { rows } = await trx.raw<{ rows: { name: string }[] }>(
    `select attname as name from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
     where i.indrelid = to_regclass(quote_ident(?)) and i.indisprimary`,
    [table],
  )
  return rows.map(({ name }) => name)
}
