import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createDatabase } from '../../src/postgres/knex.ts'
import { type LockWatch, watchLocks } from '../../src/postgres/lock-watch.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { recordLogs } from '../support/logs.ts'
import { PATIENCE } from '../support/patience.ts'

let database: TestDatabase
let other: Knex
let watch: LockWatch
const logger = recordLogs()

beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 1 })
  other = createDatabase(database.direct, { applicationName: 'nightly report' })
  const ownKnex = createDatabase(database.direct)
  watch = watchLocks({ knex: database.knex, ownKnex, logger, afterMs: 100 })
})
afterAll(async () => {
  await watch?.stop()
  await other?.destroy()
  await database?.drop()
})

/** Locks the payments in another session, so that a read of the only connection waits. */
async function lockPayments() {
  const holder = await other.transaction()
  const { rows } = await holder.raw('select pg_backend_pid() as pid')
  await holder.raw('lock table payments in access exclusive mode')
  const waiting = database.knex.raw('select count(*) as payments from payments')
  return { pid: rows[0].pid as number, holder, waiting: waiting.then((read) => read.rows as unknown) }
}

test('names who holds the lock that all connections wait for, once a minute', async () => {
  const first = await lockPayments()
  await vi.waitFor(() => expect(logger.records).toHaveLength(1), PATIENCE)
  await first.holder.commit()
  expect(await first.waiting).toEqual([{ payments: 0n }])
  const second = await lockPayments()
  // The locks are looked at several times meanwhile.
  await second.holder.raw('select pg_sleep(0.5)')
  await second.holder.commit()
  expect(await second.waiting).toEqual([{ payments: 0n }])
  expect(logger.records).toEqual([
    {
      level: 'warn',
      message: 'statements wait for a lock that another session holds: end its transaction',
      fields: {
        holder: {
          pid: first.pid,
          applicationName: 'nightly report',
          state: 'idle in transaction',
          openSeconds: expect.any(Number),
          waiting: 1,
          waitedSeconds: expect.any(Number),
        },
      },
    },
  ])
})
