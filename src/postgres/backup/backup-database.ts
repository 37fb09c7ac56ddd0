import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { inTransaction } from '../cancellable.ts'
import { appliedNames } from '../migrations/applied-migrations.ts'
import { readCluster } from '../sharding/read-cluster.ts'
import { liftTimeouts } from '../without-timeouts.ts'
import { BackupError, type BackupHeader, FORMAT, formatLine, ROWS_END, type TableEnd } from './backup-format.ts'
import { type BackupTable, copyStatement, readSequences, readTables } from './backup-tables.ts'
import { copyOut } from './copy-stream.ts'
import { createRowSummer, type TableSum } from './row-checksum.ts'

export interface BackupOptions {
  /** Takes the text of the backup piece by piece. */
  readonly write: (chunk: Buffer) => Promise<void>
  readonly onProgress?: ((progress: BackupProgress) => void) | undefined
  readonly signal?: AbortSignal | undefined
  readonly now: () => Date
}

export interface BackupProgress {
  readonly table: string
  /** Of all tables so far. */
  readonly rows: number
}

/** Every table sees the database as of one moment, and nobody waits for the backup. */
const ONE_MOMENT = { isolationLevel: 'repeatable read', readOnly: true } as const

/**
 * Writes all tables as they are at one moment, while others read and write.
 *
 * @returns what each table has
 * @throws BackupError where there is nothing to back up, or the tables have no moment in common
 */
export function backupDatabase(knex: Knex, options: BackupOptions): Promise<TableEnd[]> {
  const work = async (trx: Knex.Transaction) => {
    await liftTimeouts(trx)
    const header = await readHeader(trx, options.now())
    const hash = createHash('sha256')
    const write = async (chunk: Buffer) => {
      hash.update(chunk)
      await options.write(chunk)
    }
    await write(formatLine(header))
    const ends: TableEnd[] = []
    for (const table of header.tables) {
      const before = ends.reduce((sum, { rows }) => sum + rows, 0)
      const onRows = (rows: number) => options.onProgress?.({ table: table.name, rows: before + rows })
      const end = { table: table.name, ...(await sumTable(trx, table, { write, onRows })) }
      await write(Buffer.from(ROWS_END))
      await write(formatLine(end))
      ends.push(end)
    }
    await options.write(formatLine({ end: true, sha256: hash.digest('hex') }))
    return ends
  }
  return inTransaction(knex, options.signal, work, ONE_MOMENT)
}

async function readHeader(trx: Knex.Transaction, now: Date): Promise<BackupHeader> {
  const steps = await appliedNames(trx)
  if (steps.length === 0) throw new BackupError('the database has no tables of Waybill, so there is nothing to back up')
  const cluster = await readCluster(trx)
  if (cluster !== undefined && cluster.distributed.size > 0) {
    throw new BackupError(
      'the tables are sharded over several servers, which have no moment in common: docs/guides/backup-and-move.md tells how to back up a cluster',
    )
  }
  const tables = await readTables(trx)
  return {
    waybill: 'backup',
    format: FORMAT,
    takenAt: now.toISOString(),
    steps,
    tables,
    sequences: await readSequences(trx),
  }
}

interface RowEvents {
  readonly write?: (chunk: Buffer) => Promise<void>
  /** Told after each piece. */
  readonly onRows?: (rows: number) => void
}

/** Reads a table, and sums it. */
export async function sumTable(
  trx: Knex.Transaction,
  table: BackupTable,
  { write, onRows }: RowEvents = {},
): Promise<TableSum> {
  const summer = createRowSummer()
  for await (const chunk of copyOut(trx, copyStatement(table, 'to stdout'))) {
    summer.add(chunk)
    await write?.(chunk)
    onRows?.(summer.sum().rows)
  }
  return summer.sum()
}
