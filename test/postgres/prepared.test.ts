import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { inTransaction } from '../../src/postgres/cancellable.ts'
import { createDatabase, type DatabaseOptions } from '../../src/postgres/knex.ts'
import { runPrepared, runPreparedText, runPreparedTexts } from '../../src/postgres/prepared.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let db: TestDatabase
let knex: Knex
const pools: Knex[] = []

/** One connection, so that the next statement meets whatever one leaves behind. */
function openPool(options: DatabaseOptions = {}): Knex {
  const pool = createDatabase(db.connection, { poolMax: 1, applicationName: 'preparing', ...options })
  pools.push(pool)
  return pool
}

beforeAll(async () => {
  db = await createTestDatabase()
  await db.knex.raw(`create table notes (n int, at timestamptz(3), body jsonb, bytes bytea, big bigint)`)
  knex = openPool()
})

afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.destroy()))
  await db.drop()
})

const reason = new Error('the caller hung up')

async function preparedOn(pool: Knex): Promise<string[]> {
  const { rows } = await pool.raw(
    `select statement from pg_prepared_statements where name like 'w\\_%' order by prepare_time`,
  )
  return rows.map(({ statement }: { statement: string }) => statement)
}

const one = (sql: string, bindings: readonly unknown[] = []) => ({ sql, bindings })

describe('a prepared statement', () => {
  test('returns the rows that Knex returns, or their texts', async () => {
    const statement = one(
      `select 1 as n, '2026-03-01 12:00:05.5+00'::timestamptz(3) as at, '{"a":[1]}'::jsonb as body,
        '\\x0102'::bytea as bytes, 9007199254740993 as big, null as nothing, 1.50::numeric as decimal, true as yes`,
    )
    const { rows } = await knex.raw(statement.sql)
    expect(await runPrepared(knex, statement, undefined)).toEqual(rows)
    expect(await runPrepared(knex, statement, undefined)).toEqual(rows)
    expect(await runPreparedText(knex, statement, undefined)).toEqual([
      ['1', '2026-03-01 12:00:05.5+00', '{"a": [1]}', '\\x0102', '9007199254740993', null, '1.50', 't'],
    ])
  })

  test.each([
    ['text', 'a "quoted" \\ text, {with} all', 'text'],
    ['null', null, 'text'],
    ['number', -1.5, 'numeric'],
    ['bigint', 2n ** 62n, 'bigint'],
    ['boolean', true, 'boolean'],
    ['date', new Date('2026-03-01T12:00:05.123Z'), 'timestamptz'],
    ['bytes', Buffer.from('00ff5c22', 'hex'), 'bytea'],
    ['text array', ['a', 'b "c"', '\\', '', 'NULL', '{}', 'ä,'], 'text[]'],
    ['number array', [1, 2], 'int[]'],
    ['nested array', [['a'], ['b']], 'text[]'],
    ['bytes array', [Buffer.from('0102', 'hex'), Buffer.from('5c22', 'hex')], 'bytea[]'],
    ['array with null', [null, 'x'], 'text[]'],
    ['empty array', [], 'text[]'],
    ['object', { a: ['?', null] }, 'jsonb'],
  ])('binds a %s as Knex does', async (_, value, type) => {
    const sql = `select ?::${type} as value`
    const { rows } = await knex.raw(sql, [value as Knex.RawBinding])
    expect(await runPrepared(knex, one(sql, [value]), undefined)).toEqual(rows)
  })

  test('refuses undefined as a parameter', async () => {
    await expect(runPrepared(knex, one('select ?::text', [undefined]), undefined)).rejects.toThrow(TypeError)
  })

  test('keeps an escaped question mark, and runs the SQL of a Knex builder', async () => {
    expect(await runPreparedText(knex, one(`select '{"a":1}'::jsonb \\? ?`, ['a']), undefined)).toEqual([['t']])
    const { sql, bindings } = knex.select(knex.raw('?::int + 1 as next', [41])).toSQL()
    expect(await runPrepared(knex, { sql, bindings }, undefined)).toEqual([{ next: 42 }])
  })

  test('is parsed once for a connection', async () => {
    const pool = openPool()
    for (const n of [1, 2, 3])
      expect(await runPreparedText(pool, one('select ?::int', [n]), undefined)).toEqual([[`${n}`]])
    expect(await preparedOn(pool)).toEqual(['select $1::int'])
  })

  test('is closed when others were used more recently', async () => {
    const pool = openPool({ maxPrepared: 3 })
    for (const n of [1, 2, 3, 1, 4, 5]) await runPreparedText(pool, one(`select ${n}`), undefined)
    expect(await preparedOn(pool)).toEqual(['select 1', 'select 4', 'select 5'])
  })

  test('has no name where none may be kept', async () => {
    const pool = openPool({ maxPrepared: 0 })
    expect(await runPrepared(pool, one('select ?::int as n', [5]), undefined)).toEqual([{ n: 5 }])
    expect(await preparedOn(pool)).toEqual([])
  })

  test('still runs after its table has changed', async () => {
    const pool = openPool()
    await db.knex.raw('create table changing as select 1 as a')
    const all = one('select * from changing')
    expect(await runPrepared(pool, all, undefined)).toEqual([{ a: 1 }])
    await db.knex.raw('alter table changing add b int default 2')
    expect(await runPrepared(pool, all, undefined)).toEqual([{ a: 1, b: 2 }])
    await db.knex.raw('alter table changing alter a type text')
    expect(await runPreparedText(pool, all, undefined)).toEqual([['1', '2']])
    expect(await runPrepared(pool, all, undefined)).toEqual([{ a: '1', b: 2 }])
  })

  test('fails with its transaction after its table has changed, and runs in the next one', async () => {
    const pool = openPool()
    await db.knex.raw('create table moving as select 1 as a')
    const all = one('select * from moving')
    await runPrepared(pool, all, undefined)
    await db.knex.raw('alter table moving add b int default 2')
    const work = () => inTransaction(pool, undefined, (trx) => runPrepared(trx, all, undefined))
    await expect(work()).rejects.toMatchObject({ code: '0A000' })
    expect(await work()).toEqual([{ a: 1, b: 2 }])
  })

  test('runs when a pooler has dropped it, or has one of its name from another client', async () => {
    const pool = openPool()
    const statement = one('select ?::int as n', [1])
    await runPrepared(pool, statement, undefined)
    await pool.raw('deallocate all')
    expect(await runPrepared(pool, statement, undefined)).toEqual([{ n: 1 }])
    expect(await runPrepared(pool, statement, undefined)).toEqual([{ n: 1 }])
    expect(await preparedOn(pool)).toEqual(['select $1::int as n'])
  })

  test('runs inside its transaction', async () => {
    await inTransaction(knex, undefined, async (trx) => {
      await runPrepared(trx, one('insert into notes (n) values (?)', [7]), undefined)
      expect(await runPrepared(trx, one('select n from notes'), undefined)).toEqual([{ n: 7 }])
      expect(await db.knex('notes')).toEqual([])
      throw reason
    }).catch((error: unknown) => expect(error).toBe(reason))
    expect(await db.knex('notes')).toEqual([])
  })

  test('rejects with the error of the server, and the connection can be used further', async () => {
    const failing = one('select 1 / ?::int', [0])
    await expect(runPrepared(knex, failing, undefined)).rejects.toMatchObject({ code: '22012' })
    await expect(runPrepared(knex, one('select nonsense'), undefined)).rejects.toMatchObject({ code: '42703' })
    expect(await runPreparedText(knex, { ...failing, bindings: [1] }, undefined)).toEqual([['1']])
  })

  test('rejects as unavailable when the server has gone', async () => {
    const pool = openPool()
    const pid = Number((await runPreparedText(pool, one('select pg_backend_pid()'), undefined))[0]?.[0])
    const sleeping = runPrepared(pool, one('select pg_sleep(70)'), undefined)
    sleeping.catch(() => {})
    await vi.waitFor(async () => expect(await statements('%pg_sleep(70)%')).toHaveLength(1), 5_000)
    await db.knex.raw('select pg_terminate_backend(?)', [pid])
    await expect(sleeping).rejects.toMatchObject({ code: '57P01' })
    expect(await runPreparedText(pool, one('select 1'), undefined)).toEqual([['1']])
  })
})

async function statements(like: string): Promise<string[]> {
  const { rows } = await db.knex.raw(
    `select query from pg_stat_activity where state = 'active' and application_name = 'preparing' and query like ?`,
    [like],
  )
  return rows.map((row: { query: string }) => row.query)
}

describe('several statements at once', () => {
  test('return in order, each seeing what was committed when it began', async () => {
    const [before, , after] = await runPreparedTexts(
      knex,
      [
        one('select count(*) from notes'),
        one('insert into notes (n) values (?)', [1]),
        one('select n from notes where n = ?', [1]),
      ],
      undefined,
    )
    expect([before, after]).toEqual([[['0']], [['1']]])
    await db.knex('notes').delete()
  })

  test('take effect all together or not at all', async () => {
    const failing = [one('insert into notes (n) values (2)'), one('select 1 / 0'), one('select 3')]
    await expect(runPreparedTexts(knex, failing, undefined)).rejects.toMatchObject({ code: '22012' })
    expect(await db.knex('notes')).toEqual([])
    expect(await runPreparedTexts(knex, [one('select 3'), one('select 3')], undefined)).toEqual([[['3']], [['3']]])
  })
})

describe('a signal', () => {
  test('ends the statement on the server, and its connection serves the next one', async () => {
    const pool = openPool()
    const pid = await runPreparedText(pool, one('select pg_backend_pid()'), undefined)
    const controller = new AbortController()
    const sleeping = runPrepared(pool, one('select pg_sleep(?)', [71]), controller.signal)
    await vi.waitFor(async () => expect(await statements('select pg_sleep($1)')).toHaveLength(1), 5_000)
    controller.abort(reason)
    await expect(sleeping).rejects.toBe(reason)
    expect(await statements('%pg_sleep%')).toEqual([])
    expect(await runPreparedText(pool, one('select pg_backend_pid()'), undefined)).toEqual(pid)
  })

  test('never cancels a later statement, in a hundred aborts at random moments', async () => {
    const pool = openPool()
    for (let round = 0; round < 100; round++) {
      const controller = new AbortController()
      const query = runPrepared(pool, one('select pg_sleep(0.004)'), controller.signal)
      const timer = setTimeout(() => controller.abort(reason), round % 10)
      await query.catch((error: unknown) => expect(error).toBe(reason))
      clearTimeout(timer)
      expect(await runPreparedText(pool, one('select ?::int', [round]), undefined)).toEqual([[`${round}`]])
    }
  })

  test('that has already fired lets nothing run', async () => {
    await expect(runPrepared(knex, one('insert into notes (n) values (3)'), AbortSignal.abort(reason))).rejects.toBe(
      reason,
    )
    expect(await db.knex('notes')).toEqual([])
  })

  test('is not needed for the statement timeout of the pool', async () => {
    const pool = openPool({ statementTimeoutMs: 30 })
    await expect(runPrepared(pool, one('select pg_sleep(72)'), undefined)).rejects.toMatchObject({ code: '57014' })
  })
})
