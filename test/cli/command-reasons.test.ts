/** What a command says when its database fails: a reason first, and no statement. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { type SilentProxy, startSilentProxy } from '../support/data/silent-proxy.ts'
import { runCommand } from '../support/run-command.ts'

let database: TestDatabase
let proxy: SilentProxy

beforeAll(async () => {
  database = await createTestDatabase()
  proxy = await startSilentProxy(database.direct)
})
afterAll(async () => {
  await proxy?.stop()
  await database?.drop()
})

it.each([
  [['keys', 'list'], 'api_keys'],
  [['audit'], 'audit_log'],
  [['export', 'payments', '--account', 'shop'], 'accounts'],
])('%s without its table names what is missing', async (words, table) => {
  await database.knex.raw(`alter table ${table} rename to gone`)
  try {
    const { code, stdout, stderr } = await runCommand({ DATABASE_URL: urlOfDatabase(database) }, words)
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr).toMatch(/^waybill [a-z ]+: the database refused a statement: relation "\w+" does not exist\n$/)
  } finally {
    await database.knex.raw(`alter table gone rename to ${table}`)
  }
})

it('a database that is connected to and says nothing is reported within seconds', async () => {
  const { user, password, database: name } = database.direct
  const url = `postgres://${user}:${encodeURIComponent(password)}@${proxy.host}:${proxy.port}/${name}`
  proxy.silence()
  const startedMs = performance.now()
  const { code, stderr } = await runCommand({ DATABASE_URL: url }, ['keys', 'list'])
  proxy.resume()
  expect(code).toBe(1)
  expect(stderr).toMatch(/^waybill keys list: the database at 127\.0\.0\.1:\d+\/\w+ cannot be used; see DATABASE_URL: /)
  expect(stderr).toContain('the database cannot be reached: ')
  expect(stderr).not.toContain('select')
  expect(performance.now() - startedMs).toBeLessThan(10_000)
})
