import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { readStoreConfig } from '../../config.ts'
import { BackupError, damaged } from '../../postgres/backup/backup-format.ts'
import { type RestoreProgress, restoreDatabase } from '../../postgres/backup/restore-database.ts'
import { type Command, type CommandContext, UsageError } from '../command.ts'
import { everyMs, tellMigration } from '../report-migration.ts'
import { EXIT_GOOD } from '../run-command-line.ts'
import { STORE_VARIABLES, withDatabase } from '../with-store.ts'
import { countRows, formatTable, parseFile } from './backup-command.ts'

const TELL_EVERY_MS = 1_000

/** `restore FILE`: one line a table: name, rows, checksum. */
export const restoreCommand: Command = {
  path: ['restore'],
  summary:
    'Fill an empty database from a file that backup has written: an embedded one or a server, of the same or a later major version of PostgreSQL, of ' +
    'the same or a later release of Waybill. Everything is written or nothing. Afterwards every table is read and compared with the backup.',
  positionals: [{ name: 'FILE', help: 'the backup' }],
  environment: STORE_VARIABLES,
  async run({ positionals: [file = ''] }, context) {
    const source = parseFile(file, context)
    await requireFile(source)
    const config = readStoreConfig(context.environment, context.workingFolder)
    return withDatabase(config, context, async (knex) => {
      const startedMs = performance.now()
      const { takenAt, tables } = await restoreDatabase(knex, readPacked(source), {
        onProgress: tellRestore(context),
        onMigration: tellMigration(context.stderr, () => performance.now()),
        signal: context.signal,
      })
      context.stdout.write(tables.map(formatTable).join(''))
      const seconds = (performance.now() - startedMs) / 1_000
      context.stderr.write(
        `restored ${countRows(tables)} as of ${takenAt}, after ${seconds.toFixed(1)} s; the database has the backup's checksums. Run waybill check before you serve. ` +
          'Keys that were revoked after that moment are in force again: see the list of check, and end them with waybill keys revoke-all.\n',
      )
      return EXIT_GOOD
    })
  },
}

/** @throws UsageError */
async function requireFile(source: string): Promise<void> {
  const found = await stat(source).catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(
      error.code === 'ENOENT'
        ? `FILE is ${source}, which does not exist`
        : `FILE is ${source}, which cannot be read: ${error.message}`,
    )
  })
  if (!found.isFile()) throw new UsageError(`FILE is ${source}, which is not a regular file`)
}

const GZIP_MAGIC = 0x1f8b

/** The text of a backup file. @throws BackupError */
async function* readPacked(source: string): AsyncGenerator<Buffer, void> {
  const file = await open(source)
  try {
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, 0)
    if (buffer.readUInt16BE() !== GZIP_MAGIC) {
      throw new BackupError(`${source} is no backup that "waybill backup" has written`)
    }
  } finally {
    await file.close()
  }
  const text = createGunzip()
  // errors of both come out of the loop
  pipeline(createReadStream(source), text, () => {})
  try {
    for await (const chunk of text) yield chunk as Buffer
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw code?.startsWith('Z_') ? damaged(message) : error
  }
}

function tellRestore({ stderr }: Pick<CommandContext, 'stderr'>): (progress: RestoreProgress) => void {
  const isDue = everyMs(TELL_EVERY_MS, () => performance.now())
  return ({ phase, table, rows }) => {
    if (!isDue()) return
    const count = rows === 0 ? '' : `${rows.toLocaleString('en')} rows; `
    stderr.write(`${count}${phase}, now ${table}\n`)
  }
}
