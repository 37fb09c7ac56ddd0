import { randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Knex } from 'knex'
import { inject } from 'vitest'
import type { Connection } from '../../../src/postgres/embedded/embedded-connection.ts'
import { joinEmbeddedServer, type OpenedServer } from '../../../src/postgres/embedded/embedded-server.ts'
import { createDatabase, type DatabaseOptions } from '../../../src/postgres/knex.ts'
import { TEMPLATE } from '../global-setup.ts'

/** A database of a test's own. */
export interface TestDatabase {
  readonly knex: Knex
  /** for a second pool, another process or a service under test */
  readonly connection: Connection
  /** closes `knex` and removes the database, whoever still uses it */
  drop(): Promise<void>
}

let joined: Promise<OpenedServer> | undefined

/**
 * Creates an empty, migrated database, a copy of the run's template, in about 30 ms. Most test files create one in `beforeAll`. The first
 * call of a run starts PostgreSQL, in about a second.
 */
export async function createTestDatabase(options: DatabaseOptions = {}): Promise<TestDatabase> {
  joined ??= joinTestServer(inject('testServerSocket'))
  const { connection: connectionTo } = await joined
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await administer(connectionTo(), `create database ${name} template ${TEMPLATE} strategy file_copy`)
  const connection = connectionTo(name)
  const knex = createDatabase(connection, options)
  const drop = async () => {
    await knex.destroy()
    await administer(connectionTo(), `drop database ${name} with (force)`)
  }
  return { knex, connection, drop }
}

async function joinTestServer(socket: string): Promise<OpenedServer> {
  const answer = JSON.parse(await text(connect(socket))) as { dataDir: string } | { failure: string }
  if ('failure' in answer) throw new Error(`The test run's PostgreSQL did not start: ${answer.failure}`)
  return joinEmbeddedServer(answer.dataDir)
}

async function administer(connection: Connection, statement: string): Promise<void> {
  const admin = createDatabase(connection, { poolMax: 1 })
  try {
    await admin.raw(statement)
  } finally {
    await admin.destroy()
  }
}

/** The URL of a database, for another process. */
export function urlOfDatabase({ connection: { host, port, user, password, database } }: TestDatabase): string {
  return `postgres://${user}:${encodeURIComponent(password)}@localhost:${port}/${database}?host=${encodeURIComponent(realpathSync(host))}`
}
