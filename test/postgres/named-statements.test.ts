import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { inTransaction } from '../../src/postgres/cancellable.ts'
import { createDatabase, type DatabaseOptions } from '../../src/postgres/knex.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { raw, readRows } from '../../src/postgres/statement.ts'
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

/** Runs one statement. */
async function run(pool: Knex, statement: Knex.Raw, signal?: AbortSignal) {
  const [rows = []] = await runNamed(pool, [statement], signal)
  return rows
}

describe('a named statement', () => {
  test('returns the texts of the columns', async () => {
    const statement = raw(
      `select 1 as n, '2026-03-01 12:00:05.5+00'::timestamptz(3) as at, '{"a":[1]}'::jsonb as body,
        '\\x0102'::bytea as bytes, 9007199254740993 as big, null as nothing, 1.50::numeric as decimal, true as yes`,
    )
    const texts = [['1', '2026-03-01 12:00:05.5+00', '{"a": [1]}', '\\x0102', '9007199254740993', null, '1.50', 't']]
    expect(await run(knex, statement)).toEqual(texts)
    expect(await run(knex, statement)).toEqual(texts)
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
    ['object', JSON.stringify({ a: ['?', null] }), 'jsonb'],
  ])('binds a %s as Knex does', async (_, value, type) => {
    const statement = raw(`select (?::${type})::text as value`, [value as string])
    const rows = await readRows<{ value: string | null }>(knex, statement, undefined)
    expect(await run(knex, statement)).toEqual(rows.map((row) => [row.value]))
  })

  test('refuses undefined as a parameter', async () => {
    const statement = raw('select ?::text', [undefined as never])
    await expect(run(knex, statement)).rejects.toThrow('Undefined binding')
  })

  test('keeps an escaped question mark', async () => {
    expect(await run(knex, raw(`select '{"a":1}'::jsonb \\? ?`, ['a']))).toEqual([['t']])
  })

  test('is parsed once for a connection', async () => {
    const pool = openPool()
    for (const n of [1, 2, 3]) expect(await run(pool, raw('select ?::int', [n]))).toEqual([[`${n}`]])
    expect(await preparedOn(pool)).toEqual(['select $1::int'])
  })

  test('is closed when others were used more recently', async () => {
    const pool = openPool({ maxPrepared: 3 })
    for (const n of [1, 2, 3, 1, 4, 5]) await run(pool, raw(`select ${n}`))
    expect(await preparedOn(pool)).toEqual(['select 1', 'select 4', 'select 5'])
  })

  test('has no name where none may be kept', async () => {
    const pool = openPool({ maxPrepared: 0 })
    expect(await run(pool, raw('select ?::int as n', [5]))).toEqual([['5']])
    expect(await preparedOn(pool)).toEqual([])
  })

  test('still runs after its table has changed', async () => {
    const pool = openPool()
    await db.knex.raw('create table changing as select 1 as a')
    const all = raw('select * from changing')
    expect(await run(pool, all)).toEqual([['1']])
    await db.knex.raw('alter table changing add b int default 2')
    expect(await run(pool, all)).toEqual([['1', '2']])
    await db.knex.raw('alter table changing alter a type text')
    expect(await run(pool, all)).toEqual([['1', '2']])
    expect(await run(pool, all)).toEqual([['1', '2']])
  })

  test('fails with its transaction after its table has changed, and runs in the next one', async () => {
    const pool = openPool()
    await db.knex.raw('create table moving as select 1 as a')
    const all = raw('select * from moving')
    await run(pool, all)
    await db.knex.raw('alter table moving add b int default 2')
    const work = () => inTransaction(pool, undefined, (trx) => run(trx, all))
    await expect(work()).rejects.toMatchObject({ code: '0A000' })
    expect(await work()).toEqual([['1', '2']])
  })

  test('runs when a pooler has dropped it, or has one of its name from another client', async () => {
    const pool = openPool()
    const statement = raw('select ?::int as n', [1])
    await run(pool, statement)
    await pool.raw('deallocate all')
    expect(await run(pool, statement)).toEqual([['1']])
    expect(await run(pool, statement)).toEqual([['1']])
    expect(await preparedOn(pool)).toEqual(['select $1::int as n'])
  })

  test('runs inside its transaction', async () => {
    await inTransaction(knex, undefined, async (trx) => {
      await run(trx, raw('insert into notes (n) values (?)', [7]))
      expect(await run(trx, raw('select n from notes'))).toEqual([['7']])
      expect(await db.knex('notes')).toEqual([])
      throw reason
    }).catch((error: unknown) => expect(error).toBe(reason))
    expect(await db.knex('notes')).toEqual([])
  })

  test('rejects with the error of the server, and the connection can be used further', async () => {
    const failing = raw('select 1 / ?::int', [0])
    await expect(run(knex, failing)).rejects.toMatchObject({ code: '22012' })
    await expect(run(knex, raw('select nonsense'))).rejects.toMatchObject({ code: '42703' })
    expect(await run(knex, raw('select 1 / ?::int', [1]))).toEqual([['1']])
  })

  test('rejects as unavailable when the server has gone', async () => {
    const pool = openPool()
    const pid = Number((await run(pool, raw('select pg_backend_pid()')))[0]?.[0])
    const sleeping = run(pool, raw('select pg_sleep(70)'))
    sleeping.catch(() => {})
    await vi.waitFor(async () => expect(await statements('%pg_sleep(70)%')).toHaveLength(1), 5_000)
    await db.knex.raw('select pg_terminate_backend(?::int)', [pid])
    await expect(sleeping).rejects.toMatchObject({ code: '57P01' })
    expect(await run(pool, raw('select 1'))).toEqual([['1']])
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
    const [before, , after] = await runNamed(
      knex,
      [
        raw('select count(*) from notes'),
        raw('insert into notes (n) values (?)', [1]),
        raw('select n from notes where n = ?', [1]),
      ],
      undefined,
    )
    expect([before, after]).toEqual([[['0']], [['1']]])
    await db.knex('notes').delete()
  })

  test('take effect all together or not at all', async () => {
    const failing = [raw('insert into notes (n) values (2)'), raw('select 1 / 0'), raw('select 3')]
    await expect(runNamed(knex, failing, undefined)).rejects.toMatchObject({ code: '22012' })
    expect(await db.knex('notes')).toEqual([])
    expect(await runNamed(knex, [raw('select 3'), raw('select 3')], undefined)).toEqual([[['3']], [['3']]])
  })
})

describe('a signal', () => {
  test('ends the statement on the server, and its connection serves the next one', async () => {
    const pool = openPool()
    const pid = await run(pool, raw('select pg_backend_pid()'))
    const controller = new AbortController()
    const sleeping = run(pool, raw('select pg_sleep(?)', [71]), controller.signal)
    await vi.waitFor(async () => expect(await statements('select pg_sleep($1)')).toHaveLength(1), 5_000)
    controller.abort(reason)
    await expect(sleeping).rejects.toBe(reason)
    expect(await statements('%pg_sleep%')).toEqual([])
    expect(await run(pool, raw('select pg_backend_pid()'))).toEqual(pid)
  })

  test('never cancels a later statement, in a hundred aborts at random moments', async () => {
    const pool = openPool()
    for (let round = 0; round < 100; round++) {
      const controller = new AbortController()
      const query = run(pool, raw('select pg_sleep(0.004)'), controller.signal)
      const timer = setTimeout(() => controller.abort(reason), round % 10)
      await query.catch((error: unknown) => expect(error).toBe(reason))
      clearTimeout(timer)
      expect(await run(pool, raw('select ?::int', [round]))).toEqual([[`${round}`]])
    }
  })

  test('that has already fired lets nothing run', async () => {
    await expect(run(knex, raw('insert into notes (n) values (3)'), AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(await db.knex('notes')).toEqual([])
  })

  test('is not needed for the statement timeout of the pool', async () => {
    const pool = openPool({ statementTimeoutMs: 30 })
    await expect(run(pool, raw('select pg_sleep(72)'))).rejects.toMatchObject({ code: '57014' })
  })
})
