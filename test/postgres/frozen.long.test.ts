/**
 * A pool whose server hangs: its process is stopped by SIGSTOP, or the way to it passes nothing on. Sockets stay open, so nothing is reported. A server
 * that is down: bad-days.test.ts.
 */
import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { inTransaction, readPromptly, runCancellable, withConnection } from '../../src/postgres/cancellable.ts'
import { copyRows } from '../../src/postgres/copy-rows.ts'
import { classifyDatabaseError, NoAnswerError } from '../../src/postgres/database-error.ts'
import { createDatabase, type DatabaseOptions } from '../../src/postgres/knex.ts'
import { runNamed } from '../../src/postgres/named-statements.ts'
import { raw } from '../../src/postgres/statement.ts'
import { liftTimeouts, runWithoutTimeouts } from '../../src/postgres/without-timeouts.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { clientPids, freeze, pidOf } from '../support/data/freeze.ts'
import { type SilentProxy, startSilentProxy } from '../support/data/silent-proxy.ts'
import { PATIENCE } from '../support/patience.ts'

/** The server's own limit for a statement. Ours is five seconds later. */
const STATEMENT_MS = 500
const OURS_MS = STATEMENT_MS + 5_000

let db: TestDatabase
const closing: (() => Promise<void> | void)[] = []

beforeAll(async () => {
  // one connection: the last test counts those of others
  db = await createTestDatabase({ poolMax: 1 })
  await db.knex.raw('create table notes (n int)')
})
afterAll(async () => {
  for (const close of closing.toReversed()) await close()
  await db.drop()
})

function open(options: DatabaseOptions = {}): Knex {
  const knex = createDatabase(db.connection, { poolMax: 1, statementTimeoutMs: STATEMENT_MS, ...options })
  closing.push(() => knex.destroy())
  return knex
}

/** Stops the process of a pool's one connection. */
async function hang(knex: Knex): Promise<() => void> {
  const thaw = freeze([await pidOf(knex)])
  closing.push(thaw)
  return thaw
}

async function failureOf(work: PromiseLike<unknown>): Promise<unknown> {
  try {
    return await work
  } catch (error) {
    return error
  }
}

async function works(knex: Knex): Promise<boolean> {
  const { rows } = await knex.raw('select 1 as one')
  return rows[0].one === 1
}

const STATEMENTS: [name: string, run: (knex: Knex) => PromiseLike<unknown>][] = [
  ['a raw statement', (knex) => knex.raw('select 1')],
  ['a builder', (knex) => knex('notes').insert({ n: 1 })],
  ['a named statement', (knex) => runNamed(knex, [raw('select n from notes')], undefined)],
  [
    'a batch',
    (knex) =>
      runNamed(
        knex,
        [1, 2].map(() => raw('select 1')),
        undefined,
      ),
  ],
  ['the begin of a transaction', (knex) => knex.transaction(async () => {})],
  ['the begin of a transaction that may be cancelled', (knex) => inTransaction(knex, undefined, async () => {})],
]

const WITHIN: [name: string, run: (trx: Knex.Transaction) => PromiseLike<unknown>][] = [
  ['a statement', (trx) => trx.raw('select 1')],
  ['a named statement', (trx) => runNamed(trx, [raw('select n from notes')], undefined)],
  ['rows that are copied in', (trx) => copyRows(trx, { table: 'notes', columns: ['n'] }, [[1], [2]])],
  ['a savepoint', (trx) => trx.transaction(async () => {})],
]

describe.concurrent('a server process that hangs', () => {
  test.for(STATEMENTS)(
    'ends %s after its limit, and another connection takes its place',
    async ([, run], { expect }) => {
      const knex = open()
      const thaw = await hang(knex)
      const startedMs = performance.now()
      const failure = await failureOf(run(knex))
      const tookMs = performance.now() - startedMs
      expect(failure).toBeInstanceOf(NoAnswerError)
      expect(classifyDatabaseError(failure)).toBe('unavailable')
      expect(tookMs).toBeGreaterThanOrEqual(OURS_MS - 100)
      expect(tookMs).toBeLessThan(OURS_MS + 3_000)
      expect(await works(knex)).toBe(true)
      thaw()
    },
  )

  test.for(WITHIN)('ends a transaction at %s, and nothing of it is stored', async ([, run], { expect }) => {
    const knex = open()
    let thaw = () => {}
    const work = inTransaction(knex, undefined, async (trx) => {
      await trx('notes').insert({ n: 7 })
      thaw = await hang(trx)
      await run(trx)
    })
    expect(await failureOf(work)).toBeInstanceOf(NoAnswerError)
    expect(await works(knex)).toBe(true)
    thaw()
    expect(await db.knex('notes').where({ n: 7 })).toEqual([])
  })

  test('ends a transaction at its commit, of which nobody knows then whether it took effect', async ({ expect }) => {
    const knex = open()
    const work = inTransaction(knex, undefined, async (trx) => void (await hang(trx)))
    expect(await failureOf(work)).toBeInstanceOf(NoAnswerError)
    expect(await works(knex)).toBe(true)
  })

  test('ends no later than its caller gives up, by two seconds', async ({ expect }) => {
    const knex = open({ statementTimeoutMs: 60_000 })
    await hang(knex)
    const reason = new Error('gave up')
    const controller = new AbortController()
    setTimeout(() => controller.abort(reason), 100)
    const startedMs = performance.now()
    expect(await failureOf(runCancellable(knex, knex.raw('select 1'), controller.signal))).toBe(reason)
    expect(performance.now() - startedMs).toBeLessThan(5_000)
    expect(await works(knex)).toBe(true)
  })

  test('costs a read that many wait for a quarter of a second', async ({ expect }) => {
    const knex = open({ poolMax: 2 })
    await hang(knex)
    const read = (signal: AbortSignal) => runCancellable(knex, knex.raw('select 2 as two'), signal)
    const startedMs = performance.now()
    expect((await readPromptly(read, 10_000)).rows).toEqual([{ two: 2 }])
    expect(performance.now() - startedMs).toBeLessThan(2_000)
  })

  test('does not hold up the end of the pool that it is idle in', async ({ expect }) => {
    const knex = createDatabase(db.connection, { poolMax: 1 })
    await hang(knex)
    const startedMs = performance.now()
    await knex.destroy()
    expect(performance.now() - startedMs).toBeLessThan(3_000)
  })
})

describe.concurrent('slow is not hung', () => {
  const PAUSE_S = OURS_MS / 1_000 + 1
  const LIFTED: [name: string, run: (knex: Knex) => Promise<unknown>][] = [
    [
      'in a transaction',
      (knex) =>
        knex.transaction(async (trx) => {
          await liftTimeouts(trx)
          await trx.raw(`select pg_sleep(${PAUSE_S})`)
        }),
    ],
    [
      'outside of one',
      (knex) =>
        withConnection(knex, undefined, (connection) =>
          runWithoutTimeouts(knex, connection, `do $$ begin perform pg_sleep(${PAUSE_S}); end $$`),
        ),
    ],
  ]

  test.for(LIFTED)(
    'a statement whose limits are lifted %s may take longer, and the next may not',
    async ([, run], { expect }) => {
      const knex = open()
      await run(knex)
      expect(classifyDatabaseError(await failureOf(knex.raw('select pg_sleep(60)')))).toBe('timeout')
      await hang(knex)
      expect(await failureOf(knex.raw('select 1'))).toBeInstanceOf(NoAnswerError)
    },
  )

  test('rows that keep coming are not broken off, however long they take', async ({ expect }) => {
    const knex = open({ statementTimeoutMs: 1_000 })
    await knex.raw('set statement_timeout = 0')
    const { rows } = await knex.raw(`select repeat('x', 20000) as text, pg_sleep(0.5) from generate_series(1, 16)`)
    expect(rows).toHaveLength(16)
  })
})

describe('a way to the server that passes nothing on', () => {
  let proxy: SilentProxy

  beforeAll(async () => {
    proxy = await startSilentProxy(db.direct)
    closing.push(() => proxy.stop())
  })

  const through = (options: DatabaseOptions = {}) => {
    const { host, port } = proxy
    const knex = createDatabase(
      { ...db.direct, host, port },
      { poolMax: 2, statementTimeoutMs: STATEMENT_MS, ...options },
    )
    closing.push(() => knex.destroy())
    return knex
  }

  test('ends statements and new connections in time; the pool works again when it does, and no socket is left', async () => {
    const knex = through({ acquireTimeoutMs: 1_000 })
    expect(await works(knex)).toBe(true)
    const before = proxy.connections()
    proxy.silence()
    const failures = await Promise.all([1, 2, 3].map(() => failureOf(knex.raw('select 1'))))
    expect(failures.map(classifyDatabaseError)).toEqual(['unavailable', 'unavailable', 'unavailable'])
    proxy.resume()
    await expect.poll(() => failureOf(works(knex))).toBe(true)
    await expect.poll(() => proxy.connections()).toBeLessThanOrEqual(before + 1)
  })

  test('an error that comes without the word that the server is ready does not go back to the pool', async () => {
    const knex = through()
    const pid = await pidOf(knex)
    proxy.silenceFrom(Buffer.from([0x5a, 0, 0, 0, 5, 0x49])) // ReadyForQuery, idle
    const failure = await failureOf(runCancellable(knex, knex.raw('select 1 / 0'), undefined))
    expect(failure).toMatchObject({ code: '22012' })
    proxy.resume()
    expect(await pidOf(knex)).not.toBe(pid)
  })

  test('the same of a statement whose caller does not look at the connection', async () => {
    const knex = through({ poolMax: 1 })
    const pid = await pidOf(knex)
    proxy.silenceFrom(Buffer.from([0x5a, 0, 0, 0, 5, 0x49]))
    expect(await failureOf(knex.raw('select 1 / 0'))).toMatchObject({ code: '22012' })
    const opened = proxy.opened()
    const next = pidOf(knex)
    await expect.poll(() => proxy.opened(), PATIENCE).toBe(opened + 1)
    proxy.resume()
    expect(await next).not.toBe(pid)
  })
})

test('nothing of all this is left on the server', async () => {
  for (const close of closing.splice(0).toReversed()) await close()
  await expect.poll(() => clientPids(db.knex), PATIENCE).toEqual([])
})
