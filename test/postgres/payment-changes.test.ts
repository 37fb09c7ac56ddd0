import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { inTransaction } from '../../src/postgres/cancellable.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { changePayments, insertPayments } from '../support/data/write-payments.ts'

let database: TestDatabase
let knex: Knex
beforeAll(async () => {
  database = await createTestDatabase()
  knex = database.knex
})
afterAll(() => database.drop())

const NOW = new Date('2026-11-20T12:00:00.123Z')

function rowOf(accountId: number, n: number, more: object = {}) {
  return {
    account_id: accountId,
    id: `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`,
    imported: true,
    final: true,
    status: 3,
    timestamp: new Date('2026-11-01T00:00:00Z'),
    updated_at: NOW,
    network: 'BASE',
    currency: 'USDC-BASE',
    currency_symbol: 'USDC',
    amount: '5.50',
    ...more,
  }
}

const changes = (accountId: number) =>
  knex('payment_changes')
    .where({ account_id: accountId })
    .orderBy('change')
    .select('change', 'kind', 'payment_id', 'at', 'old')
const statistics = (accountId: number) =>
  knex('payment_statistics')
    .where({ account_id: accountId })
    .orderBy(['network', 'status', 'type'])
    .select('network', 'type', 'status', 'n', 'first_at', 'last_at')

describe('writing payments', () => {
  it('logs inserts, updates and deletes in order, with the old row, and counts them', async () => {
    const account = 1
    const rows = [rowOf(account, 1), rowOf(account, 2, { type: 0, timestamp: new Date('2026-11-03T00:00:00Z') })]
    await inTransaction(knex, undefined, async (trx) => {
      const locked = await lockAccount(trx, account, NOW)
      expect(await insertPayments(locked, knex('payments').insert(rows).toSQL())).toHaveLength(2)
    })
    const [first, second] = rows as [(typeof rows)[0], (typeof rows)[0]]
    const before = await knex('payments')
      .select(knex.raw('to_jsonb(payments) as image'))
      .where({ id: first.id })
      .first()
    await inTransaction(knex, undefined, async (trx) => {
      const locked = await lockAccount(trx, account, NOW)
      const where = { account_id: account }
      // The second update changes nothing.
      expect(await changePayments(locked, knex('payments').where(where).update({ status: 2 }).toSQL())).toHaveLength(2)
      expect(await changePayments(locked, knex('payments').where(where).update({ status: 2 }).toSQL())).toHaveLength(2)
      const upsert = knex('payments')
        .insert([{ ...first, status: 4, network: 'POLYGON' }, rowOf(account, 3)])
        .onConflict(['account_id', 'id'])
        .merge(['status', 'network'])
      expect(await changePayments(locked, upsert.toSQL())).toHaveLength(2)
      const gone = knex('payments')
        .where({ ...where, id: second.id })
        .delete()
      expect(await changePayments(locked, gone.toSQL())).toEqual([second.id])
    })
    const log = await changes(account)
    expect(log.map(({ change, kind }) => [change, kind])).toEqual([
      [1n, 1],
      [2n, 1],
      [3n, 2],
      [4n, 2],
      [5n, 2],
      [6n, 1],
      [7n, 3],
    ])
    expect(log[0].old).toBeNull()
    // the second transaction has the later stamp, though its clock says the same
    const [of, later] = [log[0].at, log[6].at]
    expect(later.getTime()).toBeGreaterThan(of.getTime())
    expect(log.map(({ at }) => at)).toEqual([of, of, later, later, later, later, later])
    const stamps = await knex('payments').where({ account_id: account }).pluck('changed_at')
    expect(stamps).toEqual([later, later])
    expect(await knex('removed_payments').where({ account_id: account })).toEqual([
      { account_id: account, changed_at: later, id: second.id },
    ])
    expect(log.find(({ kind, payment_id }) => kind === 2 && payment_id === first.id).old).toEqual(before.image)
    expect(log[6]).toMatchObject({ payment_id: second.id, old: { status: 2, type: 0, amount: 5.5 } })
    expect(await statistics(account)).toEqual([
      stat('BASE', -1, 2, 0n, '01', '01'),
      stat('BASE', 0, 2, 0n, '03', '03'),
      stat('BASE', -1, 3, 1n, '01', '01'),
      stat('BASE', 0, 3, 0n, '03', '03'),
      stat('POLYGON', -1, 4, 1n, '01', '01'),
    ])
    expect(await knex('account_changes').where({ account_id: account })).toEqual([
      { account_id: account, last_change: 7n, last_changed_at: later, pruned_change: 0n },
    ])
  })
})

it('a combination keeps the number under which it was first written', async () => {
  const account = 2
  const rows = [rowOf(account, 1), rowOf(account, 2, { status: 2 })]
  const seen = () =>
    knex('payment_statistics').where({ account_id: account }).orderBy('status').select('status', 'n', 'seq')
  const write = (change: (trx: Parameters<typeof changePayments>[0]) => Promise<unknown>) =>
    inTransaction(knex, undefined, async (trx) => change(await lockAccount(trx, account, NOW)))
  await write((locked) => insertPayments(locked, knex('payments').insert(rows).toSQL()))
  const [, first] = await seen()
  expect(first).toMatchObject({ status: 3, n: 1n })

  await write((locked) => insertPayments(locked, knex('payments').insert(rowOf(account, 3)).toSQL()))
  expect((await seen())[1]).toMatchObject({ n: 2n, seq: first.seq })
  await write((locked) =>
    changePayments(locked, knex('payments').where({ account_id: account, status: 3 }).delete().toSQL()),
  )
  expect((await seen())[1]).toMatchObject({ n: 0n, seq: first.seq })
})

function stat(network: string, type: number, status: number, n: bigint, first: string, last: string) {
  const day = (text: string) => new Date(`2026-11-${text}T00:00:00Z`)
  return { network, type, status, n, first_at: day(first), last_at: day(last) }
}
