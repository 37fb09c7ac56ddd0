import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createDatabase } from '../../src/postgres/knex.ts'
import { MIGRATIONS } from '../../src/postgres/migrations/list.ts'
import { DatabaseTooNewError, migrate, pendingMigrations } from '../../src/postgres/migrations/migrate.ts'
import type { Migration } from '../../src/postgres/migrations/migration.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { PATIENCE } from '../support/patience.ts'

let db: TestDatabase

beforeEach(async () => {
  db = await createTestDatabase()
  await db.knex.raw('drop schema public cascade')
  await db.knex.raw('create schema public')
})

afterEach(() => db.drop())

const first: Migration = {
  name: '0001-first',
  async up(knex) {
    await knex.raw('create table firsts (n int)')
    // long enough for the others to wait
    await knex.raw('select pg_sleep(0.05)')
  },
}
const second: Migration = {
  name: '0002-second',
  async up(knex) {
    await knex.raw('alter table firsts add column m int')
    await knex.raw('insert into firsts values (1, 2)')
  },
}

test('the steps run in order, each once', async () => {
  expect(await pendingMigrations(db.knex, [first, second])).toEqual(['0001-first', '0002-second'])
  expect(await migrate(db.knex, [first])).toEqual(['0001-first'])
  expect(await pendingMigrations(db.knex, [first, second])).toEqual(['0002-second'])
  expect(await migrate(db.knex, [first, second])).toEqual(['0002-second'])
  expect(await migrate(db.knex, [first, second])).toEqual([])
  expect(await pendingMigrations(db.knex, [first, second])).toEqual([])
  expect(await db.knex('firsts')).toEqual([{ n: 1, m: 2 }])
})

test('four processes that start at once run each step once', async () => {
  const pools = Array.from({ length: 4 }, () => createDatabase(db.connection, { poolMax: 1 }))
  try {
    const ran = await Promise.all(pools.map((knex) => migrate(knex, [first, second])))
    expect(ran.flat().toSorted()).toEqual(['0001-first', '0002-second'])
    expect(await db.knex('firsts')).toEqual([{ n: 1, m: 2 }])
  } finally {
    await Promise.all(pools.map((knex) => knex.destroy()))
  }
})

test('a failed step is rolled back, and runs again next time', async () => {
  const failing: Migration = {
    name: second.name,
    async up(knex) {
      await second.up(knex)
      await knex.raw('select 1 / 0')
    },
  }
  await expect(migrate(db.knex, [first, failing])).rejects.toMatchObject({ code: '22012' })
  expect(await pendingMigrations(db.knex, [first, second])).toEqual(['0002-second'])
  expect(await migrate(db.knex, [first, second])).toEqual(['0002-second'])
  expect(await db.knex('firsts')).toEqual([{ n: 1, m: 2 }])
})

test('a process killed during a step blocks nobody', async () => {
  const dying = createDatabase(db.connection, { poolMax: 1 })
  const killed: Migration = {
    name: first.name,
    up: async (knex) => {
      await knex.raw('select pg_terminate_backend(pg_backend_pid())')
    },
  }
  await expect(migrate(dying, [killed])).rejects.toMatchObject({ code: '57P01' })
  expect(await migrate(db.knex, [first, second])).toEqual(['0001-first', '0002-second'])
  await dying.destroy()
})

test('the statement timeout ends neither the wait for the lock nor a long step', async () => {
  const hasty = createDatabase(db.connection, { statementTimeoutMs: 200 })
  const long: Migration = {
    name: '0001-long',
    async up(knex) {
      await knex.raw('select pg_sleep(0.3)')
    },
  }
  expect(await migrate(hasty, [long])).toEqual(['0001-long'])
  await hasty.destroy()
})

test('a search that runs when 0006-priced begins finishes, and then the step does', async () => {
  await migrate(db.knex, MIGRATIONS.slice(0, 5))
  const searching = await db.knex.transaction()
  await searching.raw('select count(*) from payments')
  const migrating = migrate(db.knex, MIGRATIONS.slice(0, 6))
  await vi.waitFor(async () => {
    const { rows } = await db.knex.raw(
      `select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    expect(rows).toHaveLength(1)
  }, PATIENCE)
  await searching.raw('select max(seq) from payment_statistics')
  await searching.commit()
  expect(await migrating).toEqual(['0006-priced'])
})

test('a database of a newer version is refused, naming its steps, and left unchanged', async () => {
  await migrate(db.knex, [first, second])
  await expect(migrate(db.knex, [first])).rejects.toThrow(DatabaseTooNewError)
  await expect(pendingMigrations(db.knex, [first])).rejects.toThrow('0002-second, unknown here')
})

test('the names of the real steps are unique and sort in their order', () => {
  const names = MIGRATIONS.map(({ name }) => name)
  expect(names).toEqual([...new Set(names)].toSorted())
})
