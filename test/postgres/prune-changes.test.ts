import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { inTransaction } from '../../src/postgres/cancellable.ts'
import { acquireLease, releaseLease } from '../../src/store/leases-repository.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { endPruning, pruneDueChanges } from '../../src/store/prune-changes.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { changePayments, insertPayments } from '../support/data/write-payments.ts'

const DAY_MS = 86_400_000
const START = new Date('2026-11-01T00:00:00Z')
const day = (n: number) => new Date(START.getTime() + n * DAY_MS)

let database: TestDatabase
let knex: Knex
beforeAll(async () => {
  database = await createTestDatabase()
  knex = database.knex
})
afterAll(() => database.drop())

/** Makes one change of an account on each of the days. */
async function change(accountId: number, days: readonly number[]): Promise<void> {
  for (const n of days) {
    await inTransaction(knex, undefined, async (trx) => {
      const locked = await lockAccount(trx, accountId, day(n))
      const row = {
        account_id: accountId,
        id: '00000000-0000-4000-8000-000000000001',
        status: 3,
        final: true,
        imported: true,
        timestamp: START,
        updated_at: day(n),
        network: 'BASE',
        currency: 'USDC-BASE',
        currency_symbol: 'USDC',
        amount: '1',
      }
      const insert = trx('payments').insert(row).onConflict(['account_id', 'id'])
      const known = await trx('payments').where({ account_id: accountId }).first()
      if (known === undefined) await insertPayments(locked, insert.ignore().toSQL())
      else await changePayments(locked, insert.merge(['updated_at']).toSQL())
    })
  }
}

async function kept(accountId: number) {
  const { pruned_change: pruned, last_change: last } = await knex('account_changes')
    .where({ account_id: accountId })
    .first()
  const changes = await knex('payment_changes').where({ account_id: accountId }).orderBy('change').pluck('change')
  return { pruned, last, changes }
}

it('removes changes older than seven days, in steps, up to the first change that is kept', async () => {
  await change(1, [0, 0.5, 1, 2, 3, 4])
  // The last change is of a process whose clock was behind: it is kept, because the one before it is.
  await change(2, [0, 3, 1])
  await change(3, [9])
  const prune = (n: number) => pruneDueChanges({ knex, now: () => day(n), owner: 'one', step: 2 })

  expect(await prune(7)).toBe(0)
  expect(await prune(9)).toBe(4)
  expect(await kept(1)).toEqual({ pruned: 3n, last: 6n, changes: [4n, 5n, 6n] })
  expect(await kept(2)).toEqual({ pruned: 1n, last: 3n, changes: [2n, 3n] })
  expect(await prune(9)).toBe(0)
  expect(await prune(12)).toBe(5)
  expect(await kept(1)).toEqual({ pruned: 6n, last: 6n, changes: [] })
  expect(await kept(2)).toEqual({ pruned: 3n, last: 3n, changes: [] })
  expect(await kept(3)).toEqual({ pruned: 0n, last: 1n, changes: [1n] })
  // The numbers go on.
  await change(1, [13])
  expect(await kept(1)).toEqual({ pruned: 6n, last: 7n, changes: [7n] })
})

it('runs in one process at a time, and in another when that one stops', async () => {
  await change(4, [0])
  const other = { name: 'prune:payment_changes', owner: 'other' }
  await releaseLease(knex, { ...other, owner: 'one' })
  expect(await acquireLease(knex, other, 60_000)).toBe(true)
  expect(await pruneDueChanges({ knex, now: () => day(8), owner: 'mine' })).toBe(0)

  expect(await pruneDueChanges({ knex, now: () => day(8), owner: 'other' })).toBe(1)
  expect((await kept(4)).changes).toEqual([])
  await endPruning(knex, 'other')
  expect(await acquireLease(knex, { ...other, owner: 'mine' }, 60_000)).toBe(true)
})
