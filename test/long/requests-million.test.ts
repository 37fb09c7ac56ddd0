/** Every filter of the list of requests, on an account with a million requests. Prints the times, and fails when a median exceeds 100 ms. */
import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import type { ListInput } from '../../src/requests/list-requests.ts'
import { createRequests, type Requests } from '../../src/requests/requests.ts'
import { createRequestListRepository } from '../../src/requests/sql/request-list-repository.ts'
import { createRequestRepository } from '../../src/requests/sql/request-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { sampleChainDirectory, sampleTokenDirectory } from '../support/sample-chains.ts'

const REQUESTS = Number(process.env.REQUESTS ?? 1_000_000)

let database: TestDatabase
let requests: Requests
let shop: Account

beforeAll(async () => {
  database = await createTestDatabase()
  const { knex } = database
  shop = await createApiKeyRepository(knex).ensureAccount('shop')
  requests = createRequests({
    repository: createRequestRepository(knex),
    lists: createRequestListRepository(knex),
    known: { chains: sampleChainDirectory, tokens: sampleTokenDirectory },
    cursorSecret: Buffer.alloc(32, 7),
    now: () => new Date(),
    onStored: async () => {},
  })
  await knex.raw('set statement_timeout = 0')
  await fill(knex, shop.id)
}, 600_000)
afterAll(() => database.drop())

/**
 * Stores a merchant's requests over three years: one payee has nine of ten, a thousand others the rest; POLYGON was used in the first
 * quarter only; 93 of 100 are paid, and the refunded ones are old; one in a thousand has the reference of a campaign.
 */
async function fill(knex: Knex, accountId: number): Promise<void> {
  await knex.raw(
    `insert into requests (account_id, request_id, salt, payment_reference, topic, payee, amount, invoice_currency, payment_currency, network,
       reference, created_at, status)
     select ?, decode('01' || lpad(to_hex(n), 64, '0'), 'hex'), '\\x00', decode(lpad(to_hex(n), 16, '0'), 'hex'),
       decode(lpad(to_hex(n), 64, '0'), 'hex'),
       decode('01' || lpad(to_hex(case when n % 10 < 9 then 7 else 1000 + n % 1000 end), 40, '0'), 'hex'), 10,
       case when n % 7 = 0 then 'USD' when n % 50000 = 1 then 'EUR' else currency end, currency, split_part(currency, '-', 2),
       case when n % 1000 = 0 then 'CAMPAIGN' else 'INV-' || n end,
       timestamptz '2023-01-01' + n * interval '90 seconds',
       case when n % 100 < 93 then 4 when n % 100 < 97 then 1 when n % 100 = 97 then 2 when n % 100 = 98 then 3
         when n < ${REQUESTS} / 100 then 5 else 4 end
     from generate_series(1, ${REQUESTS}) n
     cross join lateral (
       select case when n < ${REQUESTS} / 4 and n % 3 = 0 then 'USDC-POLYGON' when n % 100 = 3 then 'DAI-BASE' when n % 5 = 0 then 'USDT-BASE'
         else 'USDC-BASE' end as currency) c`,
    [accountId],
  )
  await knex.raw(
    `insert into payments (account_id, id, status, final, imported, timestamp, updated_at, network, currency, currency_symbol, amount,
       invoice_amount, request_id)
     select account_id, gen_random_uuid(), 3, true, true, created_at, created_at, network, payment_currency, 'USDC', 10, 10, request_id
     from requests where account_id = ? and status in (4, 5) and get_byte(request_id, 32) % 4 = 0`,
    [accountId],
  )
  await knex.raw('vacuum analyze requests')
  await knex.raw('vacuum analyze payments')
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

const figures: string[] = []

async function timeOf(work: () => Promise<unknown>): Promise<{ p50: number; most: number }> {
  await work()
  const times: number[] = []
  for (let i = 0; i < 15; i++) {
    const start = performance.now()
    await work()
    times.push(performance.now() - start)
  }
  const sorted = times.toSorted((a, b) => a - b)
  return { p50: sorted[7] ?? 0, most: sorted.at(-1) ?? 0 }
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

afterAll(() => process.stdout.write(`${figures.join('\n')}\n`))
