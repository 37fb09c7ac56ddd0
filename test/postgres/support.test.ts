import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let one: TestDatabase
let two: TestDatabase

beforeAll(async () => {
  ;[one, two] = await Promise.all([createTestDatabase(), createTestDatabase()])
})

afterAll(async () => {
  await Promise.all([one.drop(), two.drop()])
})

test('each test database is migrated and separate from others', async () => {
  await one.knex.raw('create table only_here (n int)')
  const { rows } = await two.knex.raw(
    `select to_regclass('schema_steps') as migrated, to_regclass('only_here') as other`,
  )
  expect(rows).toEqual([{ migrated: 'schema_steps', other: null }])
})

test('a dropped test database no longer exists', async () => {
  const three = await createTestDatabase()
  await three.knex.raw('select 1')
  const { rowCount } = await one.knex.raw('select from pg_database where datname = ?', [three.connection.database])
  expect(rowCount).toBe(1)
  await three.drop()
  expect((await one.knex.raw('select from pg_database where datname = ?', [three.connection.database])).rowCount).toBe(
    0,
  )
})
