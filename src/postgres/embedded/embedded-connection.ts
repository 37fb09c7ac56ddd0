import { closeSync, constants, fstatSync, openSync, readFileSync, statSync } from 'node:fs'
import { Client } from 'pg'
import { type ServerFolder } from './embedded-files.ts'
import { SUPERUSER } from './embedded-launch.ts'

/** Settings of one connection, as pg takes them. */
export interface Connection {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
}

/** Makes the settings of a new connection, to the database named or to the usual one. */
export type ConnectionFactory = (database?: string) => Connection

/** The database that initdb makes and the service uses. */
const DATABASE = 'postgres'

const opened = new Map<string, number>()

/**
 * How to reach the server of a folder. The path of a socket ends at 107 bytes, and folders may be deeper: so the folder is opened
 * and named by its descriptor, which stays open as long as the process, for the pools that go on using it.
 */
export function folderConnection(folder: ServerFolder): ConnectionFactory {
  return (database = DATABASE) => ({
    host: `/proc/self/fd/${openFolder(folder.data)}`,
    port: 5432,
    user: SUPERUSER,
    password: readFileSync(folder.password, 'utf8'),
    database,
  })
}

function openFolder(path: string): number {
  const known = opened.get(path)
  if (known !== undefined) {
    if (fstatSync(known).ino === statSync(path).ino) return known
    closeSync(known)
  }
  const descriptor = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  opened.set(path, descriptor)
  return descriptor
}

/** Says whether the server answers. */
export async function tryConnection(connection: ConnectionFactory): Promise<boolean> {
  const client = new Client(connection())
  client.on('error', () => {})
  try {
    await client.connect()
    await client.query('select 1')
    return true
  } catch (error) {
    if (notThere(error)) return false
    throw error
  } finally {
    await client.end().catch(() => {})
  }
}

/** No socket, nobody behind it, starting up or shutting down, gone while answering. */
const NOT_THERE = new Set(['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', '57P01', '57P02', '57P03'])

function notThere(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  return NOT_THERE.has(code ?? '') || message === 'Connection terminated unexpectedly'
}
