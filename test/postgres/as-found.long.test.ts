import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createDatabase } from '../../src/postgres/knex.ts'
import { migrate } from '../../src/postgres/migrations/migrate.ts'
import { settingsThatWork } from '../cases/database-settings.ts'
import { createEmptyDatabase, createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { makeSetting, placeOf, type Reported, useDatabase, writeExport } from '../support/found/use-database.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let folder: string
let file: string
let expected: Reported

beforeAll(async () => {
  folder = await makeTempFolder('as-found-long')
  file = join(folder, 'payments.ndjson')
  const plain = await createTestDatabase()
  await writeExport(plain, file)
  expected = await useDatabase(placeOf(plain), file)
  await plain.drop()
})

afterAll(() => rm(folder, { recursive: true, force: true }))

async function expectSame(database: TestDatabase): Promise<void> {
  try {
    expect(await useDatabase(placeOf(database), file)).toEqual(expected)
  } finally {
    await database.drop()
  }
}

test.each(settingsThatWork)('with $name = $value everybody gets the same answers', async (setting) => {
  const database = await createTestDatabase()
  await makeSetting(database, setting)
  await expectSame(database)
})

// the rules of German sort and compare otherwise than bytes do
test.each([
  ['of the C library', `encoding 'UTF8' locale 'C.UTF-8'`],
  ['of bytes', `encoding 'UTF8' locale 'C'`],
  ['of ICU', `encoding 'UTF8' locale_provider icu icu_locale 'de-DE' locale 'C.UTF-8'`],
  [
    'of ICU, with one order for upper and lower case',
    `encoding 'UTF8' locale_provider icu icu_locale 'en-US-u-kf-upper-kn-true' locale 'C.UTF-8'`,
  ],
])('with the collation %s everybody gets the same answers', async (_, terms) => {
  const database = await createEmptyDatabase(terms)
  await migrate(database.knex)
  await expectSame(database)
})

test('with tables in a schema of their own everybody gets the same answers', async () => {
  const database = await createEmptyDatabase(`encoding 'UTF8' locale 'C'`)
  await database.knex.raw('create schema apps')
  await makeSetting(database, { name: 'search_path', value: 'apps' })
  const pool = createDatabase(database.connection, { poolMax: 2 })
  await migrate(pool)
  await pool.destroy()
  const { rows } = await database.knex.raw(`select count(*) as n from pg_tables where schemaname = 'public'`)
  expect(rows[0].n).toBe(0n)
  await expectSame(database)
})
