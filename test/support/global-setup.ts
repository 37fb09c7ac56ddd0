import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { buildApps } from './built-apps.ts'
import { readWorkers } from './data/citus-cluster.ts'
import { startPgBouncer } from './data/pgbouncer.ts'
import { directConnection, startTestedServer, type TestServer, testedServer } from './data/tested-server.ts'
import { makeTempFolder } from './temp-folder.ts'

/** The migrated database that every test database is a copy of. */
const TEMPLATE = 'waybill_template'

declare module 'vitest' {
  interface ProvidedContext {
    /** Abstract socket at which test files ask for the PostgreSQL server of the run. */
    testServerSocket: string
  }
}

/** Settings without durability: a test database need not survive a power cut. */
const FAST_SETTINGS = {
  fsync: 'off',
  full_page_writes: 'off',
  synchronous_commit: 'off',
  max_connections: '200',
  autovacuum: 'off',
}

interface RunningServer {
  readonly server: TestServer
  stop(): Promise<void>
}

/**
 * Provides one PostgreSQL server for the whole run, started when the first test file asks for a database, so that unit tests do not wait
 * for it. This process starts it, because the server ends with its starter and test processes end early.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await buildApps()
  const dataDir = await makeTempFolder('test')
  let starting: Promise<RunningServer> | undefined
  const socket = `\0waybill-test-${randomUUID()}`
  const listener = createServer({ allowHalfOpen: true }, (client) => {
    client.on('error', () => {})
    starting ??= startWithTemplate(dataDir)
    starting.then(
      ({ server }) => client.end(JSON.stringify(server)),
      (error) => client.end(JSON.stringify({ failure: String(error?.stack ?? error) })),
    )
  })
  listener.listen(socket)
  await once(listener, 'listening')
  project.provide('testServerSocket', socket)
  return async () => {
    listener.close()
    const running = await starting?.catch(() => undefined)
    await running?.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function startWithTemplate(dataDir: string): Promise<RunningServer> {
  const { url, isCitus, pgbouncer } = testedServer
  await using stack = new AsyncDisposableStack()
  let server: TestServer
  if (url === undefined) {
    const started = stack.adopt(await startTestedServer({ dataDir, settings: FAST_SETTINGS }), (each) => each.stop())
    server = { dataDir, template: TEMPLATE }
    if (pgbouncer !== undefined) {
      const behind = { ...started.connection(), host: join(dataDir, 'pg', 'data') }
      const pooler = stack.adopt(await startPgBouncer(pgbouncer, behind), (each) => each.stop())
      server = { ...server, pooler: { host: pooler.host, port: pooler.port } }
    }
  } else {
    server = { url, template: `${TEMPLATE}_${process.pid}` }
    if (isCitus) server = { ...server, citusWorkers: await readWorkers((await directConnection(server))()) }
  }
  const connectionTo = await directConnection(server)
  const main = createDatabase(connectionTo(), { poolMax: 1 })
  stack.defer(() => main.destroy())
  await main.raw(`create database ${server.template}`)
  if (url !== undefined) stack.defer(async () => void (await main.raw(`drop database ${server.template}`)))
  // A step that builds indexes looks at its progress on a second connection.
  const template = createDatabase(connectionTo(server.template), { poolMax: 2 })
  await migrate(template)
  await template.destroy()
  const running = stack.move()
  return { server, stop: () => running.disposeAsync() }
}
