import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { formatPaymentLine } from '../../src/domain/payment-line.ts'
import { importPayments } from '../../src/imports/import-payments.ts'
import { importLines } from '../../src/imports/lines/import-lines.ts'
import { createRequests, type Requests } from '../../src/requests/requests.ts'
import { createRequestListRepository } from '../../src/requests/sql/request-list-repository.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import { exportPayments } from '../../src/search/export/export-payments.ts'
import { createPaymentSearch, type PaymentSearch } from '../../src/search/page/payment-search.ts'
import { createWatchRepository } from '../../src/search/sql/watch-repository.ts'
import { createSummarizePayments } from '../../src/search/totals/summarize-payments.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { addressOf, sampleChainDirectory, sampleTokenDirectory } from '../support/sample-chains.ts'

// Payments carry the metadata of their request, in all that is read of them.

let database: TestDatabase
let shop: Account
let requests: Requests
let search: PaymentSearch
const known = { chains: sampleChainDirectory, tokens: sampleTokenDirectory }
const cursorSecret = Buffer.alloc(32, 3)
let clock = Date.parse('2026-03-01T12:00:00Z')

beforeAll(async () => {
  database = await createTestDatabase()
  const { knex } = database
  shop = await createApiKeyRepository(knex).ensureAccount('shop')
  requests = createRequests({
    repository: createRequestRepository(knex),
    lists: createRequestListRepository(knex),
    known,
    cursorSecret,
    now: () => new Date((clock += 1_000)),
    originsOf: async () => new Set(),
    onStored: async () => {},
  })
  search = createPaymentSearch({ knex, ...known, cursorSecret })
})
afterAll(() => database.drop())

const idOf = (n: number) => `0b7d2a31-6f0e-8c55-9d3b-${String(n).padStart(12, '0')}`
const terms = { payee: addressOf(5), amount: '10', invoiceCurrency: 'USDC', paymentCurrency: 'USDC-BASE' }
const line = (n: number, more: object) => ({
  id: idOf(n),
  timestamp: `2026-03-01T12:00:${String(n).padStart(2, '0')}Z`,
  amount: '5',
  amountInUSD: '5',
  currency: 'USDC-BASE',
  network: 'BASE',
  status: 'CONFIRMED',
  ...more,
})

const importOf = (lines: readonly object[], to = shop) =>
  importLines(
    Readable.from([Buffer.from(lines.map((each) => JSON.stringify(each)).join('\n'))]),
    importPayments(database.knex, to, () => new Date((clock += 1_000))),
  )

async function exported(of = shop): Promise<string[]> {
  const lines: string[] = []
  const query = { knex: database.knex, filter: { accountId: of.id } }
  await exportPayments(query, async (page) => void lines.push(...page.map(formatPaymentLine)))
  return lines
}

const found = async (metadata: readonly string[]) =>
  (await search.search(shop, { metadata, sortOrder: 'asc' })).payments.map(({ id }) => id)
const lastChange = async () =>
  (await database.knex('account_changes').where({ account_id: shop.id }).first())?.last_change as bigint

it('an update changes the payments of the request, and all that is read of them', async () => {
  const { request } = await requests.create(shop, { ...terms, metadata: { order: '1', channel: 'web' } })
  const { requestId, paymentReference } = request
  const named = { requestId, metadata: { order: 'of the line' } }
  await importOf([
    line(1, named),
    line(2, { paymentReference }),
    line(3, { metadata: { channel: 'web' } }),
    line(4, {}),
  ])
  expect(await found(['channel=web'])).toEqual([idOf(1), idOf(2), idOf(3)])
  expect(await found(['channel=web', 'order=1', 'order=7'])).toEqual([idOf(1), idOf(2)])
  expect(await found(['order=of the line'])).toEqual([])
  const [before] = (await search.search(shop, { metadata: ['order=1'], sortOrder: 'asc' })).payments
  const after = await lastChange()

  await requests.update(shop, { paymentReference, metadata: { channel: 'pos', order: '' } }, { keyId: undefined })
  expect(await found(['channel=web'])).toEqual([idOf(3)])
  expect(await found(['order=1'])).toEqual([])
  const page = await search.search(shop, { metadata: ['channel=pos'], sortOrder: 'asc', includeTotal: 'exact' })
  expect(page.payments.map(({ id, metadata }) => [id, metadata])).toEqual(
    [1, 2].map((n) => [idOf(n), { channel: 'pos' }]),
  )
  expect(page.pagination.total).toEqual({ count: 2, relation: 'EXACT' })
  const [changed] = page.payments
  expect(changed?.changedAt?.getTime()).toBeGreaterThan(before?.changedAt?.getTime() ?? Number.NaN)
  expect(changed?.updatedAt.getTime()).toBeGreaterThan(before?.updatedAt.getTime() ?? Number.NaN)

  const watch = createWatchRepository(database.knex)
  const eventsOf = async (metadata: readonly string[]) => {
    const limits = { changes: 100, events: 100, bytes: 100_000 }
    const { events } = await watch.read({ filter: { accountId: shop.id, metadata }, after, ...limits })
    return events.map((event) => `${event.type} ${event.type === 'REMOVED' ? event.id : event.payment.id}`)
  }
  expect(await eventsOf(['channel=web'])).toEqual([`REMOVED ${idOf(1)}`, `REMOVED ${idOf(2)}`])
  expect(await eventsOf(['channel=pos'])).toEqual([`ADDED ${idOf(1)}`, `ADDED ${idOf(2)}`])
  const summarize = createSummarizePayments({ knex: database.knex, parseFilter: search.parseFilter })
  expect(await summarize(shop, { metadata: ['channel=pos', 'channel=web'], groupBy: [] })).toMatchObject({
    count: 3,
    amountInUsd: '15',
  })
  const grouped = await summarize(shop, { groupBy: ['metadata', 'status'], metadataKey: 'channel', sums: ['FEES'] })
  expect(grouped.groups.map(({ metadata, status, count }) => [metadata, status, count])).toEqual([
    ['pos', 'CONFIRMED', 2],
    ['web', 'CONFIRMED', 1],
    [undefined, 'CONFIRMED', 1],
  ])
})

it('an export that is imported elsewhere is the same, and a deleted payment leaves no entry', async () => {
  const elsewhere = await createApiKeyRepository(database.knex).ensureAccount('elsewhere')
  const lines = await exported()
  expect(lines.filter((text) => text.includes('"metadata":{"'))).toHaveLength(3)
  await importOf(
    lines.map((text) => JSON.parse(text)),
    elsewhere,
  )
  expect(await exported(elsewhere)).toEqual(lines)
  const entries = () => database.knex('payment_metadata').where({ account_id: elsewhere.id }).orderBy(['id', 'pair'])
  expect((await entries()).map(({ id, pair }) => [id, pair])).toEqual([
    [idOf(1), 'channel=pos'],
    [idOf(2), 'channel=pos'],
    [idOf(3), 'channel=web'],
  ])
  await importOf(
    [
      line(1, { updatedAt: '2027-01-01', status: 'REFUNDED' }),
      line(3, { updatedAt: '2027-01-01', status: 'FAILED', metadata: { channel: 'x' } }),
    ],
    elsewhere,
  )
  expect((await entries()).map(({ id, pair, status }) => [id, pair, status])).toEqual([
    [idOf(2), 'channel=pos', 3],
    [idOf(3), 'channel=x', 5],
  ])
})

it.each([
  ['no pair', { metadata: 'x' }, 'INVALID_FIELD'],
  ['a number', { metadata: { a: 1 } }, 'INVALID_FIELD'],
  ['an empty value', { metadata: { a: '' } }, 'INVALID_METADATA'],
  [
    '21 pairs',
    { metadata: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`k${n}`, '1'])) },
    'TOO_MANY_VALUES',
  ],
])('a line with %s is bad', async (_, more, reason) => {
  const bad: unknown[] = []
  await importLines(Readable.from([Buffer.from(JSON.stringify(line(9, more)))]), importPayments(database.knex, shop), {
    onBatch: (__, lately) => void bad.push(...lately.map(({ error }) => error.reason)),
  })
  expect(bad).toEqual([reason])
})
