import { randomUUID } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Knex } from 'knex'
import { inject } from 'vitest'
import type { Connection, ConnectionFactory } from '../../../src/postgres/embedded/embedded-connection.ts'
import { createDatabase, type DatabaseOptions } from '../../../src/postgres/knex.ts'
import { type ClusterUse, dropEverywhere, joinWorkers, shardDatabase, type TestWorker } from './citus-cluster.ts'
import { directConnection, type TestServer } from './tested-server.ts'

/** A database of a test's own. */
export interface TestDatabase {
  readonly knex: Knex
  /** for a second pool, another process or a service under test */
  readonly connection: Connection
  /** the server itself where `connection` is a pooler */
  readonly direct: Connection
  /** closes `knex` and removes the database, whoever still uses it */
  drop(): Promise<void>
}

interface JoinedServer {
  readonly template: string
  /** for creating and dropping databases */
  readonly direct: ConnectionFactory
  readonly citusWorkers: readonly TestWorker[]
  /** for the tests; through the pooler where there is one */
  readonly connectionTo: (database: string) => Connection
}

let joined: Promise<JoinedServer> | undefined

/**
 * Creates an empty, migrated database, a copy of the run's template, in about 30 ms. Most test files create one in `beforeAll`. The first
 * call of a run starts PostgreSQL, in about a second.
 */
export async function createTestDatabase(
  options: DatabaseOptions = {},
  cluster: ClusterUse = {},
): Promise<TestDatabase> {
  return createDatabaseLike(
    ({ template }) => `template ${template} strategy file_copy`,
    (server, name) => shardOnCitus(server, name, cluster),
    options,
  )
}

/** Creates an empty database. @param terms - of CREATE DATABASE, such as an encoding */
export async function createEmptyDatabase(terms: string): Promise<TestDatabase> {
  return createDatabaseLike(
    () => `template template0 ${terms}`,
    async () => {},
    {},
  )
}

async function shardOnCitus({ direct, citusWorkers }: JoinedServer, name: string, use: ClusterUse): Promise<void> {
  if (citusWorkers.length === 0) return
  await joinWorkers(direct, citusWorkers, name, use)
  if (use.isSharded !== false) await shardDatabase(direct(name))
}

async function createDatabaseLike(
  terms: (server: JoinedServer) => string,
  prepare: (server: JoinedServer, name: string) => Promise<void>,
  options: DatabaseOptions,
) {
  joined ??= joinTestServer(inject('testServerSocket'))
  const server = await joined
  const { direct, connectionTo, citusWorkers } = server
  const name = `test_${randomUUID().replaceAll('-', '')}`
  await administer(direct(), `create database ${name} ${terms(server)}`)
  await prepare(server, name)
  const connection = connectionTo(name)
  const knex = createDatabase(connection, options)
  const drop = async () => {
    await knex.destroy()
    await dropEverywhere(direct, citusWorkers, name)
  }
  return { knex, connection, direct: direct(name), drop }
}

async function joinTestServer(socket: string): Promise<JoinedServer> {
  const answer = JSON.parse(await text(connect(socket))) as TestServer | { failure: string }
  if ('failure' in answer) throw new Error(`The test run's PostgreSQL did not start: ${answer.failure}`)
  const direct = await directConnection(answer)
  const { template, citusWorkers = [] } = answer
  return { template, direct, citusWorkers, connectionTo: (name) => ({ ...direct(name), ...answer.pooler }) }
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
  const login = `${user}:${encodeURIComponent(password)}`
  if (!host.startsWith('/')) return `postgres://${login}@${host}:${port}/${database}`
  return `postgres://${login}@localhost:${port}/${database}?host=${encodeURIComponent(realpathSync(host))}`
}
