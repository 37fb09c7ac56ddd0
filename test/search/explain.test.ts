import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadPayments } from '../../bench/search/load-payments.ts'
import { addressFromBytes } from '../../src/domain/address.ts'
import type { Statement } from '../../src/postgres/statement.ts'
import { statusesLeft } from '../../src/search/filter/payment-filter.ts'
import type { FilterValues } from '../../src/search/filter/search-fields.ts'
import { singleReadingAsFilter } from '../../src/search/page/payment-repository.ts'
import { makeGuess, type Step } from '../../src/search/plan/ladder.ts'
import { pageStatement } from '../../src/search/plan/sql/page-statement.ts'
import { type Way, waysOf } from '../../src/search/plan/ways.ts'
import type { PageQuery } from '../../src/search/query/page-query.ts'
import {
  type AccountStatistics,
  type StatisticsRow,
  statisticsOfRows,
  statisticsStatement,
} from '../../src/search/sql/account-statistics.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'

// Which ways each search tries, in which order, and that PostgreSQL reads each by the indexes that the way names, on 40,000 generated payments.

let database: TestDatabase
let statistics: AccountStatistics
let known: Record<'payer' | 'payee', Buffer>

beforeAll(async () => {
  database = await createTestDatabase()
  await loadPayments({ knex: database.knex, rows: 40_000, seed: 1, connections: 2, say: () => {} })
  const { sql, bindings } = statisticsStatement(1).toSQL()
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
async function indexesOf(statement: Statement): Promise<string[]> {
  const { rows } = await database.knex.raw('explain (format json) ?', [statement])
  const nodes = flatten((rows[0]['QUERY PLAN'] as [{ Plan: PlanNode }])[0].Plan)
  const scans = nodes
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => `all of ${node['Relation Name']}`)
  const used = new Set([...nodes.flatMap((node) => node['Index Name'] ?? []), ...scans])
  return [...used].filter((name) => !OF_THE_ROWS.includes(name)).toSorted()
}

const OF_THE_ROWS = ['payments_pkey', 'account_changes_pkey']

/** What the names of sources that are no single index stand for. */
const STANDS_FOR: Readonly<Record<string, readonly string[]>> = {
  transactions: ['payments_account_id_tx_hash_event_index_network_key', 'payments_refund_tx', 'payments_source_tx'],
  texts: ['payments_reference', 'payments_payment_reference'],
  references: ['payments_reference'],
}

/** Both indexes of a wallet hold all its payments: of few, either may be read. */
const withoutUsd = (name: string) => name.replace(/^(payments_(?:payer|payee))_usd$/, '$1')

const namesOf = (parts: Way['parts']) => [...new Set(parts.map(({ index }) => index))].toSorted()

/** `walk payments_payer`, and behind a slash the index that has every column, where it is another. */
function nameOf({ kind, parts, covering }: Way): string {
  const names = [parts, ...(covering === undefined ? [] : [covering])].map((each) => namesOf(each).join(', '))
  return `${kind} ${[...new Set(names)].join(' / ')}`
}

function expectedOf({ way, isCovered }: Step): readonly string[] {
  const names = namesOf((isCovered ? way.covering : undefined) ?? way.parts)
  return names.flatMap((name) => STANDS_FOR[name] ?? [name]).toSorted()
}

const position = (keys: readonly (string | number | null)[], direction: 'forward' | 'backward' = 'forward') =>
  ({ keys, id: '80000000-0000-4000-8000-000000000000', inclusive: false, direction }) as const
const AT = '2025-01-15T00:00:00.000Z'
const MONTH = { fromDate: Date.UTC(2025, 0, 1), toDate: Date.UTC(2025, 1, 1) }
const YEAR = { fromDate: Date.UTC(2024, 0, 1), toDate: Date.UTC(2025, 0, 1) }
const WEB = ['channel=web']
const MAIL = ['channel=mail']
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
  ['dates by amount', () => MONTH, byAmount, ['gather payments_date / payments_status', 'walk payments_usd']],
  ['dates by status', () => MONTH, byStatus, ['walk payments_status']],
  [
    'amounts',
    () => ({ minAmount: '100', maxAmount: '101' }),
    {},
    ['gather payments_usd', 'walk payments_date / payments_status'],
  ],
  [
    'amounts of many',
    () => ({ minAmount: '100', maxAmount: '200' }),
    {},
    ['walk payments_date / payments_status', 'gather payments_usd'],
  ],
  [
    'amounts of a frequent network',
    () => ({ network: ['BASE'], minAmount: '100', maxAmount: '200' }),
    {},
    ['walk payments_network, payments_source_network', 'gather payments_usd'],
  ],
  ['amounts by amount', () => ({ minAmount: '100', maxAmount: '101' }), byAmount, ['walk payments_usd']],
  [
    'two ranges',
    () => ({ ...YEAR, minAmount: '10', maxAmount: '20' }),
    {},
    ['walk payments_date / payments_status', 'gather payments_usd'],
  ],
  [
    'two ranges by amount',
    () => ({ ...YEAR, minAmount: '10', maxAmount: '20' }),
    byAmount,
    ['walk payments_usd', 'gather payments_date / payments_status'],
  ],
  ['a status', () => ({ status: ['FAILED'] }), {}, ['walk payments_status']],
  ['a status by amount', () => ({ status: ['FAILED'] }), byAmount, ['gather payments_status', 'walk payments_usd']],
  ['a type', () => ({ type: ['RECURRING'] }), {}, ['walk payments_date / payments_status']],
  ['a type by status', () => ({ type: ['RECURRING'] }), byStatus, ['walk payments_status']],
  ['a network', () => ({ network: ['GNOSIS'] }), {}, ['walk payments_network, payments_source_network']],
  [
    'a network that is a source alone',
    () => ({ network: ['MANTLE'] }),
    {},
    ['walk payments_network, payments_source_network'],
  ],
  [
    'currencies without any US dollars, by amount in US dollars',
    () => ({ currency: [...doge, { of: 'payment', symbol: 'YFI' }] }),
    byAmount,
    ['gather payments_amount', 'walk payments_usd'],
  ],
  [
    'a network by amount',
    () => ({ network: ['GNOSIS'] }),
    byAmount,
    ['walk payments_usd', 'gather payments_network, payments_source_network'],
  ],
  [
    'a network and a status',
    () => ({ network: ['GNOSIS'], status: ['FAILED'] }),
    {},
    ['walk payments_status', 'walk payments_network, payments_source_network'],
  ],
  ['a currency', () => ({ currency: doge }), {}, ['walk payments_currency']],
  [
    'a currency of one network',
    () => ({ currency: dogeOfBase }),
    {},
    ['gather payments_amount', 'walk payments_currency'],
  ],
  ['a currency by amount', () => ({ currency: usdc }), byAmount, ['walk payments_amount']],
  [
    'a currency and amounts',
    () => ({ currency: usdc, minAmount: '10', maxAmount: '11' }),
    {},
    ['gather payments_amount', 'walk payments_currency'],
  ],
  [
    'a fiat currency',
    () => ({ currency: eur }),
    {},
    ['gather payments_invoice_amount', 'walk payments_date / payments_status'],
  ],
  ['a fiat currency by amount', () => ({ currency: eur }), byAmount, ['walk payments_invoice_amount']],
  [
    'a token that was invoiced, by amount',
    () => ({ invoiceCurrency: invoicedUsdc }),
    byAmount,
    ['walk payments_invoice_amount', 'gather payments_invoice_amount'],
  ],
  ['a payer', () => ({ payer: wallet('payer') }), {}, ['walk payments_payer']],
  ['a payee by amount', () => ({ payee: wallet('payee') }), byAmount, ['walk payments_payee_usd']],
  ['a payee by status', () => ({ payee: wallet('payee') }), byStatus, ['walk payments_payee']],
  ['a wallet', () => ({ walletAddress: wallet('payee') }), {}, ['walk payments_payee, payments_payer']],
  [
    'very many wallets',
    () => ({ walletAddress: manyWallets() }),
    {},
    ['walk payments_date', 'gather payments_payee, payments_payer', 'walk payments_payee, payments_payer'],
  ],
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
    ['walk payments_payee', 'walk payments_network, payments_source_network'],
  ],
  [
    'a payee and a currency by amount',
    () => ({ payee: wallet('payee'), currency: usdc }),
    byAmount,
    ['gather payments_payee', 'walk payments_amount'],
  ],
  [
    'a payer and a payee',
    () => ({ payer: wallet('payer'), payee: wallet('payee') }),
    {},
    ['walk payments_payer', 'walk payments_payee'],
  ],
  [
    "a merchant's reference and a payee",
    () => ({ reference: ['INV-7'], payee: wallet('payee') }),
    {},
    ['walk payments_payee', 'walk payments_reference'],
  ],
  ['a transaction', () => ({ txHash: [`0x${'00'.repeat(32)}`] }), {}, ['gather transactions']],
  ['a request', () => ({ requestId: [`01${'00'.repeat(32)}`] }), {}, ['walk payments_request_id']],
  [
    'a payment reference',
    () => ({ paymentReference: [`0x${'00'.repeat(8)}`] }),
    byAmount,
    ['gather payments_payment_reference', 'walk payments_usd'],
  ],
  ["the merchant's reference", () => ({ reference: ['INV-7'] }), {}, ['walk payments_reference']],
  [
    "a beginning of the merchant's references",
    () => ({ referencePrefix: 'INV-7' }),
    {},
    ['gather references', 'walk payments_date'],
  ],
  ['statuses that are left', () => ({ 'exclude.status': ['CONFIRMED', 'PARTIAL'] }), {}, ['walk payments_status']],
  [
    'no network that is excluded',
    () => ({ 'exclude.network': ['BASE'] }),
    {},
    ['walk payments_date / payments_status'],
  ],
  ['no payer that is excluded', () => ({ 'exclude.payer': wallet('payer') }), {}, ['walk payments_date']],
  [
    "the merchant's reference and a status, by amount",
    () => ({ reference: ['INV-7'], status: ['FAILED'] }),
    byAmount,
    ['gather payments_reference', 'gather payments_status', 'walk payments_usd'],
  ],
  ['a pair', () => ({ metadata: WEB }), {}, ['walk payment_metadata_pair']],
  ['a pair by amount', () => ({ metadata: WEB }), byAmount, ['walk payment_metadata_usd']],
  [
    'a later page of a pair by amount',
    () => ({ metadata: MAIL }),
    { ...byAmount, position: position(['500']) },
    ['walk payment_metadata_usd'],
  ],
  [
    'a pair in one currency, by amount',
    () => ({ metadata: WEB, currency: [{ of: 'payment', symbol: 'USDC' }] }),
    byAmount,
    ['walk payment_metadata_amount'],
  ],
  ['a pair by change', () => ({ metadata: WEB }), { sortBy: 'changed' }, ['walk payment_metadata_changed']],
  ['a pair by status', () => ({ metadata: MAIL }), byStatus, ['walk payment_metadata_pair']],
  [
    'pairs of two keys',
    () => ({ metadata: [...WEB, 'order=0011223344ff'] }),
    {},
    ['walk payment_metadata_pair', 'walk payment_metadata_pair'],
  ],
  [
    'a pair and a status, by amount',
    () => ({ metadata: WEB, status: ['FAILED'] }),
    byAmount,
    ['gather payment_metadata_pair', 'walk payment_metadata_usd', 'gather payments_status'],
  ],
  [
    'a pair and a payee',
    () => ({ metadata: WEB, payee: wallet('payee') }),
    {},
    ['walk payments_payee', 'walk payment_metadata_pair'],
  ],
  [
    'a pair and a network',
    () => ({ metadata: MAIL, network: ['GNOSIS'] }),
    {},
    ['walk payment_metadata_pair', 'walk payments_network, payments_source_network'],
  ],
]

/** Of a status that nearly all payments have, PostgreSQL may as well read the index of all payments. */
const isNamed = (step: Step) => (name: string) =>
  name !== 'payments_date' || !expectedOf(step).includes('payments_status')

describe('PostgreSQL reads every way by the indexes that it names for', () => {
  test.each(cases)('%s', async (_, filterOf, given, names) => {
    const query: PageQuery = {
      sortBy: 'date',
      sortOrder: 'desc',
      rows: 21,
      ...given,
      filter: statusesLeft(singleReadingAsFilter({ ...filterOf(), accountId: 1 })),
    }
    const costOf = (way: Way) => makeGuess(query, statistics)(way).cost
    const ways = waysOf(query).toSorted((one, other) => costOf(one) - costOf(other))
    expect(ways.map(nameOf)).toEqual(names)
    const reads = ({ kind, covering }: Way) =>
      covering === undefined ? [false] : kind === 'gather' ? [true] : [false, true]
    const steps = ways.flatMap((way) => reads(way).map((isCovered): Step => ({ way, limit: 100, isCovered })))
    for (const step of steps) {
      const used = await indexesOf(pageStatement(step, { query, columns: ['id', 'fees'] }))
      const expected = expectedOf(step)
      const found = new Set(used.filter(isNamed(step)).map(withoutUsd))
      expect({ step, found: [...found] }).toEqual({ step, found: expected.map(withoutUsd) })
    }
  })
})
