import type { ConnectionFactory } from '../../../src/postgres/embedded/embedded-connection.ts'
import { binariesIn } from '../../../src/postgres/embedded/embedded-files.ts'
import {
  type EmbeddedServer,
  joinEmbeddedServer,
  type StartOptions,
  startEmbeddedServer,
} from '../../../src/postgres/embedded/embedded-server.ts'
import type { TestWorker } from './citus-cluster.ts'

/**
 * What the tests run on; undefined for the embedded server of the project. `npm run test:postgres` sets these variables.
 *
 * - TEST_POSTGRES_NATIVE: the programs of another version of PostgreSQL
 * - TEST_POSTGRES_URL: a server that runs already; its user may create databases
 * - CITUS_URL: the coordinator of a Citus cluster, in a database that knows its workers; `npm run test:citus` uses it
 * - TEST_PGBOUNCER: the program of a pooler, through which the tests connect
 */
export const testedServer = {
  native: process.env.TEST_POSTGRES_NATIVE,
  url: process.env.CITUS_URL ?? process.env.TEST_POSTGRES_URL,
  isCitus: process.env.CITUS_URL !== undefined,
  pgbouncer: process.env.TEST_PGBOUNCER,
}

/** PostgreSQL before 17 has no built-in locales; this one of the C library treats letters alike. */
const LOCALE = ['--locale=C.UTF-8']

/** Starts a server of the version under test. */
export async function startTestedServer(options: StartOptions): Promise<EmbeddedServer> {
  const { native } = testedServer
  return startEmbeddedServer({
    ...options,
    binaries: native === undefined ? undefined : await binariesIn(native, LOCALE),
  })
}

/** The server of a test run. Either `dataDir` or `url` is present. */
export interface TestServer {
  /** The migrated database that every test database is a copy of. */
  readonly template: string
  readonly dataDir?: string
  readonly url?: string
  /** Each test database is sharded over them. */
  readonly citusWorkers?: readonly TestWorker[]
  /** Where the tests connect instead. */
  readonly pooler?: { readonly host: string; readonly port: number }
}

/** Connects to the server itself, to create and drop databases. */
export async function directConnection({ dataDir, url = '' }: TestServer): Promise<ConnectionFactory> {
  if (dataDir !== undefined) return (await joinEmbeddedServer(dataDir)).connection
  const { hostname, port, username, password, pathname } = new URL(url)
  const user = decodeURIComponent(username)
  return (database = decodeURIComponent(pathname.slice(1))) => ({
    host: decodeURIComponent(hostname),
    port: Number(port || 5432),
    user,
    password: decodeURIComponent(password),
    database,
  })
}
