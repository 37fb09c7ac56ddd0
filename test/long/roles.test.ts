import { randomBytes } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createEmptyDatabase, createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { seedPayments } from '../support/data/seed-payments.ts'
import { useDatabase, writeExport } from '../support/found/use-database.ts'
import { runCommand } from '../support/run-command.ts'
import { startTestService } from '../support/service.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const ROLES = resolve(import.meta.dirname, '../../docs/sql/roles.sql')

/** A database with the two roles of the file, under names of their own: roles belong to all databases of a server. */
interface WithRoles {
  readonly owner: Connection
  readonly server: Connection
  readonly database: TestDatabase
  drop(): Promise<void>
}

async function openWithRoles(): Promise<WithRoles> {
  const database = await createEmptyDatabase(`encoding 'UTF8' locale 'C'`)
  const suffix = randomBytes(4).toString('hex')
  const text = (await readFile(ROLES, 'utf8'))
    .replaceAll(/waybill_(owner|server)/g, `$1_${suffix}`)
    .replaceAll('database waybill', `database ${database.direct.database}`)
  await database.knex.raw(text)
  const as = (user: string, password: string) => ({ ...database.connection, user: `${user}_${suffix}`, password })
  return {
    database,
    owner: as('owner', 'choose-one'),
    server: as('server', 'choose-another'),
    async drop() {
      await database.drop()
      const other = createDatabase({ ...database.direct, database: 'postgres' }, { poolMax: 1 })
      await other.raw(`drop role owner_${suffix}, server_${suffix}`)
      await other.destroy()
    },
  }
}

const urlAs = (connection: Connection, { database }: WithRoles) => urlOfDatabase({ ...database, connection })
const runAs = (connection: Connection, roles: WithRoles, words: readonly string[]) =>
  runCommand({ DATABASE_URL: urlAs(connection, roles), CHAINS_FILE: 'none' }, words)

let folder: string
let roles: WithRoles

beforeAll(async () => {
  folder = await makeTempFolder('roles')
  roles = await openWithRoles()
})

afterAll(async () => {
  await roles?.drop()
  await rm(folder, { recursive: true, force: true })
})

test('the role that serves says who has to migrate; once that is done it does everything else', async () => {
  const { owner, server } = roles
  for (const words of [['migrate'], ['serve'], ['keys', 'list']]) {
    const { code, stderr } = await runAs(server, roles, words)
    expect(code).toBe(1)
    expect(stderr).toMatch(/has no tables yet, and the role "server_\w+" may not make it\. Run waybill migrate with a/)
  }
  expect(await runAs(owner, roles, ['migrate'])).toMatchObject({ code: 0 })
  expect(await runAs(server, roles, ['migrate'])).toMatchObject({ code: 0, stdout: '' })

  const plain = await createTestDatabase()
  const file = join(folder, 'payments.ndjson')
  await writeExport(plain, file)
  const expected = await useDatabase({ connection: plain.connection, url: urlOfDatabase(plain) }, file)
  await plain.drop()
  expect(await useDatabase({ connection: server, url: urlAs(server, roles) }, file)).toEqual(expected)
  expect(await runAs(server, roles, ['check', '--repair'])).toMatchObject({ code: 0 })
})

test('it finds payments on chain and serves them', async () => {
  const knex = createDatabase(roles.server)
  const running = await startTestService(async () => ({ ...roles.database, knex, drop: () => knex.destroy() }))
  try {
    await seedPayments(running)
    const answer = await fetch(`${running.url}/payments?limit=2`, { headers: { 'x-api-key': running.keys.shop } })
    expect(answer.status).toBe(200)
  } finally {
    await running.stop()
  }
})

test('it can neither create, change nor drop a table, and gets its rights on tables of later migrations', async () => {
  const server = createDatabase(roles.server, { poolMax: 1 })
  const owner = createDatabase(roles.owner, { poolMax: 1 })
  for (const statement of [
    'create table t (n int)',
    'alter table payments add column n int',
    'drop table payments',
    'truncate payments',
  ]) {
    await expect(server.raw(statement)).rejects.toMatchObject({ code: '42501' })
  }
  await owner.raw('create table later (n bigint generated always as identity, m bigserial, text text)')
  await server.raw(`insert into later (text) values ('x')`)
  expect((await server.raw('select n, m, text from later')).rows).toEqual([{ n: 1n, m: 1n, text: 'x' }])
  await Promise.all([server.destroy(), owner.destroy()])
})

test('a missing migration is named, and the owner runs it', async () => {
  const owner = createDatabase(roles.owner, { poolMax: 1 })
  const { rows } = await owner.raw(`delete from schema_migrations where name = '0016-node-readings' returning name`)
  expect(rows).toHaveLength(1)
  await owner.destroy()
  const { code, stderr } = await runAs(roles.server, roles, ['keys', 'list'])
  expect([code, stderr]).toEqual([1, expect.stringContaining('lacks the migration 0016-node-readings, and the role')])
})
