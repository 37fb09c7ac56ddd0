import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FilterValues } from '../../src/search/filter/search-fields.ts'
import { batchStatement, createWatchRepository, type WatchQuery } from '../../src/search/sql/watch-repository.ts'
import { type LockedAccount, lockAccount } from '../../src/store/payment-changes.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { insertBySql } from '../support/data/search-payments.ts'
import { testedServer } from '../support/data/tested-server.ts'
import { changePayments } from '../support/data/write-payments.ts'

// Batches of the log, on 20,000 changes of two accounts.

let database: TestDatabase

const INSERT = `insert into payments (account_id, id, status, final, imported, timestamp, updated_at, network, currency, currency_symbol, amount,
    amount_in_usd, fees)
  select ACCOUNT, lpad(to_hex(n), 32, '0')::uuid, 3, true, true, timestamp '2026-01-01' + n * interval '1 minute', now(), 'BASE', 'USDC-BASE',
    'USDC', n, n, case when n % 1000 = 0 then jsonb_build_array(repeat('x', 50000)) else '[]' end from generate_series(1, 7000) n`

beforeAll(async () => {
  database = await createTestDatabase()
  for (const account of [1, 2]) await insertBySql(database.knex, account, INSERT.replace('ACCOUNT', String(account)))
  for (const account of [1, 2]) {
    await inOrder(account, 'update payments set status = 1 where account_id = ? and amount > 4000', changePayments)
  }
  await database.knex.raw('analyze')
})
afterAll(() => database.drop())

const inOrder = (accountId: number, sql: string, write: typeof changePayments) =>
  database.knex.transaction(async (trx) => {
    const account: LockedAccount = await lockAccount(trx, accountId, new Date())
    await write(account, { sql, bindings: [accountId] })
  })

const query = (filter: FilterValues, after: bigint, sizes: Partial<WatchQuery> = {}): WatchQuery => ({
  filter: { accountId: 1, ...filter },
  after,
  changes: 1_000,
  events: 64,
  bytes: 64 * 1024,
  ...sizes,
})

const read = (...asked: Parameters<typeof query>) => createWatchRepository(database.knex).read(query(...asked))

interface PlanNode {
  readonly 'Index Name'?: string
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Actual Rows'?: number
  readonly 'Actual Loops'?: number
  readonly Plans?: readonly PlanNode[]
}

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)]

test.skipIf(testedServer.isCitus).each<[string, FilterValues]>([
  ['all', {}],
  ['some', { status: ['PENDING'], minAmount: '4500' }],
  ['none', { network: ['POLYGON'] }],
])('a batch of %s reads by indexes alone, and no more of the log than its range', async (_, filter) => {
  for (const mode of ['force_custom_plan', 'force_generic_plan']) {
    const nodes = await database.knex.transaction(async (trx) => {
      const { sql, bindings } = batchStatement(query(filter, 2_000n)).toSQL()
      await trx.raw(`set local plan_cache_mode = ${mode}`)
      const { rows } = await trx.raw(`explain (analyze, format json) ${sql}`, bindings as Knex.RawBinding[])
      return flatten((rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }])[0].Plan)
    })
    const whole = nodes.filter((node) => node['Node Type'] === 'Seq Scan').map((node) => node['Relation Name'])
    // the table has two rows here
    expect(whole.filter((table) => table !== 'account_changes')).toEqual([])
    const scans = nodes.filter((node) => node['Index Name']?.startsWith('payment_changes_pkey'))
    const entries = scans.map((node) => (node['Actual Rows'] ?? 0) * (node['Actual Loops'] ?? 0))
    expect(Math.max(...entries)).toBeLessThanOrEqual(1_000)
    const used = new Set(nodes.flatMap((node) => node['Index Name'] ?? []))
    used.delete('account_changes_pkey')
    expect([...used].toSorted()).toEqual(['payment_changes_payment', 'payment_changes_pkey', 'payments_pkey'])
  }
})

test('a batch ends at its limit of changes, of events, or of bytes', async () => {
  const spans = async (...asked: Parameters<typeof query>) => {
    const { events, through, isFull } = await read(...asked)
    return [events.length, events[0]?.change, through, isFull]
  }
  expect(await spans({}, 0n)).toEqual([64, 1n, 64n, false])
  expect(await spans({ network: ['POLYGON'] }, 0n)).toEqual([0, undefined, 1_000n, false])
  expect(await spans({ minAmount: '6990' }, 6_500n)).toEqual([11, 6_990n, 7_500n, false])
  expect(await spans({ status: ['FAILED'] }, 9_900n)).toEqual([0, undefined, 10_000n, false])
  expect(await spans({}, 10_000n)).toEqual([0, undefined, 10_000n, false])
  // payments 1000, 2000 and so on have 50,000 bytes of lists, all others 8
  const fat = { changes: 7_000, events: 7_000 }
  expect(await spans({}, 0n, { ...fat, bytes: 100_000 })).toEqual([2_000, 1n, 2_000n, true])
  expect(await spans({}, 2_999n, { ...fat, bytes: 1 })).toEqual([1, 3_000n, 3_000n, true])
})

test('an event has the payment after the change, and no account sees events of another', async () => {
  const { events, lastChange } = await read({ minAmount: '4001', maxAmount: '4001' }, 4_000n, { changes: 10_000 })
  expect(lastChange).toBe(10_000n)
  expect(events.map((event) => [event.type, event.change, event.payment?.status])).toEqual([
    ['ADDED', 4_001n, 'CONFIRMED'],
    ['UPDATED', expect.any(BigInt), 'PENDING'],
  ])
  await inOrder(1, 'delete from payments where account_id = ? and amount = 4001', changePayments)
  const gone = await read({ minAmount: '4001', maxAmount: '4001' }, 10_000n)
  expect(gone.events).toEqual([{ type: 'REMOVED', change: 10_001n, at: expect.any(Date), id: events[0]?.payment?.id }])
  const other = await createWatchRepository(database.knex).read({ ...query({}, 10_000n), filter: { accountId: 2 } })
  expect([other.events, other.lastChange]).toEqual([[], 10_000n])
})

test('an account without changes has no events', async () => {
  const batch = await createWatchRepository(database.knex).read({ ...query({}, 0n), filter: { accountId: 99 } })
  expect(batch).toEqual({ events: [], through: 0n, isFull: false, lastChange: 0n, prunedChange: 0n })
})
