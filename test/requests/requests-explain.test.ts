import type { Knex } from 'knex'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { findMatching } from '../../src/requests/list-requests.ts'
import type { FilterInput } from '../../src/requests/rules/request-filter.ts'
import { attemptsAt, type PagePosition, pageStatement } from '../../src/requests/sql/request-attempts.ts'
import { createRequestListRepository } from '../../src/requests/sql/request-list-repository.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { sampleChainDirectory, sampleTokenDirectory } from '../support/sample-chains.ts'

// How many index entries a page of requests reads, and of which index, on 20,000 requests of an account.

let database: TestDatabase
let options: Parameters<typeof findMatching>[0]
let shop: Account

beforeAll(async () => {
  database = await createTestDatabase()
  const { knex } = database
  shop = await createApiKeyRepository(knex).ensureAccount('shop')
  options = {
    lists: createRequestListRepository(knex),
    known: { chains: sampleChainDirectory, tokens: sampleTokenDirectory },
    now: () => new Date('2026-01-01'),
  }
  await knex.raw(FILL, [shop.id])
  await knex.raw('vacuum analyze requests')
})
afterAll(() => database.drop())

/**
 * One payee has nine of ten requests; POLYGON was used in the first quarter only; 85 of 100 are paid and ten open, and the refunded ones are old.
 * Few are in euros, overpaid or cancelled, and every second one expires after a month.
 */
const FILL = `insert into requests (account_id, request_id, salt, payment_reference, topic, payee, amount, invoice_currency, payment_currency,
    network, reference, created_at, status, expires_at, cancelled_at, overpaid)
  select ?, decode('01' || lpad(to_hex(n), 64, '0'), 'hex'), '\\x00', decode(lpad(to_hex(n), 16, '0'), 'hex'), decode(lpad(to_hex(n), 64, '0'), 'hex'),
    decode('01' || lpad(to_hex(case when n % 10 < 9 then 7 else 1000 + n % 100 end), 40, '0'), 'hex'), 10,
    case when n % 7 = 0 then 'USD' when n % 5000 = 1 then 'EUR' else currency end, currency, split_part(currency, '-', 2),
    case when n % 100 = 0 then 'CAMPAIGN' else 'INV-' || n end, timestamptz '2023-01-01' + n * interval '1 hour',
    case when n % 100 < 85 then 4 when n % 100 < 95 then 1 when n % 100 = 95 then 2 when n % 100 = 96 then 3 when n < 200 then 5 else 4 end,
    case when n % 2 = 0 then timestamptz '2023-02-01' + n * interval '1 hour' end, case when n % 2000 = 88 then timestamptz '2026-01-01' end,
    n % 2000 = 52
  from generate_series(1, 20000) n
  cross join lateral (
    select case when n < 5000 and n % 3 = 0 then 'USDC-POLYGON' when n % 100 = 3 then 'DAI-BASE' else 'USDC-BASE' end as currency
  ) c`

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Parent Relationship'?: string
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly PlanNode[]
}

const flatten = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(flatten)]

interface Reading {
  /** Of the attempt that gave the page, but for the rows of the page by their ids. */
  readonly indexes: readonly string[]
  readonly attempts: number
  /** Entries and rows of all attempts. */
  readonly entries: number
}

/** Makes the attempts at a page as the list does, and explains each. */
async function readingOf(input: FilterInput, position?: PagePosition): Promise<Reading> {
  const { knex } = database
  const query = { matching: await findMatching(options, shop, input), rows: 21, position }
  const scans: PlanNode[][] = []
  for (const attempt of attemptsAt(query)) {
    const { sql, bindings } = pageStatement(shop, query, attempt).toSQL()
    const { rows } = await knex.raw<Explained>(`explain (analyze, format json) ${sql}`, bindings as Knex.RawBinding[])
    const nodes = flatten(rows[0]?.['QUERY PLAN'][0].Plan as PlanNode)
    scans.push(nodes.filter((node) => node['Relation Name'] === 'requests' || node['Index Name'] !== undefined))
    const { rows: found } = await knex.raw<Found>(sql, bindings as Knex.RawBinding[])
    if (!found[0]?.is_cut || found.length === query.rows) break
  }
  const used = (scans.at(-1) ?? []).filter((node) => node['Actual Loops'] > 0)
  const names = new Set(used.map((node) => withoutUnpaid(node['Index Name'] ?? node['Node Type'])))
  return {
    indexes: [...names].filter((name) => name !== 'requests_pkey' && name !== 'Bitmap Heap Scan').toSorted(),
    attempts: scans.length,
    entries: scans.flat().reduce((sum, node) => sum + entriesOf(node), 0),
  }
}

interface Explained {
  readonly rows: readonly { readonly 'QUERY PLAN': readonly [{ readonly Plan: PlanNode }] }[]
}

interface Found {
  readonly rows: readonly { readonly is_cut: boolean }[]
}

/** Both indexes hold all requests that are still to be paid, and either may be read. */
const withoutUnpaid = (name: string) => (name === 'requests_unpaid' ? 'requests_status' : name)

function entriesOf(node: PlanNode): number {
  return (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']
}

const idOf = (n: number) => `01${n.toString(16).padStart(64, '0')}`
const BUSY = `0x${(7).toString(16).padStart(40, '0')}`
const OTHER = `0x${(1000 + 59).toString(16).padStart(40, '0')}`

const cases: readonly (readonly [string, FilterInput, readonly string[], number])[] = [
  ['no filter', {}, ['requests_created'], 1],
  ['a month', { fromDate: '2023-06-01', toDate: '2023-06-30' }, ['requests_created'], 1],
  ['a frequent status', { status: ['PAID'] }, ['requests_status'], 1],
  ['a rare status', { status: ['REFUNDED'] }, ['requests_status'], 1],
  ['open ones', { status: ['OPEN'] }, ['requests_status'], 1],
  ['expired ones', { status: ['EXPIRED'] }, ['requests_status'], 1],
  ['cancelled ones', { status: ['CANCELLED'] }, ['requests_cancelled'], 1],
  ['overpaid ones', { overpaid: true }, ['requests_overpaid'], 1],
  ['a payee', { payee: [BUSY] }, ['requests_payee'], 1],
  ['a payee and a status that it does not have', { payee: [OTHER], status: ['REFUNDED'] }, ['requests_payee'], 1],
  ['a payee and a network of the past', { payee: [BUSY], network: ['POLYGON'] }, ['requests_payment_currency'], 2],
  ['a payee and a rare currency', { payee: [BUSY], currency: ['EUR'] }, ['requests_invoice_currency'], 2],
  ['a merchant reference', { reference: ['INV-4711'] }, ['requests_merchant_reference'], 1],
  ['one of many requests', { reference: ['CAMPAIGN'] }, ['requests_merchant_reference'], 1],
  ['ids', { requestId: [idOf(4711)], status: ['PAID'] }, [], 1],
  ['a network', { network: ['BASE'] }, ['requests_payment_currency'], 1],
  ['a network and a rare status', { network: ['POLYGON'], status: ['REFUNDED'] }, ['requests_payment_currency'], 1],
  ['a payment currency', { currency: ['DAI'] }, ['requests_payment_currency'], 1],
  ['an invoice currency', { currency: ['USD'] }, ['requests_invoice_currency'], 1],
  ['both', { currency: ['DAI', 'EUR'] }, ['requests_invoice_currency', 'requests_payment_currency'], 1],
  ['a network and an invoice currency', { network: ['POLYGON'], currency: ['USD'] }, ['requests_payment_currency'], 3],
]

describe('a page of requests', () => {
  it.each(cases)('of %s reads few entries of the index', async (_, input, indexes, attempts) => {
    const { entries, ...read } = await readingOf(input)
    expect(read).toEqual({ indexes, attempts })
    expect(entries).toBeLessThan(1_500)
  })

  it.each<[string, FilterInput, string]>([
    ['no filter', {}, 'requests_created'],
    ['dates', { fromDate: '2023-02-01', toDate: '2025-03-01' }, 'requests_created'],
    ['a status', { status: ['PAID'] }, 'requests_status'],
    ['a payee', { payee: [BUSY] }, 'requests_payee'],
    ['a network', { network: ['BASE'] }, 'requests_payment_currency'],
  ])('of %s reads as few in the middle of the list, either way', async (_, input, index) => {
    for (const direction of ['forward', 'backward'] as const) {
      const position = { createdAtMs: Date.parse('2024-03-01'), requestId: idOf(10_000), direction, inclusive: false }
      const { indexes, entries } = await readingOf(input, position)
      expect(indexes).toEqual([index])
      expect(entries).toBeLessThan(600)
    }
  })
})
