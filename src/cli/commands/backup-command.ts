import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Knex } from 'knex'
import { readStoreConfig, type StoreConfig } from '../../config.ts'
import { type BackupProgress, backupDatabase } from '../../postgres/backup/backup-database.ts'
import type { TableEnd } from '../../postgres/backup/backup-format.ts'
import { serverFolder } from '../../postgres/embedded/embedded-files.ts'
import { type Command, type CommandContext, UsageError } from '../command.ts'
import { refuseOtherThanFile, replaceFile } from '../replace-file.ts'
import { everyMs } from '../report-migration.ts'
import { EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withDatabase } from '../with-store.ts'
import { writeFully } from '../write-fully.ts'

/** Fast: hashes and random ids, most of a backup, hardly get smaller with more effort. */
const GZIP_LEVEL = 1
const TELL_EVERY_MS = 1_000

/** `backup FILE`: one line a table: name, rows, checksum. */
export const backupCommand: Command = {
  path: ['backup'],
  summary:
    'Write the whole database as it is at one moment into a file, while the service goes on. Writes one line a table: name, rows, checksum; restore ' +
    'writes the same lines. The file holds key hashes and secrets, so only its owner can read it.',
  positionals: [{ name: 'FILE', help: 'file to write; it appears once it is complete' }],
  options: [{ name: 'force', help: 'replace FILE if it exists' }],
  environment: STORE_VARIABLES,
  async run({ positionals: [file = ''], options }, context) {
    const target = parseFile(file, context)
    const exists = await refuseOtherThanFile('FILE', target)
    if (exists && options['force'] === undefined) {
      throw new UsageError(`FILE is ${target}, which exists: name another file, or replace it with --force`)
    }
    const config = readStoreConfig(context.environment, context.workingFolder)
    requireDatabase(config)
    return withDatabase(config, context, async (knex) => {
      const startedMs = performance.now()
      const tables = await replaceFile(target, (out) => writeBackup(knex, out, context))
      const { size } = await stat(target)
      context.stdout.write(tables.map(formatTable).join(''))
      const seconds = (performance.now() - startedMs) / 1_000
      context.stderr.write(
        `${target}: ${countRows(tables)}, ${(size / 1024 ** 2).toFixed(1)} MiB, after ${seconds.toFixed(1)} s. Keep it secret.\n`,
      )
      return EXIT_GOOD
    })
  },
}

/** @throws UsageError */
export function parseFile(file: string, { workingFolder }: Pick<CommandContext, 'workingFolder'>): string {
  if (file === '') throw new UsageError('FILE is empty: name a file')
  if (file === '-') throw new UsageError('FILE is "-": standard input and output are not used; name a file')
  return resolve(workingFolder, file)
}

/** Starting the embedded server would create an empty one. */
function requireDatabase({ database, dataDir }: StoreConfig): void {
  if (database.kind === 'URL' || existsSync(serverFolder(dataDir).data)) return
  throw new UsageError(
    `DATA_DIR is ${dataDir}, which has no database: set it to the service's folder, or set DATABASE_URL`,
  )
}

async function writeBackup(knex: Knex, out: Writable, context: CommandContext): Promise<TableEnd[]> {
  const packed = createGzip({ level: GZIP_LEVEL })
  const written = pipeline(packed, out, { end: false })
  // a failure is thrown by the next write, or below
  written.catch(() => {})
  const isDue = everyMs(TELL_EVERY_MS, () => performance.now())
  const onProgress = ({ table, rows }: BackupProgress) => {
    if (isDue()) context.stderr.write(`${rows.toLocaleString('en')} rows; now ${table}\n`)
  }
  try {
    const { signal } = context
    const write = (chunk: Buffer) => writeFully(packed, chunk)
    const tables = await backupDatabase(knex, { write, onProgress, signal, now: () => new Date() })
    packed.end()
    await written
    return tables
  } catch (error) {
    packed.destroy()
    throw error
  }
}

/** `payments`, rows and checksum, separated by tabs. */
export function formatTable({ table, rows, checksum }: TableEnd): string {
  return `${[table, rows, checksum].join('\t')}\n`
}

/** `31 tables with 1,234 rows` */
export function countRows(tables: readonly TableEnd[]): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0)
  return `${tables.length} tables with ${rows.toLocaleString('en')} ${rows === 1 ? 'row' : 'rows'}`
}
