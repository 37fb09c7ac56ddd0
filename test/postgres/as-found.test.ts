import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { settingsThatWork } from '../cases/database-settings.ts'
import { createEmptyDatabase, createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { makeSetting, placeOf, useDatabase, writeExport } from '../support/found/use-database.ts'
import { runCommand } from '../support/run-command.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let folder: string
let file: string
let plain: TestDatabase
let odd: TestDatabase

beforeAll(async () => {
  folder = await makeTempFolder('as-found')
  file = join(folder, 'payments.ndjson')
  ;[plain, odd] = await Promise.all([createTestDatabase(), createTestDatabase()])
  await writeExport(plain, file)
})

afterAll(async () => {
  await Promise.all([plain?.drop(), odd?.drop()])
  await rm(folder, { recursive: true, force: true })
})

test('everybody gets the same answers from a database with every odd setting at once', async () => {
  for (const setting of settingsThatWork) await makeSetting(odd, setting)
  const reported = await useDatabase(placeOf(odd), file)
  expect(reported).toEqual(await useDatabase(placeOf(plain), file))
  expect(reported.created).toEqual(['one'])
  expect(reported.exported.split('\n')).toHaveLength(61)
})

/** What a command says on a database, whatever it was asked for. */
async function refusalOf(database: TestDatabase): Promise<string> {
  const { code, stderr } = await runCommand({ DATABASE_URL: urlOfDatabase(database), CHAINS_FILE: 'none' }, [
    'keys',
    'list',
  ])
  expect(code).toBe(1)
  return stderr
}

test.each(['LATIN1', 'SQL_ASCII'])('a database with the encoding %s is refused', async (encoding) => {
  const foreign = await createEmptyDatabase(`encoding '${encoding}' locale 'C'`)
  expect(await refusalOf(foreign)).toContain(`is ${encoding}, which cannot hold every letter. Use another one: create`)
  await foreign.drop()
})

test.each([
  ['default_transaction_read_only', 'on', /set default_transaction_read_only = off/],
  ['search_path', 'pg_catalog', /tables are in the schema public.*set search_path = public/],
])('%s = %s is refused with the statement that corrects it', async (name, value, refusal) => {
  const foreign = await createTestDatabase()
  await makeSetting(foreign, { name, value })
  expect(await refusalOf(foreign)).toMatch(refusal)
  await foreign.drop()
})
