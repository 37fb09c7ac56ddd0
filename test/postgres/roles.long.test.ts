import { randomBytes } from 'node:crypto'
import { readFile, rm } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Connection } from '../../src/postgres/embedded/embedded-connection.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { insertAuditEntry, listAuditEntries } from '../../src/store/audit-repository.ts'
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
  await makeRoles(database.direct, { owner: `owner_${suffix}`, server: `server_${suffix}` })
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

/** Runs the file as psql does after the two `set` that it names. */
async function makeRoles(direct: Connection, names: { readonly owner: string; readonly server: string }) {
  const knex = createDatabase(direct, { poolMax: 1 })
  try {
    await knex.raw(`select set_config('waybill.owner', ?, false), set_config('waybill.server', ?, false)`, [
      names.owner,
      names.server,
    ])
    await knex.raw(await readFile(ROLES, 'utf8'))
  } finally {
    await knex.destroy()
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
    expect(stderr).toMatch(
      /has no tables yet, and the role \\?"server_\w+\\?" may not make it\. Run waybill migrate with a/,
    )
  }
  expect(await runAs(owner, roles, ['migrate'])).toMatchObject({ code: 0 })
  expect(await runAs(server, roles, ['migrate'])).toMatchObject({ code: 0, stdout: '' })

  const plain = await createTestDatabase()
  const file = join(folder, 'payments.ndjson')
  await writeExport(plain, file)
  const expected = await useDatabase({ connection: plain.connection, url: urlOfDatabase(plain) }, file)
  await plain.drop()
  expect(await useDatabase({ connection: server, url: urlAs(server, roles) }, file)).toEqual(expected)
  expect(await runAs(server, roles, ['verify', '--repair'])).toMatchObject({ code: 0 })
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

/** Every way in which the file and the migrations may come after one another. */
const ORDERS = {
  'the roles before the first migration': ['ROLES', 'MIGRATE'],
  'the roles after it': ['MIGRATE_AS_SUPERUSER', 'ROLES'],
  'the roles twice, before': ['ROLES', 'ROLES', 'MIGRATE'],
  'the roles before and after': ['ROLES', 'MIGRATE', 'ROLES'],
  'the roles twice, after': ['MIGRATE_AS_SUPERUSER', 'ROLES', 'ROLES'],
} as const

const NAMES = {
  'plain names': { database: 'plain', owner: 'owner', server: 'server' },
  'names that need quotes': {
    database: 'shop "one" of-Ann\'s',
    owner: 'the "Owner"',
    server: "Server; drop table x --'",
  },
} as const

const inQuotes = (name: string) => `"${name.replaceAll('"', '""')}"`

test.each(Object.keys(ORDERS).flatMap((order) => Object.keys(NAMES).map((names) => [order, names] as const)))(
  '%s, with %s: lines of the audit log are only added',
  async (order, named) => {
    const { direct } = roles.database
    const suffix = randomBytes(4).toString('hex')
    const { database, owner, server } = NAMES[named as keyof typeof NAMES]
    const names = { database: `${database} ${suffix}`, owner: `${owner} ${suffix}`, server: `${server} ${suffix}` }
    const admin = createDatabase({ ...direct, database: 'postgres' }, { poolMax: 1 })
    await using cleanUp = new AsyncDisposableStack()
    cleanUp.defer(() => admin.destroy())
    await admin.raw(`create database ${inQuotes(names.database)} template template0 encoding 'UTF8' locale 'C'`)
    cleanUp.defer(async () => {
      await admin.raw(`drop database ${inQuotes(names.database)} with (force)`)
      await admin.raw(`drop role ${inQuotes(names.owner)}, ${inQuotes(names.server)}`)
    })
    const here = { ...direct, database: names.database }
    const open = (connection: Connection) => {
      const knex = createDatabase(connection)
      cleanUp.defer(() => knex.destroy())
      return knex
    }
    for (const step of ORDERS[order as keyof typeof ORDERS]) {
      if (step === 'ROLES') await makeRoles(here, names)
      else {
        const as = step === 'MIGRATE' ? { user: names.owner, password: 'choose-one' } : {}
        await migrate(open({ ...here, ...as }))
      }
    }

    const serving = open({ ...here, user: names.server, password: 'choose-another' })
    await insertAuditEntry(serving, {
      at: new Date(),
      actor: 'ann@host',
      action: 'CREATE_KEY',
      account: 'a',
      details: {},
    })
    for (const statement of [
      `update audit_log set actor = 'nobody'`,
      'delete from audit_log',
      'truncate audit_log',
      'alter table audit_log disable trigger all',
      'drop table audit_log',
      `grant update on audit_log to ${inQuotes(names.server)}`,
    ]) {
      // a grant of what one may not grant is a warning
      await serving.raw(statement).catch((error: { code: string }) => expect(error.code).toBe('42501'))
    }
    expect(await listAuditEntries(serving)).toMatchObject([{ actor: 'ann@host', action: 'CREATE_KEY' }])
    const { rows } = await serving.raw(`select
    has_table_privilege('audit_log', 'insert') as adds, has_table_privilege('audit_log', 'update') as changes,
    has_table_privilege('audit_log', 'delete') as deletes, has_table_privilege('api_keys', 'update') as revokes,
    (select setconfig from pg_db_role_setting join pg_roles on pg_roles.oid = setrole where rolname = current_user) as settings`)
    const settings = ['statement_timeout=60s']
    expect(rows).toEqual([{ adds: true, changes: false, deletes: false, revokes: true, settings }])
  },
)
