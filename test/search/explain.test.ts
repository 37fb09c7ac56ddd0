import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadPayments } from '../../bench/search/load-payments.ts'
import { addressFromBytes } from '../../src/domain/address.ts'
import type { Statement } from '../../src/postgres/statement.ts'
import type { FilterValues } from '../../src/search/filter/search-fields.ts'
import type { PageQuery } from '../../src/search/page/page-query.ts'
import { statementsOf } from '../../src/search/page/read-page.ts'
import { planPage } from '../../src/search/plan/plan-page.ts'
import { singleReadingAsFilter } from '../../src/search/plan/plan-terms.ts'
import type { Part, PlainShape, Shape } from '../../src/search/plan/search-plan.ts'
import {
  type AccountStatistics,
  type StatisticsRow,
  statisticsOfRows,
  statisticsStatement,
} from '../../src/search/sql/account-statistics.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

// Which plan each search gets, and that PostgreSQL reads every shape by the indexes that the plan names, on 40,000 generated payments. The
// thresholds are low, so that even few payments are planned for.

const THRESHOLDS = {
  smallAccount: 0,
  walk: 100,
  maxWalk: 1_500,
  probe: 100,
  gather: 500,
  gatherRows: 100,
  maxBranches: 600,
  manyBranches: 60,
}
let database: TestDatabase
let statistics: AccountStatistics
let known: Record<'payer' | 'payee', Buffer>

beforeAll(async () => {
  database = await createTestDatabase()
  await loadPayments({ knex: database.knex, rows: 40_000, seed: 1, connections: 2, say: () => {} })
  const { sql, bindings } = statisticsStatement(1)
  const { rows } = await database.knex.raw<{ rows: StatisticsRow[] }>(sql, bindings as Knex.RawBinding[])
  statistics = statisticsOfRows(rows)
  known = await database.knex('payments').where({ account_id: 1 }).whereNotNull('payer').whereNotNull('payee').first()
})

afterAll(() => database.drop())

interface PlanNode {
  readonly 'Index Name'?: string
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly Plans?: readonly PlanNode[]
}

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)]

/** The indexes of `payments` that a statement uses, without the primary key, by which rows are joined. */
async function indexesOf({ sql, bindings }: Statement): Promise<string[]> {
  const { rows } = await database.knex.raw(`explain (format json) ${sql}`, bindings as Knex.RawBinding[])
  const nodes = flatten((rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }])[0].Plan)
  const scans = nodes
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => `all of ${node['Relation Name']}`)
  const used = new Set([...nodes.flatMap((node) => node['Index Name'] ?? []), ...scans])
  return [...used].filter((name) => !OF_THE_ROWS.includes(name)).toSorted()
}

const OF_THE_ROWS = ['payments_pkey', 'account_changes_pkey', 'payment_statistics_seq']

/** `walk payments_status`, or `walk up to payments_status` where it has a limit. */
function nameOf(shape: Shape): string {
  if (shape.kind === 'plain' || shape.kind === 'months') return shape.kind
  const isBounded =
    shape.kind === 'gather'
      ? shape.maxEntries !== undefined
      : shape.parts.some(({ entryLimits }) => entryLimits !== undefined)
  return `${shape.kind} ${isBounded ? 'up to ' : ''}${namesOf(shape.parts).join(', ')}`
}

/** A walk with residual filters and without a limit, whose index is left to PostgreSQL. */
function isLastResort(shape: Shape): shape is PlainShape {
  if (shape.kind === 'plain') return true
  return shape.kind === 'walk' && shape.parts.some((part) => part.entryLimits === undefined && part.residual.length > 0)
}

/** Both indexes of a wallet hold all its payments, so either may be used; so it is with months. */
const withoutUsd = (name: string) => name.replace(/^(payments_(?:payer|payee|month))_usd$/, '$1')

const namesOf = (parts: readonly Part[]) => [...new Set(parts.flatMap(({ index }) => index.split(', ')))].toSorted()

const position = (keys: readonly (string | number | null)[], direction: 'forward' | 'backward' = 'forward') =>
  ({ keys, id: '80000000-0000-4000-8000-000000000000', inclusive: false, direction }) as const
const AT = '2025-01-15T00:00:00.000Z'
const MONTH = { fromDate: Date.UTC(2025, 0, 1), toDate: Date.UTC(2025, 1, 1) }
const YEAR = { fromDate: Date.UTC(2024, 0, 1), toDate: Date.UTC(2025, 0, 1) }
const usdc = [{ of: 'payment', symbol: 'USDC' }] as const
const doge = [{ of: 'payment', symbol: 'DOGE' }] as const
const dogeOfBase = [{ of: 'payment', symbol: 'DOGE', id: 'DOGE-BASE' }] as const
const eur = [{ of: 'invoice', symbol: 'EUR', id: 'EUR' }] as const
const invoicedUsdc = [{ of: 'invoice', symbol: 'USDC' }] as const
const wallet = (name: 'payer' | 'payee') => [addressFromBytes(known[name])]
const manyWallets = () =>
  Array.from({ length: 50 }, (_, nth) =>
    addressFromBytes(Buffer.concat([known.payer.subarray(0, 1), Buffer.alloc(20, nth)])),
  )
const byAmount = { sortBy: 'amount' } as const
const byStatus = { sortBy: 'status', sortOrder: 'asc' } as const

type Given = Partial<Omit<PageQuery, 'filter'>>

const cases: readonly (readonly [string, () => FilterValues, Given, readonly string[]])[] = [
  ['everything by date', () => ({}), {}, ['walk payments_date']],
  ['a later page by date', () => ({}), { position: position([AT]) }, ['walk payments_date']],
  ['everything by amount', () => ({}), byAmount, ['walk payments_usd']],
  [
    'the page before by amount',
    () => ({}),
    { ...byAmount, position: position(['500'], 'backward') },
    ['walk payments_usd'],
  ],
  ['the unknown amounts', () => ({}), { ...byAmount, position: position([null]) }, ['walk payments_usd']],
  ['everything by status', () => ({}), byStatus, ['walk payments_status']],
  ['a later page by status', () => ({}), { ...byStatus, position: position([3, AT]) }, ['walk payments_status']],
  ['dates', () => MONTH, {}, ['walk payments_date']],
  [
    'dates by amount',
    () => MONTH,
    byAmount,
    [
      'walk up to payments_month_usd',
      'gather up to payments_status',
      'walk up to payments_usd',
      'walk payments_month_usd',
    ],
  ],
  ['dates by status', () => MONTH, byStatus, ['walk payments_status']],
  [
    'amounts',
    () => ({ minAmount: '100', maxAmount: '101' }),
    {},
    ['gather up to payments_usd', 'walk up to payments_status', 'walk payments_status'],
  ],
  [
    'amounts of many',
    () => ({ minAmount: '100', maxAmount: '200' }),
    {},
    ['walk up to payments_status', 'gather up to payments_usd', 'walk payments_status'],
  ],
  [
    'amounts of a frequent network',
    () => ({ network: ['BASE'], minAmount: '100', maxAmount: '200' }),
    {},
    [
      'walk up to payments_status',
      'walk up to payments_cell, payments_source_network',
      'walk up to payments_cell, payments_source_network',
      'gather up to payments_usd',
      'walk payments_status',
    ],
  ],
  ['amounts by amount', () => ({ minAmount: '100', maxAmount: '101' }), byAmount, ['walk payments_usd']],
  ['two ranges', () => ({ ...YEAR, minAmount: '10', maxAmount: '20' }), {}, ['months']],
  [
    'two ranges by amount',
    () => ({ ...YEAR, minAmount: '10', maxAmount: '20' }),
    byAmount,
    ['walk up to payments_usd', 'walk payments_month_usd'],
  ],
  ['a status', () => ({ status: ['FAILED'] }), {}, ['walk payments_status']],
  [
    'a status by amount',
    () => ({ status: ['FAILED'] }),
    byAmount,
    ['gather up to payments_status', 'walk up to payments_usd', 'gather payments_cell'],
  ],
  ['a type', () => ({ type: ['RECURRING'] }), {}, ['walk up to payments_status', 'walk payments_status']],
  [
    'a type by status',
    () => ({ type: ['RECURRING'] }),
    byStatus,
    ['walk up to payments_status', 'walk payments_status'],
  ],
  [
    'a network',
    () => ({ network: ['GNOSIS'] }),
    {},
    [
      'walk up to payments_status',
      'walk up to payments_cell, payments_source_network',
      'walk payments_cell, payments_source_network',
    ],
  ],
  ['a network that is a source alone', () => ({ network: ['MANTLE'] }), {}, ['walk payments_source_network']],
  [
    'currencies without any US dollars, by amount in US dollars',
    () => ({ currency: [...doge, { of: 'payment', symbol: 'YFI' }] }),
    byAmount,
    ['walk up to payments_usd', 'walk up to payments_usd', 'gather payments_cell'],
  ],
  [
    'a network by amount',
    () => ({ network: ['GNOSIS'] }),
    byAmount,
    ['walk up to payments_usd', 'gather payments_cell, payments_source_network'],
  ],
  [
    'a network and a status',
    () => ({ network: ['GNOSIS'], status: ['FAILED'] }),
    {},
    [
      'gather up to payments_source_network',
      'gather up to payments_status',
      'walk up to payments_status',
      'walk up to payments_source_network',
      'walk payments_status',
    ],
  ],
  ['a currency', () => ({ currency: doge }), {}, ['walk payments_cell']],
  [
    'a currency of one network',
    () => ({ currency: dogeOfBase }),
    {},
    [
      'walk up to payments_cell',
      'walk up to payments_cell',
      'gather up to payments_cell',
      'walk up to payments_status',
      'walk payments_status',
    ],
  ],
  ['a currency by amount', () => ({ currency: usdc }), byAmount, ['walk payments_amount']],
  [
    'a currency and amounts',
    () => ({ currency: usdc, minAmount: '10', maxAmount: '11' }),
    {},
    [
      'gather up to payments_amount',
      'walk up to payments_status',
      'gather up to payments_amount',
      'walk up to payments_status',
      'walk payments_status',
    ],
  ],
  [
    'a fiat currency',
    () => ({ currency: eur }),
    {},
    ['walk up to payments_status', 'gather up to payments_invoice_amount', 'walk payments_status'],
  ],
  ['a fiat currency by amount', () => ({ currency: eur }), byAmount, ['walk payments_invoice_amount']],
  [
    'a token that was invoiced, by amount',
    () => ({ invoiceCurrency: invoicedUsdc }),
    byAmount,
    ['walk payments_invoice_amount'],
  ],
  ['a payer', () => ({ payer: wallet('payer') }), {}, ['walk payments_payer']],
  ['a payee by amount', () => ({ payee: wallet('payee') }), byAmount, ['walk payments_payee_usd']],
  ['a payee by status', () => ({ payee: wallet('payee') }), byStatus, ['walk payments_payee']],
  ['a wallet', () => ({ walletAddress: wallet('payee') }), {}, ['walk payments_payee, payments_payer']],
  ['very many wallets', () => ({ walletAddress: manyWallets() }), {}, ['slices payments_payee, payments_payer']],
  [
    'a wallet by amount',
    () => ({ walletAddress: wallet('payee') }),
    byAmount,
    ['walk payments_payee_usd, payments_payer_usd'],
  ],
  [
    'a payee and a network',
    () => ({ payee: wallet('payee'), network: ['GNOSIS'] }),
    {},
    [
      'walk up to payments_payee',
      'gather up to payments_payee',
      'walk up to payments_cell, payments_source_network',
      'walk payments_payee',
    ],
  ],
  [
    'a payee and a currency by amount',
    () => ({ payee: wallet('payee'), currency: usdc }),
    byAmount,
    [
      'gather up to payments_payee',
      'walk up to payments_amount',
      'gather up to payments_payee',
      'gather payments_payee',
    ],
  ],
  [
    'a payer and a payee',
    () => ({ payer: wallet('payer'), payee: wallet('payee') }),
    {},
    [
      'gather up to payments_payer',
      'gather up to payments_payee',
      'walk up to payments_payer',
      'walk up to payments_payee',
      'gather up to payments_payer',
      'gather up to payments_payee',
      'walk up to payments_payer',
      'walk payments_payer',
    ],
  ],
  [
    "a merchant's reference and a payee",
    () => ({ reference: ['INV-7'], payee: wallet('payee') }),
    {},
    [
      'gather up to payments_reference',
      'gather up to payments_payee',
      'walk up to payments_payee',
      'walk up to payments_reference',
      'gather up to payments_reference',
      'gather up to payments_payee',
      'walk up to payments_payee',
      'walk up to payments_reference',
      'walk payments_reference',
    ],
  ],
  [
    'a payee and a network whose payments end shortly after the position',
    () => ({ payee: wallet('payee'), network: ['FANTOM'] }),
    { sortOrder: 'asc', position: position(['2024-02-10T00:00:00.000Z']) },
    ['walk up to payments_cell', 'gather up to payments_payee', 'walk up to payments_payee', 'walk payments_payee'],
  ],
  [
    'a payee and a network whose payments end long after the position',
    () => ({ payee: wallet('payee'), network: ['FANTOM'] }),
    { sortOrder: 'asc', position: position(['2023-07-10T00:00:00.000Z']) },
    ['gather up to payments_payee', 'walk up to payments_payee', 'walk up to payments_cell', 'walk payments_payee'],
  ],
  [
    'a transaction',
    () => ({ txHash: [`0x${'00'.repeat(32)}`] }),
    {},
    [
      'gather up to payments_account_id_tx_hash_event_index_network_key, payments_refund_tx, payments_source_tx',
      'gather payments_account_id_tx_hash_event_index_network_key, payments_refund_tx, payments_source_tx',
    ],
  ],
  ['a request', () => ({ requestId: [`01${'00'.repeat(32)}`] }), {}, ['walk payments_request_id']],
  [
    'a payment reference',
    () => ({ paymentReference: [`0x${'00'.repeat(8)}`] }),
    byAmount,
    ['gather up to payments_payment_reference', 'walk up to payments_usd', 'gather payments_payment_reference'],
  ],
  ["the merchant's reference", () => ({ reference: ['INV-7'] }), {}, ['walk payments_reference']],
  [
    "the merchant's reference and a status, by amount",
    () => ({ reference: ['INV-7'], status: ['FAILED'] }),
    byAmount,
    [
      'gather up to payments_reference',
      'walk up to payments_usd',
      'gather up to payments_reference',
      'gather payments_reference',
    ],
  ],
]

describe('the plan names the indexes that PostgreSQL reads for', () => {
  test.each(cases)('%s', async (_, filterOf, given, names) => {
    await expectPlan(filterOf(), given, statistics, names)
  })

  test('a network and dates by amount, of very many payments', async () => {
    const times = 1_000
    const cells = statistics.cells.map((cell) => ({ ...cell, n: cell.n * times }))
    const many = { ...statistics, n: statistics.n * times, cells }
    await expectPlan({ ...MONTH, network: ['GNOSIS'] }, byAmount, many, [
      'walk up to payments_month_usd',
      'walk up to payments_usd',
      'gather payments_cell, payments_source_network',
    ])
  })
})

async function expectPlan(
  filter: FilterValues,
  given: Given,
  known: AccountStatistics,
  names: readonly string[],
): Promise<void> {
  const query: PageQuery = {
    sortBy: 'date',
    sortOrder: 'desc',
    rows: 21,
    ...given,
    filter: singleReadingAsFilter({ ...filter, accountId: 1 }),
  }
  const plan = planPage(query, known, THRESHOLDS)
  expect(plan.map(nameOf)).toEqual(names)
  for (const { shape, statement } of statementsOf(plan, { query, columns: ['amount'] })) {
    const used = await indexesOf(statement())
    if (isLastResort(shape)) expect(used.filter((name) => name.startsWith('all of'))).toEqual([])
    else
      expect(used.map(withoutUsd)).toEqual(
        shape.kind === 'months' ? ['payments_month'] : namesOf(shape.parts).map(withoutUsd),
      )
  }
}
