import { realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createDatabase, type DatabaseOptions } from '../../src/postgres/knex.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { raw } from '../../src/postgres/statement.ts'
import { settingsThatWork } from '../cases/database-settings.ts'
import { createTestDatabase, type TestDatabase, urlOfDatabase } from '../support/data/database.ts'
import { findPgBouncer, type Pooler, startPgBouncer } from '../support/data/pgbouncer.ts'
import { makeSetting, useDatabase, writeExport } from '../support/found/use-database.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

const program = findPgBouncer()

/** Behind a pooler; a statement timeout holds there, and here it is too short. */
const REFUSED = new Set(['bytea_output', 'array_nulls', 'default_transaction_isolation', 'statement_timeout'])

/** Each transaction may meet another of two server connections. */
describe.skipIf(program === undefined)('behind PgBouncer in transaction mode', () => {
  let db: TestDatabase
  let pooler: Pooler
  let folder: string

  beforeAll(async () => {
    folder = await makeTempFolder('pooler')
    db = await createTestDatabase()
    const server = { ...db.direct, host: realpathSync(db.direct.host) }
    pooler = await startPgBouncer(program ?? '', server, { default_pool_size: '2', max_db_connections: '2' })
  })

  afterAll(async () => {
    await pooler?.stop()
    await db?.drop()
    await rm(folder, { recursive: true, force: true })
  })

  const through = ({ direct }: TestDatabase) => ({ ...direct, host: pooler.host, port: pooler.port })

  async function withPool<T>(of: TestDatabase, work: (pool: Knex) => Promise<T>, options?: DatabaseOptions) {
    const pool = createDatabase(through(of), { poolMax: 4, ...options })
    try {
      return await work(pool)
    } finally {
      await pool.destroy()
    }
  }

  /** Runs work on a database of its own, whose setting holds for every server connection of the pooler. */
  async function withSetting<T>(setting: string, value: string, work: (pool: Knex) => Promise<T>): Promise<T> {
    const own = await createTestDatabase()
    try {
      await own.knex.raw(`alter database ${own.direct.database} set ${setting} = '${value}'`)
      return await withPool(own, work)
    } finally {
      await own.drop()
    }
  }

  /** What any other client of the pooler finds, in more transactions than there are server connections. */
  async function settingsOfOthers(): Promise<string[]> {
    const other = new Client(through(db))
    await other.connect()
    const found = new Set<string>()
    for (let n = 0; n < 6; n++) {
      const { rows } = await other.query(
        `select string_agg(name || '=' || setting, ', ' order by name) as settings from pg_settings where name in
           ('statement_timeout', 'bytea_output', 'array_nulls', 'default_transaction_isolation', 'TimeZone', 'DateStyle')`,
      )
      found.add(rows[0].settings)
    }
    await other.end()
    return [...found]
  }

  test('no setting reaches other clients', async () => {
    const before = await settingsOfOthers()
    expect(before).toHaveLength(1)
    const work = async (pool: Knex) => {
      for (let n = 0; n < 6; n++) await Promise.all([pool.raw('select 1'), pool.raw('select 2')])
    }
    await withPool(db, work, { statementTimeoutMs: 1_234 })
    expect(await settingsOfOthers()).toEqual(before)
  })

  test('times are read alike whatever the time zone and date style of the database', async () => {
    const read = async (pool: Knex) => {
      const found: unknown[] = []
      for (let n = 0; n < 4; n++) {
        found.push((await pool.raw(`select to_timestamp(1782864000) as at, '\\x00ff'::bytea as bytes`)).rows[0])
      }
      return found
    }
    const expected = Array.from({ length: 4 }, () => ({
      at: new Date(1_782_864_000_000),
      bytes: Buffer.from('00ff', 'hex'),
    }))
    expect(await withSetting('TimeZone', 'Asia/Kolkata', read)).toEqual(expected)
    expect(await withSetting('DateStyle', 'German', read)).toEqual(expected)
  })

  test.each([
    ['bytea_output', 'escape', 'hex'],
    ['default_transaction_isolation', 'serializable', 'read committed'],
    ['array_nulls', 'off', 'on'],
  ])('%s = %s is refused with the statement that corrects it', async (setting, value, needed) => {
    const connected = withSetting(setting, value, async (pool) => pool.raw('select 1'))
    await expect(connected).rejects.toThrow(`${setting} is "${value}" and has to be "${needed}"`)
    await expect(connected).rejects.toThrow(`alter role "${db.direct.user}" set ${setting} = '${needed}'`)
  })

  test('everybody gets the same answers with every odd setting that is not refused', async () => {
    const file = join(folder, 'payments.ndjson')
    await writeExport(db, file)
    const odd = await createTestDatabase()
    for (const setting of settingsThatWork) if (!REFUSED.has(setting.name)) await makeSetting(odd, setting)
    const plain = await createTestDatabase()
    const at = (database: TestDatabase) => {
      const connection = through(database)
      return { connection, url: urlOfDatabase({ ...database, connection }) }
    }
    expect(await useDatabase(at(odd), file)).toEqual(await useDatabase(at(plain), file))
    await Promise.all([odd.drop(), plain.drop()])
  })

  test('named statements run in transactions on any server connection, with a name only where the pooler keeps names apart', async () => {
    const names = await withPool(db, async (pool) => {
      for (let n = 0; n < 6; n++) {
        const rows = await Promise.all(
          [1, 2, 3].map((value) =>
            pool.transaction((trx) => runNamed(trx, [raw('select ?::int', [value])], undefined)),
          ),
        )
        expect(rows).toEqual([[[['1']]], [[['2']]], [[['3']]]])
      }
      const { rows } = await pool.raw(`select name from pg_prepared_statements where statement = 'select $1::int'`)
      return rows.map(({ name }: { name: string }) => name)
    })
    if (pooler.keepsPrepared) expect(names).toEqual([expect.stringMatching(/^PGBOUNCER_\d+$/)])
    else expect(names).toEqual([])
  })
})
