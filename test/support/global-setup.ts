import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { TestProject } from 'vitest/node'
import { type EmbeddedServer, startEmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { makeTempFolder } from './temp-folder.ts'

/** The migrated database that every test database is a copy of. */
export const TEMPLATE = 'waybill_template'

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

/**
 * Provides one PostgreSQL server for the whole run, started when the first test file asks for a database, so that unit tests do not wait
 * for it. This process starts it, because the server ends with its starter and test processes end early.
 */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const dataDir = await makeTempFolder('test')
  let starting: Promise<EmbeddedServer> | undefined
  const socket = `\0waybill-test-${randomUUID()}`
  const listener = createServer({ allowHalfOpen: true }, (client) => {
    client.on('error', () => {})
    starting ??= startWithTemplate(dataDir)
    starting.then(
      () => client.end(JSON.stringify({ dataDir })),
      (error) => client.end(JSON.stringify({ failure: String(error?.stack ?? error) })),
    )
  })
  listener.listen(socket)
  await once(listener, 'listening')
  project.provide('testServerSocket', socket)
  return async () => {
    listener.close()
    const server = await starting?.catch(() => undefined)
    await server?.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function startWithTemplate(dataDir: string): Promise<EmbeddedServer> {
  const server = await startEmbeddedServer({ dataDir, settings: FAST_SETTINGS })
  const main = createDatabase(server.connection(), { poolMax: 1 })
  await main.raw(`create database ${TEMPLATE}`)
  await main.destroy()
  const template = createDatabase(server.connection(TEMPLATE), { poolMax: 1 })
  await migrate(template)
  await template.destroy()
  return server
}
