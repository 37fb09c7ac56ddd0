import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import {
  inTransaction,
  runCancellable,
  TransactionFailedError,
  withConnection,
} from '../../src/postgres/cancellable.ts'
import { createDatabase } from '../../src/postgres/knex.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

let db: TestDatabase
let knex: Knex

beforeAll(async () => {
  db = await createTestDatabase()
  // one connection, so that the next query meets whatever a cancelled one leaves behind
  knex = createDatabase(db.connection, { poolMax: 1, applicationName: 'cancelling' })
  await db.knex.raw('create table notes (n int)')
})

afterAll(async () => {
  await knex.destroy()
  await db.drop()
})

const reason = new Error('the caller hung up')

async function statements(like: string): Promise<string[]> {
  const { rows } = await db.knex.raw(
    `select query from pg_stat_activity where state = 'active' and application_name = 'cancelling' and query like ?`,
    [like],
  )
  return rows.map((row: { query: string }) => row.query)
}

const untilRunning = (like: string) => vi.waitFor(async () => expect(await statements(like)).toHaveLength(1), 5_000)

/** Behind a pooler the client has a number of its own. */
const connectionPid = () => withConnection(knex, undefined, async ({ processID }) => processID)

describe('a query', () => {
  test('returns the same as without a signal', async () => {
    const rows = await runCancellable(knex, knex.select(knex.raw('1 as one')), new AbortController().signal)
    expect(rows).toEqual([{ one: 1 }])
    expect((await runCancellable(knex, knex.raw('select 2 as two'), undefined)).rows).toEqual([{ two: 2 }])
  })

  test('has ended on the server when its abort settles, and its connection serves the next one', async () => {
    const pid = await connectionPid()
    const controller = new AbortController()
    const sleeping = runCancellable(knex, knex.raw('select pg_sleep(60)'), controller.signal)
    await untilRunning('%pg_sleep(60)%')
    controller.abort(reason)
    await expect(sleeping).rejects.toBe(reason)
    expect(await statements('%pg_sleep%')).toEqual([])
    expect(await connectionPid()).toBe(pid)
  })

  test('does not run when the signal has already fired', async () => {
    const query = knex('notes').insert({ n: 1 })
    await expect(runCancellable(knex, query, AbortSignal.abort(reason))).rejects.toBe(reason)
    expect(await db.knex('notes')).toEqual([])
  })

  test('does not run when the signal fires while it waits for a connection', async () => {
    const holding = await knex.transaction()
    const controller = new AbortController()
    const waiting = runCancellable(knex, knex('notes').insert({ n: 2 }), controller.signal)
    controller.abort(reason)
    await expect(waiting).rejects.toBe(reason)
    await holding.rollback()
    await connectionPid()
    expect(await db.knex('notes')).toEqual([])
  })

  test('is cancelled by AbortSignal.timeout with its TimeoutError', async () => {
    const sleeping = runCancellable(knex, knex.raw('select pg_sleep(60)'), AbortSignal.timeout(50))
    await expect(sleeping).rejects.toMatchObject({ name: 'TimeoutError' })
    expect(await statements('%pg_sleep%')).toEqual([])
  })

  test('never has its cancel hit a later query, in a hundred aborts at random moments', async () => {
    const pid = await connectionPid()
    for (let round = 0; round < 100; round++) {
      const controller = new AbortController()
      const query = runCancellable(knex, knex.raw('select pg_sleep(0.004)'), controller.signal)
      const timer = setTimeout(() => controller.abort(reason), round % 10)
      await query.catch((error: unknown) => expect(error).toBe(reason))
      clearTimeout(timer)
      expect(await connectionPid()).toBe(pid)
    }
  })

  test('rejects with its own error while the signal has not fired', async () => {
    const query = runCancellable(knex, knex.raw('select 1 / 0'), new AbortController().signal)
    await expect(query).rejects.toMatchObject({ code: '22012' })
  })

  test('inside a transaction ends the transaction but not the connection', async () => {
    const pid = await connectionPid()
    const controller = new AbortController()
    const work = knex.transaction(async (trx) => {
      await trx('notes').insert({ n: 3 })
      await runCancellable(trx, trx.raw('select pg_sleep(61)'), controller.signal)
    })
    await untilRunning('%pg_sleep(61)%')
    controller.abort(reason)
    await expect(work).rejects.toBe(reason)
    expect(await db.knex('notes')).toEqual([])
    expect(await connectionPid()).toBe(pid)
  })
})

describe('a transaction', () => {
  test('commits and returns the value of the work', async () => {
    const value = await inTransaction(knex, new AbortController().signal, async (trx) => {
      await trx('notes').insert({ n: 10 })
      return 'done'
    })
    expect(value).toBe('done')
    expect(await db.knex('notes').where({ n: 10 }).delete()).toBe(1)
  })

  test('rolls back when the work throws', async () => {
    const work = inTransaction(knex, undefined, async (trx) => {
      await trx('notes').insert({ n: 11 })
      throw reason
    })
    await expect(work).rejects.toBe(reason)
    expect(await db.knex('notes')).toEqual([])
  })

  test('is rolled back by an abort; its statement is cancelled and its connection kept', async () => {
    const pid = await connectionPid()
    const controller = new AbortController()
    const work = inTransaction(knex, controller.signal, async (trx) => {
      await trx('notes').insert({ n: 12 })
      await trx.raw('select pg_sleep(62)')
    })
    await untilRunning('%pg_sleep(62)%')
    controller.abort(reason)
    await expect(work).rejects.toBe(reason)
    expect(await statements('%pg_sleep%')).toEqual([])
    expect(await db.knex('notes')).toEqual([])
    expect(await connectionPid()).toBe(pid)
  })

  test('commits nothing when the signal fires between two statements', async () => {
    const controller = new AbortController()
    const work = inTransaction(knex, controller.signal, async (trx) => {
      await trx('notes').insert({ n: 13 })
      controller.abort(reason)
    })
    await expect(work).rejects.toBe(reason)
    expect(await db.knex('notes')).toEqual([])
  })

  test('has a statement cancelled that begins after the signal', async () => {
    const controller = new AbortController()
    const work = inTransaction(knex, controller.signal, async (trx) => {
      controller.abort(reason)
      await trx.raw('select pg_sleep(63)')
    })
    await expect(work).rejects.toBe(reason)
    expect(await statements('%pg_sleep%')).toEqual([])
  })

  test('does not begin when the signal has already fired', async () => {
    const work = vi.fn<() => Promise<void>>()
    await expect(inTransaction(knex, AbortSignal.abort(reason), work)).rejects.toBe(reason)
    expect(work).not.toHaveBeenCalled()
  })

  test('rejects where the work caught a failed statement, instead of seeming to commit', async () => {
    const work = inTransaction(knex, undefined, async (trx) => {
      await trx('notes').insert({ n: 14 })
      await trx.raw('select 1 / 0').catch(() => {})
    })
    await expect(work).rejects.toThrow(TransactionFailedError)
    expect(await db.knex('notes')).toEqual([])
  })

  test('continues after a failure inside a savepoint', async () => {
    await inTransaction(knex, undefined, async (trx) => {
      await trx('notes').insert({ n: 15 })
      await trx.transaction((inner) => inner.raw('select 1 / 0')).catch(() => {})
    })
    expect(await db.knex('notes').where({ n: 15 }).delete()).toBe(1)
  })

  test('has the isolation level asked for', async () => {
    const level = await inTransaction(
      knex,
      undefined,
      async (trx) => (await trx.raw('show transaction_isolation')).rows[0].transaction_isolation as string,
      { isolationLevel: 'repeatable read' },
    )
    expect(level).toBe('repeatable read')
  })
})
