import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { FilterValues } from '../src/search/payment-filter.ts'
import { type PageQuery, pageStatement } from '../src/search/payment-query-repository.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'
import { PAYERS } from './support/search-payments.ts'

// Which index answers which search, on 60,000 payments of three accounts.

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
  await database.knex.raw(
    `insert into payments (account_id, id, status, final, imported, timestamp, updated_at, network, currency, currency_symbol,
       amount, amount_in_usd, invoice_currency, invoice_amount, tx_hash, event_index, source_tx_hash, payer, payee, request_id,
       payment_reference, reference)
     select 1 + n % 3, gen_random_uuid(), case when n % 100 = 0 then 1 else 3 end, true, true,
       timestamp '2026-01-01' + n * interval '1 minute', now(), (array['BASE', 'POLYGON', 'BSC', 'OLD'])[1 + n % 4], 'USDC-BASE',
       (array['USDC', 'DAI', 'ETH', 'POL', 'USDT'])[1 + n % 5], n % 977, case when n % 10 > 0 then n % 1013 end,
       (array['USD', 'EUR', 'CHF'])[1 + n % 3], n % 991, sha256(int4send(n / 10)), n, sha256(int4send(n)),
       substr(sha256(int4send(n % 500)), 1, 21), substr(sha256(int4send(n % 300)), 1, 21), sha256(int4send(n)),
       substr(sha256(int4send(n)), 1, 8), 'INV-' || n
     from generate_series(1, 60000) n`,
  )
  await database.knex.raw('analyze payments')
})

afterAll(() => database.drop())

interface PlanNode {
  readonly 'Index Name'?: string
  readonly 'Node Type': string
  readonly Plans?: readonly PlanNode[]
}

interface ExplainedQuery extends Partial<Omit<PageQuery, 'filter'>> {
  readonly filter: FilterValues
}

/** The indexes of the walk and the lookup; the join of the rows by primary key is left out. */
async function indexesOf(query: ExplainedQuery) {
  const filter = { ...query.filter, accountId: 2 }
  const { sql, bindings } = pageStatement({ sortBy: 'date', sortOrder: 'desc', rows: 21, ...query, filter }, ['amount'])
  const { rows } = await database.knex.raw(`explain (format json) ${sql}`, bindings as Knex.RawBinding[])
  const nodes = flatten((rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }])[0].Plan)
  const used = new Set(nodes.flatMap((node) => node['Index Name'] ?? []))
  used.delete('payments_pkey')
  return { indexes: [...used].toSorted(), sequential: nodes.some((node) => node['Node Type'] === 'Seq Scan') }
}

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)]

const position = (keys: readonly (string | number | null)[]) =>
  ({ keys, id: '80000000-0000-4000-8000-000000000000', inclusive: false, direction: 'forward' }) as const
const AT = '2026-01-15T00:00:00.000Z'
const usdc = [{ of: 'payment', symbol: 'USDC' }] as const
const eur = [{ of: 'invoice', symbol: 'EUR', id: 'EUR' }] as const

test.each<[string, ExplainedQuery, string[]]>([
  ['everything by date', { filter: {} }, ['payments_timestamp']],
  ['a later page by date', { filter: {}, position: position([AT]) }, ['payments_timestamp']],
  ['a range of dates', { filter: { fromDate: 1_767_700_000_000, toDate: 1_767_800_000_000 } }, ['payments_timestamp']],
  ['everything by status', { filter: {}, sortBy: 'status' }, ['payments_status']],
  ['a later page by status', { filter: {}, sortBy: 'status', position: position([3, AT]) }, ['payments_status']],
  ['a rare status by date', { filter: { status: ['PENDING'] } }, ['payments_status']],
  ['everything by US dollars', { filter: {}, sortBy: 'amount' }, ['payments_usd']],
  ['a later page by US dollars', { filter: {}, sortBy: 'amount', position: position(['500']) }, ['payments_usd']],
  ['a currency by amount', { filter: { currency: usdc }, sortBy: 'amount' }, ['payments_currency_amount']],
  ['a fiat currency by amount', { filter: { currency: eur }, sortBy: 'amount' }, ['payments_invoice_amount']],
  ['a payer', { filter: { payer: PAYERS.slice(0, 1) } }, ['payments_payer']],
  ['a payee', { filter: { payee: PAYERS.slice(0, 1) } }, ['payments_payee']],
  ['a wallet', { filter: { walletAddress: PAYERS.slice(0, 1) } }, ['payments_payee', 'payments_payer']],
  ['a request', { filter: { requestId: [`01${'00'.repeat(32)}`] } }, ['payments_request']],
  ['a payment reference', { filter: { paymentReference: [`0x${'00'.repeat(8)}`] } }, ['payments_payment_reference']],
  [
    'a text that can only be a reference',
    { filter: { q: [{ as: 'reference', value: 'INV-7' }] } },
    ['payments_merchant_reference'],
  ],
  [
    'a text that can be a request',
    {
      filter: {
        q: [
          { as: 'requestId', value: `01${'00'.repeat(32)}` },
          { as: 'reference', value: 'x' },
        ],
      },
    },
    ['payments_merchant_reference', 'payments_request'],
  ],
  [
    'a text that is a wallet',
    { filter: { q: [{ as: 'walletAddress', value: PAYERS[0] ?? '' }] } },
    ['payments_payee', 'payments_payer'],
  ],
  ["the merchant's reference", { filter: { reference: ['INV-7'] }, sortBy: 'amount' }, ['payments_merchant_reference']],
])('%s is answered by its index', async (_, query, indexes) => {
  expect(await indexesOf(query)).toEqual({ indexes, sequential: false })
})

test('a transaction hash is answered by the indexes of both hashes', async () => {
  const { indexes, sequential } = await indexesOf({ filter: { txHash: [`0x${'00'.repeat(32)}`] }, sortBy: 'status' })
  expect(indexes).toContain('payments_source_tx')
  expect(indexes).toHaveLength(2)
  expect(sequential).toBe(false)
})

test('a text that can be a hash or an id walks nothing', async () => {
  const reference = { as: 'reference', value: 'x' } as const
  const hash = await indexesOf({ filter: { q: [{ as: 'txHash', value: `0x${'00'.repeat(32)}` }, reference] } })
  expect(hash.indexes).toEqual(expect.arrayContaining(['payments_merchant_reference', 'payments_source_tx']))
  expect(hash.indexes).toHaveLength(3)
  expect(hash.sequential).toBe(false)
  const id = await indexesOf({
    filter: { q: [{ as: 'id', value: '80000000-0000-4000-8000-000000000000' }, reference] },
  })
  expect(id).toEqual({ indexes: ['payments_merchant_reference'], sequential: false })
})
