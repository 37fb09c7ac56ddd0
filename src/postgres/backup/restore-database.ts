import type { Knex } from 'knex'
import { inTransaction } from '../cancellable.ts'
import { appliedNames } from '../migrations/applied-migrations.ts'
import { MIGRATIONS } from '../migrations/list.ts'
import { migrate } from '../migrations/migrate.ts'
import type { MigrationReport } from '../migrations/migration-report.ts'
import { readCluster } from '../sharding/read-cluster.ts'
import { liftTimeouts } from '../without-timeouts.ts'
import { sumTable } from './backup-database.ts'
import {
  BackupError,
  type BackupHeader,
  damaged,
  parseEnd,
  parseHeader,
  parseTableEnd,
  type TableEnd,
} from './backup-format.ts'
import { type BackupReader, createBackupReader } from './backup-reader.ts'
import {
  type BackupTable,
  copyStatement,
  describeTable,
  dropIndexes,
  findFilledTable,
  lockTables,
  readTables,
  setSequence,
} from './backup-tables.ts'
import { copyIn } from './copy-stream.ts'
import { createRowSummer, type TableSum } from './row-checksum.ts'

export interface RestoreOptions {
  readonly onProgress?: ((progress: RestoreProgress) => void) | undefined
  readonly onMigration: MigrationReport
  readonly signal?: AbortSignal | undefined
}

export interface RestoreProgress {
  readonly phase: 'rows are written' | 'indexes are built' | 'rows are compared'
  readonly table: string
  /** Of all tables so far in this phase. */
  readonly rows: number
}

export interface Restored {
  /** When the backup was taken, in ISO 8601. */
  readonly takenAt: string
  /** What each table has. */
  readonly tables: readonly TableEnd[]
}

/**
 * Fills an empty database from the text of a backup. Creates the tables as they were then, writes all rows in one transaction, reads them
 * again and compares them with the backup, and brings the schema up to date.
 *
 * @throws BackupError where the backup or the database does not fit; the database then has no rows
 */
export async function restoreDatabase(
  knex: Knex,
  source: AsyncIterable<Buffer>,
  options: RestoreOptions,
): Promise<Restored> {
  const reader = createBackupReader(source)
  const header = parseHeader((await reader.line()) ?? '')
  await createTables(knex, header, options)
  const tables = await inTransaction(knex, options.signal, (trx) => fillTables(trx, header, reader, options))
  await knex.raw(`analyze ${tables.map(({ table }) => table).join(', ')}`)
  await migrate(knex, { report: options.onMigration, signal: options.signal })
  return { takenAt: header.takenAt, tables }
}

/** Brings an empty database to the steps of the backup. */
async function createTables(
  knex: Knex,
  { steps }: BackupHeader,
  { onMigration, signal }: RestoreOptions,
): Promise<void> {
  const known = new Set(MIGRATIONS.map(({ name }) => name))
  const newer = steps.filter((name) => !known.has(name))
  if (newer.length > 0) {
    throw new BackupError(
      `the backup is of another release (its schema has ${newer.join(', ')}, unknown here): restore it with that release`,
    )
  }
  await requireEmpty(knex)
  const wanted = new Set(steps)
  const beyond = (await appliedNames(knex)).filter((name) => !wanted.has(name))
  if (beyond.length > 0) {
    throw new BackupError(
      `the database has a newer schema than the backup (${beyond.join(', ')}): restore into a database without tables, which gets the backup's schema first and then the newest`,
    )
  }
  await migrate(knex, { migrations: MIGRATIONS.filter(({ name }) => wanted.has(name)), report: onMigration, signal })
}

async function requireEmpty(knex: Knex): Promise<BackupTable[]> {
  const tables = await readTables(knex)
  const filled = await findFilledTable(knex, tables)
  if (filled === undefined) return tables
  throw new BackupError(
    `the database is not empty (its table ${filled} has rows): restore into a new database, or a new DATA_DIR`,
  )
}

async function fillTables(
  trx: Knex.Transaction,
  header: BackupHeader,
  reader: BackupReader,
  options: RestoreOptions,
): Promise<TableEnd[]> {
  await liftTimeouts(trx)
  await lockTables(trx, await readTables(trx))
  const present = await requireEmpty(trx)
  requireSameTables(header.tables, present)
  const cluster = await readCluster(trx)
  const isSharded = cluster !== undefined && cluster.distributed.size > 0
  const statements: [table: string, statement: string][] = []
  if (!isSharded) {
    for (const table of present) {
      for (const statement of await dropIndexes(trx, table)) statements.push([table.name, statement])
    }
  }
  const ends = await writeRows(trx, header.tables, reader, options)
  for (const sequence of header.sequences) await setSequence(trx, sequence)
  for (const [table, statement] of statements) {
    options.signal?.throwIfAborted()
    options.onProgress?.({ phase: 'indexes are built', table, rows: 0 })
    await trx.raw(statement)
  }
  await compareRows(trx, header.tables, ends, options)
  return ends
}

/** Names of the backup go into statements only after this. */
function requireSameTables(wanted: readonly BackupTable[], present: readonly BackupTable[]): void {
  const found = new Map(present.map((table) => [table.name, describeTable(table)]))
  const other = wanted.find((table) => describeTable(table) !== found.get(table.name))
  if (other !== undefined || wanted.length !== found.size) {
    const which = other?.name ?? present.find(({ name }) => !wanted.some((table) => table.name === name))?.name
    throw new BackupError(
      `the table ${which} has other columns in the backup than in the database: somebody changed one of the two by hand`,
    )
  }
}

async function writeRows(
  trx: Knex.Transaction,
  tables: readonly BackupTable[],
  reader: BackupReader,
  { onProgress, signal }: RestoreOptions,
): Promise<TableEnd[]> {
  const ends: TableEnd[] = []
  let before = 0
  for (const table of tables) {
    const summer = createRowSummer()
    const read = async function* () {
      for await (const chunk of reader.rows()) {
        signal?.throwIfAborted()
        summer.add(chunk)
        onProgress?.({ phase: 'rows are written', table: table.name, rows: before + summer.sum().rows })
        yield chunk
      }
    }
    await copyIn(trx, copyStatement(table, 'from stdin'), read()).catch((error: unknown) => {
      if (isOfRow(error)) throw damaged(`a row of the table ${table.name} cannot be read`, error)
      throw error
    })
    const end = parseTableEnd(await reader.line(), table.name)
    const difference = differenceOf(end, summer.sum())
    if (difference !== undefined) throw damaged(`the table ${table.name} ${difference}`)
    before += end.rows
    ends.push({ table: table.name, ...end })
  }
  const digest = reader.digest()
  if (parseEnd(await reader.line()) !== digest) throw damaged('its checksum differs')
  if ((await reader.line()) !== undefined) throw damaged('something follows its last line')
  return ends
}

/** Classes 22 (data) and 23 (constraints): PostgreSQL refused a row. */
function isOfRow(error: unknown): boolean {
  const { code } = error as { code?: unknown }
  return typeof code === 'string' && /^2[23]/.test(code)
}

/** Reads what was written, as a later backup would. */
async function compareRows(
  trx: Knex.Transaction,
  tables: readonly BackupTable[],
  ends: readonly TableEnd[],
  { onProgress }: RestoreOptions,
): Promise<void> {
  let before = 0
  for (const [at, table] of tables.entries()) {
    const onRows = (rows: number) =>
      onProgress?.({ phase: 'rows are compared', table: table.name, rows: before + rows })
    const written = await sumTable(trx, table, { onRows })
    const end = ends[at] as TableEnd
    const difference = differenceOf(end, written)
    if (difference !== undefined) {
      throw new BackupError(`the database stores other rows than the backup has: the table ${table.name} ${difference}`)
    }
    before += end.rows
  }
}

function differenceOf(wanted: TableSum, found: TableSum): string | undefined {
  if (found.rows !== wanted.rows) return `has ${found.rows} rows instead of ${wanted.rows}`
  return found.checksum === wanted.checksum ? undefined : 'has rows with other contents'
}
