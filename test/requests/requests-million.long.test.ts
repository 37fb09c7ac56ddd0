/** Every filter of the list of requests and sums of them, on an account with a million requests. Prints the times, and fails above bounds. */
import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import type { ListInput } from '../../src/requests/list-requests.ts'
import { createRequests, type Requests } from '../../src/requests/requests.ts'
import type { FilterInput } from '../../src/requests/rules/request-filter.ts'
import { createRequestListRepository } from '../../src/requests/sql/request-list-repository.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import { createSummarizeRequests, type SummarizeRequests } from '../../src/requests/summarize-requests.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { sampleChainDirectory, sampleTokenDirectory } from '../support/sample-chains.ts'

const REQUESTS = Number(process.env.REQUESTS ?? 1_000_000)

let database: TestDatabase
let requests: Requests
let shop: Account
let summarize: SummarizeRequests
const figures: string[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  const { knex } = database
  shop = await createApiKeyRepository(knex).ensureAccount('shop')
  const common = {
    lists: createRequestListRepository(knex),
    known: { chains: sampleChainDirectory, tokens: sampleTokenDirectory },
    now: () => new Date('2025-11-01'),
  }
  requests = createRequests({
    ...common,
    repository: createRequestRepository(knex),
    cursorSecret: Buffer.alloc(32, 7),
    onStored: async () => {},
    originsOf: async () => new Set<string>(),
  })
  summarize = createSummarizeRequests({ ...common, knex })
  await knex.raw('set statement_timeout = 0')
  await fill(knex, shop.id)
  await knex.raw('vacuum analyze requests')
}, 600_000)
afterAll(() => database.drop())

/**
 * Stores a merchant's requests over three years: one payee has nine of ten, a thousand others the rest; POLYGON was used in the first
 * quarter only; 87 of 100 are paid, ten open, and the refunded ones are old; one in a thousand has the reference of a campaign. One of 20,000 is overpaid,
 * one of 5,000 cancelled, and every second one expires after a month.
 */
async function fill(knex: Knex, accountId: number): Promise<void> {
  await knex.raw(
    `insert into requests (account_id, request_id, salt, payment_reference, topic, payee, amount, invoice_currency, payment_currency, network,
       reference, created_at, status, expires_at, cancelled_at, overpaid, paid, held)
     select ?, decode('01' || lpad(to_hex(n), 64, '0'), 'hex'), '\\x00', decode(lpad(to_hex(n), 16, '0'), 'hex'),
       decode(lpad(to_hex(n), 64, '0'), 'hex'),
       decode('01' || lpad(to_hex(case when n % 10 < 9 then 7 else 1000 + n % 1000 end), 40, '0'), 'hex'), 10,
       case when n % 7 = 0 then 'USD' when n % 50000 = 1 then 'EUR' else currency end, currency, split_part(currency, '-', 2),
       case when n % 1000 = 0 then 'CAMPAIGN' else 'INV-' || n end,
       timestamptz '2023-01-01' + n * interval '90 seconds',
       case when n % 100 < 87 then 4 when n % 100 < 97 then 1 when n % 100 = 97 then 2 when n % 100 = 98 then 3
         when n < ${REQUESTS} / 100 then 5 else 4 end,
       case when n % 2 = 0 then timestamptz '2023-02-01' + n * interval '90 seconds' end,
       case when n % 5000 = 7 then timestamptz '2026-01-01' end,
       n % 20000 = 52, case when n % 100 < 87 or n % 100 = 99 then worth else 0 end,
       case when n % 100 < 87 or n % 100 > 97 then worth when n % 100 = 97 then 4 else 0 end
     from generate_series(1, ${REQUESTS}) n
     cross join lateral (
       select case when n < ${REQUESTS} / 4 and n % 3 = 0 then 'USDC-POLYGON' when n % 100 = 3 then 'DAI-BASE' when n % 5 = 0 then 'USDT-BASE'
         else 'USDC-BASE' end as currency, case when n % 20000 = 52 then 15 else 10 end as worth) c`,
    [accountId],
  )
}

const ONE_OF_MANY = `0x${(1000 + 509).toString(16).padStart(40, '0')}`
const BUSY = `0x${(7).toString(16).padStart(40, '0')}`

const filters: readonly [string, ListInput][] = [
  ['nothing', {}],
  ['a common status', { status: ['PAID'] }],
  ['a rare, old status', { status: ['REFUNDED'] }],
  ['two statuses', { status: ['PENDING', 'PARTIALLY_PAID'] }],
  ['a reference', { reference: ['INV-4711'] }],
  ['a reference of many requests', { reference: ['CAMPAIGN'] }],
  ['a reference of many requests and a status', { reference: ['CAMPAIGN'], status: ['REFUNDED'] }],
  ['a request id', { requestId: [`01${(4711).toString(16).padStart(64, '0')}`] }],
  ['a busy payee', { payee: [BUSY] }],
  ['a busy payee and a rare status', { payee: [BUSY], status: ['REFUNDED'] }],
  ['a busy payee and an abandoned network', { payee: [BUSY], network: ['POLYGON'] }],
  ['a busy payee and a rare currency', { payee: [BUSY], currency: ['EUR'] }],
  ['one payee of many', { payee: [ONE_OF_MANY] }],
  ['a network', { network: ['BASE'] }],
  ['an abandoned network', { network: ['POLYGON'] }],
  ['an abandoned network and a status', { network: ['POLYGON'], status: ['REFUNDED'] }],
  ['a currency', { currency: ['DAI'] }],
  ['a fiat currency', { currency: ['USD'] }],
  ['a rare fiat currency', { currency: ['EUR'] }],
  ['a network and a currency', { network: ['POLYGON'], currency: ['USD'] }],
  ['a past month', { fromDate: '2023-06-01', toDate: '2023-06-30' }],
  ['a rare status in a year without it', { status: ['REFUNDED'], fromDate: '2025-01-01' }],
  ['an abandoned network in a year without it', { network: ['POLYGON'], fromDate: '2025-01-01' }],
  ['overpaid', { overpaid: true }],
  ['overpaid, of one payee of many', { overpaid: true, payee: [ONE_OF_MANY] }],
  ['overpaid, of an abandoned network', { overpaid: true, network: ['POLYGON'] }],
  ['overpaid, in a past month', { overpaid: true, fromDate: '2023-06-01', toDate: '2023-06-30' }],
  ['not overpaid', { overpaid: false }],
  ['not overpaid, a status', { overpaid: false, status: ['PAID'] }],
  ['expired', { status: ['EXPIRED'] }],
  ['expired, of a busy payee', { status: ['EXPIRED'], payee: [BUSY] }],
  ['open', { status: ['OPEN'] }],
  ['open, of a busy payee', { status: ['OPEN'], payee: [BUSY] }],
  ['cancelled', { status: ['CANCELLED'] }],
  ['cancelled, of a busy payee', { status: ['CANCELLED'], payee: [BUSY] }],
  ['cancelled or refunded', { status: ['CANCELLED', 'REFUNDED'] }],
  ['not overpaid, of three statuses', { overpaid: false, status: ['OPEN', 'EXPIRED', 'PAID'] }],
  [
    'a payee, a status, a network, a currency and dates',
    {
      payee: [BUSY],
      status: ['OPEN'],
      network: ['BASE'],
      currency: ['USDT'],
      fromDate: '2024-01-01',
      toDate: '2024-12-31',
    },
  ],
]

async function timeOf(work: () => Promise<unknown>, runs = 15): Promise<{ p50: number; most: number }> {
  await work()
  const times: number[] = []
  for (let i = 0; i < runs; i++) {
    const start = performance.now()
    await work()
    times.push(performance.now() - start)
  }
  const sorted = times.toSorted((a, b) => a - b)
  return { p50: sorted[runs >> 1] ?? 0, most: sorted.at(-1) ?? 0 }
}

it.each(filters)('%s', async (name, input) => {
  const first = await timeOf(() => requests.list(shop, input))
  const { nextCursor } = await requests.list(shop, input)
  const deep = nextCursor === undefined ? undefined : await timeOf(() => requests.list(shop, { cursor: nextCursor }))
  const exact = await timeOf(() => requests.list(shop, { ...input, includeTotal: 'exact' }))
  const { total } = await requests.list(shop, { ...input, includeTotal: 'exact' })
  figures.push(
    `${name.padEnd(52)} ${first.p50.toFixed(1).padStart(6)} ${first.most.toFixed(1).padStart(6)} ${(deep?.p50 ?? 0).toFixed(1).padStart(6)} ${exact.p50.toFixed(1).padStart(6)} ${total?.relation} ${total?.count}`,
  )
  expect(first.p50).toBeLessThan(100)
})

it.each<[string, number, FilterInput]>([
  ['what is still to be paid', 1_000, { status: ['OPEN', 'PARTIALLY_PAID'] }],
  ['all that is unpaid', 2_000, { status: ['OPEN', 'PARTIALLY_PAID', 'CANCELLED', 'EXPIRED'] }],
  ['overpaid', 500, { overpaid: true }],
  ['one payee of many', 500, { payee: [ONE_OF_MANY] }],
  ['a past month', 2_000, { fromDate: '2023-06-01', toDate: '2023-06-30' }],
  ['everything', 30_000, {}],
])('sums of %s', async (name, mostMs, input) => {
  const { p50, most } = await timeOf(() => summarize(shop, input), 5)
  const { count } = await summarize(shop, input)
  figures.push(`sums of ${name.padEnd(44)} ${p50.toFixed(1).padStart(6)} ${most.toFixed(1).padStart(6)} of ${count}`)
  expect(p50).toBeLessThan(mostMs)
})

afterAll(() => process.stdout.write(`${figures.join('\n')}\n`))
