import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { createDatabase } from '../../src/postgres/knex.ts'
import { DatabaseTooNewError, OtherSchemaError } from '../../src/postgres/migrations/applied-migrations.ts'
import { MIGRATIONS } from '../../src/postgres/migrations/list.ts'
import { migrate, pendingMigrations } from '../../src/postgres/migrations/migrate.ts'
import type { Migration, TransactionMigration } from '../../src/postgres/migrations/migration.ts'
import {
  describeBuild,
  describeWait,
  type IndexProgress,
  type WaitingStep,
} from '../../src/postgres/migrations/migration-report.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { lastRelease, releasedFile } from '../support/last-release.ts'
import { PATIENCE } from '../support/patience.ts'

let db: TestDatabase

beforeAll(async () => {
  db = await createTestDatabase()
})

beforeEach(async () => {
  await db.knex.raw('drop schema public cascade')
  await db.knex.raw('create schema public')
})

afterAll(() => db?.drop())

const first: TransactionMigration = {
  name: '0001-first',
  async up(knex) {
    await knex.raw('create table firsts (n int)')
    // long enough for the others to wait
    await knex.raw('select pg_sleep(0.05)')
  },
}
const second: TransactionMigration = {
  name: '0002-second',
  async up(knex) {
    await knex.raw('alter table firsts add column m int')
    await knex.raw('insert into firsts values (1, 2)')
  },
}

test('the steps run in order, each once', async () => {
  expect(await pendingMigrations(db.knex, [first, second])).toEqual(['0001-first', '0002-second'])
  expect(await migrate(db.knex, { migrations: [first] })).toEqual(['0001-first'])
  expect(await pendingMigrations(db.knex, [first, second])).toEqual(['0002-second'])
  expect(await migrate(db.knex, { migrations: [first, second] })).toEqual(['0002-second'])
  expect(await migrate(db.knex, { migrations: [first, second] })).toEqual([])
  expect(await pendingMigrations(db.knex, [first, second])).toEqual([])
  expect(await db.knex('firsts')).toEqual([{ n: 1, m: 2 }])
})

test('four processes that start at once run each step once', async () => {
  const pools = Array.from({ length: 4 }, () => createDatabase(db.connection, { poolMax: 1 }))
  try {
    const ran = await Promise.all(pools.map((knex) => migrate(knex, { migrations: [first, second] })))
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
  await migrate(db.knex, { migrations: [first] })
  await expect(migrate(db.knex, { migrations: [first, failing] })).rejects.toMatchObject({ code: '22012' })
  expect(await pendingMigrations(db.knex, [first, second])).toEqual(['0002-second'])
  expect(await migrate(db.knex, { migrations: [first, second] })).toEqual(['0002-second'])
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
  await expect(migrate(dying, { migrations: [killed] })).rejects.toMatchObject({ code: '57P01' })
  expect(await migrate(db.knex, { migrations: [first, second] })).toEqual(['0001-first', '0002-second'])
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
  expect(await migrate(hasty, { migrations: [long] })).toEqual(['0001-long'])
  await hasty.destroy()
})

test('a step that waits for a lock lets others pass between its tries, and tells who is in its way', async () => {
  await migrate(db.knex, { migrations: [first] })
  const reading = await db.knex.transaction()
  await reading.raw('select count(*) from firsts')
  const events: WaitingStep[] = []
  const report = { waits: (event: WaitingStep) => events.push(event), builds: () => {} }
  const hurried = { migrations: [first, second], report, lockTimeoutMs: 20, firstPauseMs: 20 }
  const migrating = migrate(db.knex, hurried)
  await vi.waitFor(() => expect(events).toHaveLength(2), PATIENCE)
  // the queue behind the step would hold this up for as long as the reader lives
  await db.knex.raw('insert into firsts values (0)')
  await reading.commit()
  expect(await migrating).toEqual(['0002-second'])
  expect(describeWait(events[0] as WaitingStep)).toMatch(
    /^0002-second: .*lock timeout; in the way: pid \d+ \(waybill, idle in transaction, for 0 s\); tried again in 0\.02 s$/,
  )
})

test('a step that never gets its lock fails after some tries', async () => {
  await migrate(db.knex, { migrations: [first] })
  const reading = await db.knex.transaction()
  await reading.raw('select count(*) from firsts')
  const hurried = { migrations: [first, second], lockTimeoutMs: 10, firstPauseMs: 1, maxTries: 2 }
  await expect(migrate(db.knex, hurried)).rejects.toThrow('0002-second was tried 2 times')
  await reading.rollback()
})

describe('an older release', () => {
  const adding: Migration = {
    name: '0003-adding',
    up: async (knex) => void (await knex.raw('alter table firsts add column o int')),
  }
  const removing: Migration = {
    name: '0004-removing',
    contract: { unusedSince: '0003-adding' },
    up: async (knex) => void (await knex.raw('alter table firsts drop column m')),
  }
  const newest = [first, second, adding, removing]

  test('starts and is ready on a database with steps that only added something', async () => {
    await migrate(db.knex, { migrations: [first] })
    await migrate(db.knex, { migrations: newest })
    expect(await migrate(db.knex, { migrations: [first] })).toEqual([])
    expect(await pendingMigrations(db.knex, [first])).toEqual([])
  })

  test('is refused once a step removed what it may use, unless it knows since when that is not used', async () => {
    await migrate(db.knex, { migrations: [first] })
    expect(await migrate(db.knex, { migrations: newest })).toEqual(['0002-second', '0003-adding'])
    expect(await pendingMigrations(db.knex, newest)).toEqual([])
    expect(await migrate(db.knex, { migrations: newest, contract: true })).toEqual(['0004-removing'])
    expect(await migrate(db.knex, { migrations: [first, second, adding] })).toEqual([])
    await expect(migrate(db.knex, { migrations: [first, second] })).rejects.toThrow(DatabaseTooNewError)
    await expect(pendingMigrations(db.knex, [first])).rejects.toThrow('0004-removing, unknown here')
  })

  test('has never used a new database, which gets every step at once', async () => {
    expect(await migrate(db.knex, { migrations: newest })).toEqual(newest.map(({ name }) => name))
  })
})

describe('an index', () => {
  const index: Migration = {
    name: '0003-index',
    indexes: [{ build: 'firsts_m', table: 'firsts', definition: '(m) where m is not null' }],
  }
  const all = { migrations: [first, second, index] }
  const indexes = async () => {
    const { rows } = await db.knex.raw(
      `select indexrelid as oid, indisvalid as valid from pg_index where indexrelid = to_regclass('firsts_m')`,
    )
    return rows
  }
  beforeEach(async () => void (await migrate(db.knex, { migrations: [first, second] })))

  test('is built while a transaction writes the table, and tells how far it is', async () => {
    const writing = await db.knex.transaction()
    await writing.raw('insert into firsts values (3, 3)')
    const reported: IndexProgress[] = []
    const report = { waits: () => {}, builds: (building: IndexProgress) => reported.push(building) }
    const migrating = migrate(db.knex, { ...all, report, reportEveryMs: 20 })
    await untilBuilding()
    await vi.waitFor(
      () =>
        expect(reported.map(describeBuild)).toContainEqual(expect.stringMatching(/^index \w+: waiting for writers/)),
      PATIENCE,
    )
    await writing.raw('insert into firsts values (4, 4)')
    await db.knex.raw('insert into firsts values (5, 5)')
    await writing.commit()
    expect(await migrating).toEqual(['0003-index'])
    expect(await indexes()).toEqual([{ oid: expect.anything(), valid: true }])
    expect(await pendingMigrations(db.knex, all.migrations)).toEqual([])
  })

  test('that an earlier try left invalid is built again', async () => {
    await db.knex.raw('insert into firsts values (1, 2)')
    await expect(db.knex.raw('create unique index concurrently firsts_m on firsts (n)')).rejects.toMatchObject({
      code: '23505',
    })
    expect(await indexes()).toEqual([{ oid: expect.anything(), valid: false }])
    expect(await migrate(db.knex, all)).toEqual(['0003-index'])
    expect(await indexes()).toEqual([{ oid: expect.anything(), valid: true }])
  })

  test('that the server still builds for a process that is gone is waited for', async () => {
    const writing = await db.knex.transaction()
    await writing.raw('insert into firsts values (3, 3)')
    const orphan = db.knex.raw('create index concurrently firsts_m on firsts (m) where m is not null')
    const building = orphan.then(() => {})
    await untilBuilding()
    const migrating = migrate(db.knex, all)
    const [{ oid }] = await indexes()
    await writing.commit()
    await building
    expect(await migrating).toEqual(['0003-index'])
    expect(await indexes()).toEqual([{ oid, valid: true }])
  })

  test('is built once when four processes start at once, and no timeout of theirs ends it', async () => {
    const pools = Array.from({ length: 4 }, () =>
      createDatabase(db.connection, { poolMax: 2, statementTimeoutMs: 150 }),
    )
    const writing = await db.knex.transaction()
    await writing.raw('insert into firsts values (3, 3)')
    const ran = Promise.all(pools.map((knex) => migrate(knex, all)))
    await untilBuilding()
    await sleep(200)
    await writing.commit()
    expect((await ran).flat()).toEqual(['0003-index'])
    const timeouts = await Promise.all(pools.flatMap((knex) => [1, 2].map(() => knex.raw('show statement_timeout'))))
    expect(timeouts.map(({ rows }) => rows[0].statement_timeout)).toEqual(timeouts.map(() => '150ms'))
    await Promise.all(pools.map((knex) => knex.destroy()))
  })

  test('that is stopped by a signal is built by the next call', async () => {
    const writing = await db.knex.transaction()
    await writing.raw('insert into firsts values (3, 3)')
    const stopping = new AbortController()
    const migrating = migrate(db.knex, { ...all, signal: stopping.signal })
    await untilBuilding()
    stopping.abort(new Error('stopped'))
    await expect(migrating).rejects.toThrow('stopped')
    await writing.commit()
    expect(await migrate(db.knex, all)).toEqual(['0003-index'])
  })

  test('that is not needed any more is dropped', async () => {
    await migrate(db.knex, all)
    const drop: Migration = {
      name: '0004-drop',
      contract: { unusedSince: '0003-index' },
      indexes: [{ drop: 'firsts_m', table: 'firsts' }],
    }
    expect(await migrate(db.knex, { migrations: [...all.migrations, drop], contract: true })).toEqual(['0004-drop'])
    expect(await indexes()).toEqual([])
  })

  async function untilBuilding() {
    await vi.waitFor(async () => {
      const { rows } = await db.knex.raw(
        `select from pg_stat_activity where datname = current_database() and query like 'create index concurrently%' and wait_event_type = 'Lock'`,
      )
      expect(rows).toHaveLength(1)
    }, PATIENCE)
  }
})

describe('a database of another build of before the first release', () => {
  test.each<[string, readonly string[]]>([
    ['that says another state', ['create table payments (n int)']],
    ['that does not say how it got its tables', ['create table payments (n int)', 'drop table schema_steps']],
  ])('%s is refused, with export and import named, and unchanged', async (_, statements) => {
    await migrate(db.knex, { migrations: [{ ...first, name: '0001-other' }] })
    for (const statement of statements) await db.knex.raw(statement)
    for (const check of [migrate, pendingMigrations]) {
      await expect(check(db.knex)).rejects.toThrow(OtherSchemaError)
      await expect(check(db.knex)).rejects.toThrow(/waybill export .* into a new database .*waybill import/)
    }
    expect(await db.knex('payments')).toEqual([])
  })
})

test('the names of the real steps are unique and sort in their order', () => {
  const names = MIGRATIONS.map(({ name }) => name)
  expect(names).toEqual([...new Set(names)].toSorted())
})

test('the first step stays as it was released', ({ skip }) => {
  const tag = lastRelease()
  if (tag === undefined) return skip('no release is tagged')
  const path = 'src/postgres/schema.sql'
  const withoutComments = (sql: string) => sql.replaceAll(/^--.*\n/gm, '').replaceAll(/\s+/g, ' ')
  const now = readFileSync(join(import.meta.dirname, '../..', path), 'utf8')
  expect(withoutComments(now)).toBe(withoutComments(releasedFile(tag, path)))
})
