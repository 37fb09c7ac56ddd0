import { once } from 'node:events'
import { rm } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { runCancellable } from '../../src/postgres/cancellable.ts'
import { classifyDatabaseError, type DatabaseErrorKind } from '../../src/postgres/database-error.ts'
import type { EmbeddedServer } from '../../src/postgres/embedded/embedded-server.ts'
import { createDatabase, type DatabaseOptions } from '../../src/postgres/knex.ts'
import { startTestedServer } from '../support/data/tested-server.ts'
import { PATIENCE } from '../support/patience.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

let dataDir: string
let server: EmbeddedServer
const pools: Knex[] = []

const start = async () => {
  server = await startTestedServer({ dataDir, settings: { fsync: 'off' } })
}

beforeAll(async () => {
  dataDir = await makeTempFolder('db-bad-days')
  await start()
})

afterAll(async () => {
  await Promise.all(pools.map((knex) => knex.destroy()))
  await server.stop()
  await rm(dataDir, { recursive: true, force: true })
})

function open(options: DatabaseOptions = {}): Knex {
  const knex = createDatabase(server.connection(), options)
  pools.push(knex)
  return knex
}

async function kindOf(query: PromiseLike<unknown>): Promise<DatabaseErrorKind | 'no error'> {
  try {
    await query
    return 'no error'
  } catch (error) {
    return classifyDatabaseError(error)
  }
}

async function works(knex: Knex): Promise<boolean> {
  const { rows } = await knex.raw('select 1 as one')
  return rows[0].one === 1
}

/** The pid of a server process that is restarted by each crash recovery. */
async function checkpointerOf(knex: Knex): Promise<number> {
  const { rows } = await knex.raw(`select pid from pg_stat_activity where backend_type = 'checkpointer'`)
  expect(rows).toHaveLength(1)
  return rows[0].pid as number
}

/** Starts a query that sleeps. Its outcome is caught at once, so that a rejection is never unhandled. */
async function sleeping(knex: Knex, watcher: Knex, seconds: number): Promise<{ kind: Promise<string>; pid: number }> {
  const kind = kindOf(knex.raw(`select pg_sleep(${seconds})`))
  const pid = await vi.waitFor(async () => {
    const { rows } = await watcher.raw(`select pid from pg_stat_activity where query = 'select pg_sleep(${seconds})'`)
    expect(rows).toHaveLength(1)
    return rows[0].pid as number
  }, 5_000)
  return { kind, pid }
}

describe('slow', () => {
  test('a statement over its time limit is a timeout, and its connection can be used further', async () => {
    const knex = open({ poolMax: 1, statementTimeoutMs: 20 })
    expect(await kindOf(knex.raw('select pg_sleep(60)'))).toBe('timeout')
    // on a slow machine this may exceed so short a limit as well
    await vi.waitFor(async () => expect(await works(knex)).toBe(true), PATIENCE)
  })

  test('a full pool is unavailable, and serves again once a connection is free', async () => {
    const knex = open({ poolMax: 1, acquireTimeoutMs: 50 })
    // connecting may take longer than the wait for a free connection
    const trx = await vi.waitFor(() => knex.transaction(), PATIENCE)
    expect(await kindOf(knex.raw('select 1'))).toBe('unavailable')
    await trx.rollback()
    expect(await works(knex)).toBe(true)
  })

  test('a server that accepts the connection but never answers is unavailable', async () => {
    const silent = createServer()
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const knex = createDatabase(`postgres://a:b@127.0.0.1:${port}/c`, { acquireTimeoutMs: 50 })
    expect(await kindOf(knex.raw('select 1'))).toBe('unavailable')
    await knex.destroy()
    silent.close()
  })

  test('a stuck server process holds neither an aborted caller nor a place in the pool', async () => {
    const watcher = open()
    const knex = open({ poolMax: 1 })
    const controller = new AbortController()
    const reason = new Error('gave up')
    const query = runCancellable(knex, knex.raw('select pg_sleep(64)'), controller.signal)
    const outcome = query.then(
      () => undefined,
      (error: unknown) => error,
    )
    const pid = await vi.waitFor(async () => {
      const { rows } = await watcher.raw(`select pid from pg_stat_activity where query = 'select pg_sleep(64)'`)
      return rows[0].pid as number
    }, 5_000)
    process.kill(pid, 'SIGSTOP')
    try {
      controller.abort(reason)
      expect(await outcome).toBe(reason)
      expect(await works(knex)).toBe(true)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
  })
})

describe('down', () => {
  test('a port where nothing listens is unavailable', async () => {
    const closed = createServer()
    closed.listen(0, '127.0.0.1')
    await once(closed, 'listening')
    const { port } = closed.address() as AddressInfo
    closed.close()
    await once(closed, 'close')
    for (const host of ['127.0.0.1', 'localhost']) {
      const knex = createDatabase(`postgres://a:b@${host}:${port}/c`)
      expect(await kindOf(knex.raw('select 1'))).toBe('unavailable')
      await knex.destroy()
    }
  })

  test('a pool survives a stop and a start of the server', async () => {
    const knex = open({ poolMin: 2 })
    expect(await works(knex)).toBe(true)
    const { kind } = await sleeping(knex, knex, 65)
    await server.stop()
    expect(await kind).toBe('unavailable')
    expect(await kindOf(knex.raw('select 1'))).toBe('unavailable')
    await start()
    expect(await works(knex)).toBe(true)
  })

  test('a closed pool is unavailable', async () => {
    const knex = createDatabase(server.connection())
    await knex.destroy()
    expect(await kindOf(knex.raw('select 1'))).toBe('unavailable')
  })
})

describe('killed', () => {
  test('a query whose backend is terminated is unavailable, and the next one runs', async () => {
    const watcher = open()
    const knex = open({ poolMax: 1 })
    const { kind, pid } = await sleeping(knex, watcher, 66)
    await watcher.raw('select pg_terminate_backend(?::int)', [pid])
    expect(await kind).toBe('unavailable')
    expect(await works(knex)).toBe(true)
  })

  test('a query whose backend is killed by -9 is unavailable, and queries run again after crash recovery', async () => {
    const watcher = open()
    const knex = open({ poolMax: 1 })
    const { kind, pid } = await sleeping(knex, watcher, 67)
    const before = await checkpointerOf(watcher)
    process.kill(pid, 'SIGKILL')
    expect(await kind).toBe('unavailable')
    // until the postmaster notices the death it keeps serving, and then ends all its backends
    await vi.waitFor(async () => expect(await checkpointerOf(knex)).not.toBe(before), PATIENCE)
    expect(await works(knex)).toBe(true)
  })

  test('a query whose server is killed by -9 is unavailable, and the pool connects to the next server', async () => {
    const knex = open()
    const { kind } = await sleeping(knex, knex, 68)
    process.kill(server.pid, 'SIGKILL')
    expect(await kind).toBe('unavailable')
    await server.exited
    await start()
    expect(await works(knex)).toBe(true)
  })

  test('a transaction rejects with the error that ended it', async () => {
    const knex = open({ poolMax: 1 })
    const broken = knex.transaction((trx) => trx.raw('select pg_terminate_backend(pg_backend_pid())'))
    expect(await kindOf(broken)).toBe('unavailable')
    expect(await works(knex)).toBe(true)
  })
})

describe('conflicts', () => {
  test('of two serializable transactions that change one row, the later fails with a serialization error', async () => {
    const knex = open()
    await knex.raw('create table counters (id int primary key, n int)')
    await knex.raw('insert into counters values (1, 0), (2, 0)')
    const first = await knex.transaction({ isolationLevel: 'repeatable read' })
    const second = await knex.transaction({ isolationLevel: 'repeatable read' })
    await second.raw('select * from counters')
    await first.raw('update counters set n = 1 where id = 1')
    await first.commit()
    expect(await kindOf(second.raw('update counters set n = 2 where id = 1'))).toBe('serialization')
    await second.rollback()
  })

  test('a deadlock is a serialization error of one transaction', async () => {
    const knex = open()
    const add = (id: number) => `update counters set n = n + 1 where id = ${id}`
    const one = await knex.transaction()
    const two = await knex.transaction()
    await one.raw(add(1))
    await two.raw(add(2))
    const crossing = [kindOf(one.raw(add(2))), kindOf(two.raw(add(1)))]
    const loser = await Promise.any(
      crossing.map(async (kind, index) => {
        if ((await kind) === 'serialization') return index
        throw new Error('won')
      }),
    )
    await (loser === 0 ? one : two).rollback()
    expect(await crossing[1 - loser]).toBe('no error')
    await (loser === 0 ? two : one).rollback()
  })

  test('a duplicate key is unique', async () => {
    expect(await kindOf(open().raw('insert into counters values (1, 1)'))).toBe('unique')
  })

  test('a lock that is not available at once is a timeout', async () => {
    const knex = open()
    const holder = await knex.transaction()
    await holder.raw('select from counters where id = 1 for update')
    expect(await kindOf(knex.raw('select from counters where id = 1 for update nowait'))).toBe('timeout')
    await holder.rollback()
  })

  test('a syntax error is other', async () => {
    expect(await kindOf(open().raw('selec 1'))).toBe('other')
  })
})

describe('values', () => {
  test('are read as types that lose nothing', async () => {
    const { rows } = await open().raw(`select
      9007199254740993::int8 as big, array[9007199254740993, null]::int8[] as bigs, 1.10::numeric as amount, 7::int4 as small,
      '2026-11-20 10:35:00.123456+02'::timestamptz as at, array['2026-11-20 10:35:00Z']::timestamptz[] as times,
      '\\x00ff'::bytea as bytes, '2026-11-20'::date as day, '{"a":[1]}'::jsonb as json,
      '00000000-0000-8000-8000-000000000001'::uuid as id, true as yes, null::int8 as nothing, count(*) from generate_series(1, 3)`)
    expect(rows).toEqual([
      {
        big: 9_007_199_254_740_993n,
        bigs: [9_007_199_254_740_993n, null],
        amount: '1.10',
        small: 7,
        at: new Date('2026-11-20T08:35:00.123Z'),
        times: [new Date('2026-11-20T10:35:00Z')],
        bytes: Buffer.from([0, 255]),
        day: '2026-11-20',
        json: { a: [1] },
        id: '00000000-0000-8000-8000-000000000001',
        yes: true,
        nothing: null,
        count: 3n,
      },
    ])
  })

  test('connections have the application name and UTC', async () => {
    const { rows } = await open({ applicationName: 'who' }).raw(
      `select current_setting('application_name') as name, current_setting('TimeZone') as zone, current_setting('plan_cache_mode') as plans`,
    )
    expect(rows).toEqual([{ name: 'who', zone: 'UTC', plans: 'auto' }])
  })

  test('are bound from bigint and Date', async () => {
    const at = new Date('2026-11-20T10:35:00.123Z')
    const { rows } = await open().raw('select ?::int8 as big, ?::timestamptz as at', [(2n ** 62n) as never, at])
    expect(rows).toEqual([{ big: 2n ** 62n, at }])
  })
})
