import { openSync, readFileSync } from 'node:fs'
import { NoAnswerError } from '../database-error.ts'
import type { DatabaseConnection } from '../knex.ts'
import { SessionClient } from '../session.ts'
import { type ServerFolder } from './embedded-files.ts'
import { SUPERUSER } from './embedded-launch.ts'

/** Settings of one connection, as pg takes them. */
export type Connection = Exclude<DatabaseConnection, string>

/** Makes the settings of a new connection, to the named database or to the service's own. */
export type ConnectionFactory = (database?: string) => Connection

/** The database that initdb creates; the service uses it. */
const DATABASE = 'postgres'

/**
 * How to reach the server of a folder. The path of a socket may have 107 bytes, and DATA_DIR may be longer, so the folder is opened and
 * addressed by its file descriptor. The descriptor stays open until the process ends, because pools go on using it.
 */
export function folderConnection(folder: ServerFolder): ConnectionFactory {
  const host = process.platform === 'linux' ? `/proc/self/fd/${openSync(folder.data, 'r')}` : folder.data
  return (database = DATABASE) => ({
    host,
    port: 5432,
    user: SUPERUSER,
    password: readFileSync(folder.password, 'utf8'),
    database,
  })
}

/** Whether the server answers. @throws any error but those of a server that does not run */
export async function tryConnection(connection: ConnectionFactory): Promise<boolean> {
  // it has limits, which pg's own client lacks
  const client = new SessionClient({ ...connection(), connectionTimeoutMillis: ANSWER_TIMEOUT_MS })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch (error) {
    if (isNotRunning(error)) return false
    // pg's word for it
    throw (error as Error).message === 'timeout expired' ? new NoAnswerError(ANSWER_TIMEOUT_MS) : error
  } finally {
    await client.end().catch(() => {})
  }
}

/** How long a server may take to accept a connection and to answer, in milliseconds. */
const ANSWER_TIMEOUT_MS = 5_000

/** No socket file, no process behind it, a server that starts or stops, one that ended while answering. */
const NOT_RUNNING_CODES = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', '57P01', '57P02', '57P03'])

function isNotRunning(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  return NOT_RUNNING_CODES.has(code ?? '') || message === 'Connection terminated unexpectedly'
}
