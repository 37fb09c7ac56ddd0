import { readFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { dumpSchema } from '../../tools/dump-schema.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let db: TestDatabase

beforeAll(async () => {
  db = await createTestDatabase()
})

afterAll(() => db.drop())

test('src/postgres/schema.sql is the schema that the migrations make (if not: npm run schema:dump)', async () => {
  const committed = await readFile(new URL('../../src/postgres/schema.sql', import.meta.url), 'utf8')
  expect(committed).toBe(await dumpSchema(db.knex))
})

test('the dump, run as SQL, makes the same schema', async () => {
  const dump = await dumpSchema(db.knex)
  const again = await createTestDatabase()
  try {
    await again.knex.raw('drop schema public cascade; create schema public')
    await again.knex.raw(dump.replaceAll('?', '\\?'))
    expect(await dumpSchema(again.knex)).toBe(dump)
  } finally {
    await again.drop()
  }
})

test.each([
  ['a column', 'alter table leases add column note text'],
  ['a default', `alter table leases alter column owner set default 'x'`],
  ['a constraint', 'alter table leases add constraint ends check (expires_at > now())'],
  ['an index', 'create index leases_owner on leases (owner) where owner is not null'],
  ['a comment', `comment on column leases.owner is 'who''s it'`],
  ['a collation', 'alter table leases alter column owner type text collate "C"'],
  ['an option', 'alter table leases set (fillfactor = 70)'],
  [
    'a table',
    'create table "Other" (id integer generated always as identity, twice integer generated always as (1 + 1) stored)',
  ],
])('the dump shows %s that was added', async (_, statement) => {
  const before = await dumpSchema(db.knex)
  const trx = await db.knex.transaction()
  await trx.raw(statement)
  const after = await dumpSchema(trx)
  await trx.rollback()
  expect(after).not.toBe(before)
})

test.each([
  ['view', 'create view looks as select 1 as one'],
  ['function', 'create function one() returns int language sql return 1'],
  ['type', `create type mood as enum ('fine')`],
  ['sequence', 'create sequence counter'],
  [
    'trigger',
    `create trigger t before update on leases for each row execute function suppress_redundant_updates_trigger()`,
  ],
])('the dump refuses a %s instead of leaving it out', async (kind, statement) => {
  const trx = await db.knex.transaction()
  await trx.raw(statement)
  const dump = dumpSchema(trx)
  await expect(dump).rejects.toThrow(`the schema dump cannot write ${kind}`)
  await trx.rollback()
})
