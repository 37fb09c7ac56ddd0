import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadPayments } from '../bench/search/load-payments.ts'
import {
  type AccountStatistics,
  type StatisticsRow,
  statisticsOfRows,
  statisticsStatement,
} from '../src/search/account-statistics-repository.ts'
import type { FilterValues } from '../src/search/payment-filter.ts'
import type { PageQuery } from '../src/search/payment-query-repository.ts'
import { planPage, readText } from '../src/search/plan-page.ts'
import { statementOf } from '../src/search/read-page.ts'
import type { Part, PlainShape, Shape } from '../src/search/search-plan.ts'
import { createTestDatabase, type TestDatabase } from './support/database.ts'

// What is planned for which search, and that PostgreSQL answers every shape by the indexes that the plan names, on 40,000 generated
// payments. The thresholds are so low that nothing is too small to be planned.

const THRESHOLDS = { small: 0, walk: 100, longestWalk: 1_500, gather: 500, gatherRows: 100, branches: 600 }
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

/** Those of `payments`, but for the join of the rows by primary key. */
async function indexesOf(shape: Shape, query: PageQuery): Promise<string[]> {
  const { sql, bindings } = statementOf(shape, query, ['amount'])
  const { rows } = await database.knex.raw(`explain (format json) ${sql}`, bindings as Knex.RawBinding[])
  const nodes = flatten((rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }])[0].Plan)
  const scans = nodes
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => `all of ${node['Relation Name']}`)
  const used = new Set([...nodes.flatMap((node) => node['Index Name'] ?? []), ...scans])
  return [...used].filter((name) => !OF_THE_ROWS.includes(name)).toSorted()
}

const OF_THE_ROWS = ['payments_pkey', 'account_changes_pkey', 'payment_statistics_seq']

/** `walk payments_status`; `up to` where it ends before it is through. */
function nameOf(shape: Shape): string {
  if (shape.kind === 'plain' || shape.kind === 'months') return shape.kind
  const isBounded =
    shape.kind === 'gather' ? shape.most !== undefined : shape.parts.some(({ entries }) => entries !== undefined)
  return `${shape.kind} ${isBounded ? 'up to ' : ''}${namesOf(shape.parts).join(', ')}`
}

/** Asked row by row without end, it is PostgreSQL's to choose. */
function isLastResort(shape: Shape): shape is PlainShape {
  if (shape.kind === 'plain') return true
  return shape.kind === 'walk' && shape.parts.some((part) => part.entries === undefined && part.residual.length > 0)
}

/** Of a wallet all can be read from either of its indexes. */
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
const wallet = (name: 'payer' | 'payee') => [`0x${known[name].toString('hex').slice(2)}` as const]
const byAmount = { sortBy: 'amount' } as const
const byStatus = { sortBy: 'status', sortOrder: 'asc' } as const

type Given = Partial<Omit<PageQuery, 'filter'>>

const cases: readonly (readonly [string, () => FilterValues, Given, readonly string[]])[] = [
  ['everything by date', () => ({}), {}, []],
  ['a later page by date', () => ({}), { position: position([AT]) }, []],
  ['everything by amount', () => ({}), byAmount, []],
  ['the page before by amount', () => ({}), { ...byAmount, position: position(['500'], 'backward') }, []],
  ['the unknown amounts', () => ({}), { ...byAmount, position: position([null]) }, []],
  ['everything by status', () => ({}), byStatus, []],
  ['a later page by status', () => ({}), { ...byStatus, position: position([3, AT]) }, []],
  ['dates', () => MONTH, {}, []],
  ['dates by amount', () => MONTH, byAmount, []],
  ['dates by status', () => MONTH, byStatus, []],
  ['amounts', () => ({ minAmount: '100', maxAmount: '101' }), {}, []],
  ['amounts by amount', () => ({ minAmount: '100', maxAmount: '101' }), byAmount, []],
  ['two ranges', () => ({ ...YEAR, minAmount: '10', maxAmount: '20' }), {}, []],
  ['two ranges by amount', () => ({ ...YEAR, minAmount: '10', maxAmount: '20' }), byAmount, []],
  ['a status', () => ({ status: ['FAILED'] }), {}, []],
  ['a status by amount', () => ({ status: ['FAILED'] }), byAmount, []],
  ['a type', () => ({ type: ['RECURRING'] }), {}, []],
  ['a type by status', () => ({ type: ['RECURRING'] }), byStatus, []],
  ['a network', () => ({ network: ['GNOSIS'] }), {}, []],
  ['a network of sources alone', () => ({ network: ['MANTLE'] }), {}, []],
  ['a network by amount', () => ({ network: ['GNOSIS'] }), byAmount, []],
  ['a network and a status', () => ({ network: ['GNOSIS'], status: ['FAILED'] }), {}, []],
  ['a currency', () => ({ currency: doge }), {}, []],
  ['a currency of one network', () => ({ currency: dogeOfBase }), {}, []],
  ['a currency by amount', () => ({ currency: usdc }), byAmount, []],
  ['a currency and amounts', () => ({ currency: usdc, minAmount: '10', maxAmount: '11' }), {}, []],
  ['a fiat currency', () => ({ currency: eur }), {}, []],
  ['a fiat currency by amount', () => ({ currency: eur }), byAmount, []],
  ['a token that was invoiced, by amount', () => ({ invoiceCurrency: invoicedUsdc }), byAmount, []],
  ['a payer', () => ({ payer: wallet('payer') }), {}, []],
  ['a payee by amount', () => ({ payee: wallet('payee') }), byAmount, []],
  ['a payee by status', () => ({ payee: wallet('payee') }), byStatus, []],
  ['a wallet', () => ({ walletAddress: wallet('payee') }), {}, []],
  ['a wallet by amount', () => ({ walletAddress: wallet('payee') }), byAmount, []],
  ['a payee and a network', () => ({ payee: wallet('payee'), network: ['GNOSIS'] }), {}, []],
  ['a payee and a currency by amount', () => ({ payee: wallet('payee'), currency: usdc }), byAmount, []],
  ['a payer and a payee', () => ({ payer: wallet('payer'), payee: wallet('payee') }), {}, []],
  ['a transaction', () => ({ txHash: [`0x${'00'.repeat(32)}`] }), {}, []],
  ['a request', () => ({ requestId: [`01${'00'.repeat(32)}`] }), {}, []],
  ['a payment reference', () => ({ paymentReference: [`0x${'00'.repeat(8)}`] }), byAmount, []],
  ["the merchant's reference", () => ({ reference: ['INV-7'] }), {}, []],
  [
    "the merchant's reference and a status, by amount",
    () => ({ reference: ['INV-7'], status: ['FAILED'] }),
    byAmount,
    [],
  ],
]

describe('the plan names the indexes by which each shape is answered', () => {
  test.each(cases)('%s', async (_, filterOf, given, names) => {
    const filter = readText({ ...filterOf(), accountId: 1 })
    const query: PageQuery = { sortBy: 'date', sortOrder: 'desc', rows: 21, ...given, filter }
    const plan = planPage(query, statistics, THRESHOLDS)
    if (names.length > 0) expect(plan.map(nameOf)).toEqual(names)
    for (const shape of plan) {
      const used = await indexesOf(shape, query)
      if (isLastResort(shape)) expect(used.filter((name) => name.startsWith('all of'))).toEqual([])
      else
        expect(used.map(withoutUsd)).toEqual(
          shape.kind === 'months' ? ['payments_month'] : namesOf(shape.parts).map(withoutUsd),
        )
    }
  })
})
