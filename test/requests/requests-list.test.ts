/** The list and the sums of requests compared with a brute-force filter over the same rows; walks; what is stored of a request's standing. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import type { Account } from '../../src/domain/account.ts'
import { formatAddress } from '../../src/domain/address.ts'
import { parseFiatCode, symbolOfCurrency } from '../../src/domain/currency.ts'
import { type Decimal, formatDecimal, readStoredDecimal, sumDecimals } from '../../src/domain/decimal.ts'
import { hexToBytes } from '../../src/domain/hex.ts'
import {
  type PaymentRequest,
  type RequestBalance,
  type RequestStatus,
  requestStatuses,
  type SettledStatus,
} from '../../src/domain/payment-request.ts'
import type { ListInput } from '../../src/requests/list-requests.ts'
import { createRequests, type DatedTerms, type Requests } from '../../src/requests/requests.ts'
import type { AttemptOptions } from '../../src/requests/sql/request-attempts.ts'
import { createRequestListRepository } from '../../src/requests/sql/request-list-repository.ts'
import { createRequestRepository, type RequestWithBalance } from '../../src/requests/sql/request-repository.ts'
import {
  createSummarizeRequests,
  type RequestGroup,
  type SummarizeRequests,
} from '../../src/requests/summarize-requests.ts'
import { lockAccount } from '../../src/store/payment-changes.ts'
import { settleStored } from '../../src/store/request-ledger.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { findDifferences } from '../support/data/ledger.ts'
import { addressOf, sampleChainDirectory, sampleTokenDirectory } from '../support/sample-chains.ts'

let database: TestDatabase
let requests: Requests
/** The service as it is made, and with each of {@link ATTEMPTS}. */
let services: readonly Requests[]
let shop: Account
let other: Account
let summarize: SummarizeRequests
/** The stored requests of `shop` with their expected status and what they are paid, newest first. */
let mine: { request: PaymentRequest; status: RequestStatus; balance: RequestBalance }[]

const random = seededRandom(31)
const anyOrder = () => random()
/** Low limits, so that attempts are cut, and sources in any order. */
const ATTEMPTS: readonly AttemptOptions[] = [
  { multiples: [0.01, 0.2, 0.5, 1], costOf: anyOrder },
  { multiples: [0.1, 1, 2], costOf: anyOrder },
  { multiples: [], costOf: anyOrder },
]

const START = Date.UTC(2026, 0, 1)
const HOUR_MS = 3_600_000

beforeAll(async () => {
  database = await createTestDatabase()
  const { knex } = database
  const common = {
    lists: createRequestListRepository(knex),
    known: { chains: sampleChainDirectory, tokens: sampleTokenDirectory },
    now: () => new Date(START),
  }
  summarize = createSummarizeRequests({ ...common, knex })
  services = [undefined, ...ATTEMPTS].map((attempts) =>
    createRequests({
      ...common,
      lists: createRequestListRepository(knex, attempts),
      repository: createRequestRepository(knex),
      cursorSecret: Buffer.alloc(32, 7),
      onStored: async () => {},
      originsOf: async () => new Set<string>(),
    }),
  )
  requests = services[0] as Requests
  const accounts = createApiKeyRepository(knex)
  shop = await accounts.ensureAccount('shop')
  other = await accounts.ensureAccount('other')
  // The other account has the same ids and terms, so that a statement without the account finds too many.
  for (const account of [other, shop]) await requests.storeAll(account, entries)
  const statuses = await payRequests()
  await renameTwo()
  await cancelSome()
  const { requests: all } = await listAll({})
  mine = all.map(({ request, balance }) => ({
    request,
    balance,
    status: closedOr(statuses.get(request.requestId) ?? 'OPEN', request),
  }))
})
afterAll(() => database.drop())

const idOf = (n: number) => `01${n.toString(16).padStart(64, '0')}`
const pick = <T>(values: readonly T[], n: number) => values[n % values.length] as T

const COUNT = 240

/** Several requests in one millisecond, and hours without any. */
const entries: readonly DatedTerms[] = Array.from({ length: COUNT }, (_, n) => {
  const paymentCurrency = pick(
    ['USDC-BASE', 'DAI-BASE', 'USDC-POLYGON', 'USDC.e-POLYGON', 'ETH-BASE'],
    n * 7 + (n >> 3),
  )
  return {
    terms: {
      payee: formatAddress(addressOf(0x700 + (n % 11 === 0 ? n % 3 : 9))),
      amount: '10',
      paymentCurrency,
      invoiceCurrency: pick([paymentCurrency, paymentCurrency, 'USD', 'EUR'], n),
      requestId: idOf((n * 7919) % 10_007),
      salt: '00'.repeat(8),
      // Before, at and after the moment of the test, or never.
      ...(n % 5 !== 0 && { expiresAt: new Date(START + ((n % 5) - 2) * HOUR_MS).toISOString() }),
      ...(n % 4 !== 0 && { reference: pick(['INV-1', 'inv-1', 'a,b', `INV-${n}`], n) }),
    },
    createdAt: new Date(START - Math.floor(n / 5) * HOUR_MS),
  }
})

type Paid = { readonly amount: string; readonly final: boolean; readonly status: number; readonly counts?: boolean }

/** Payments of a request, and the status that they make. Requests take these one after the other. */
const payments: readonly (readonly [SettledStatus, readonly Paid[]])[] = [
  ['OPEN', []],
  ['PARTIALLY_PAID', [{ amount: '4', final: true, status: 2 }]],
  ['PARTIALLY_PAID', [{ amount: '4', final: false, status: 1 }]],
  [
    'PENDING',
    [
      { amount: '4', final: true, status: 2 },
      { amount: '6', final: false, status: 1 },
    ],
  ],
  [
    'PAID',
    [
      { amount: '4', final: true, status: 3 },
      { amount: '6.5', final: true, status: 3 },
    ],
  ],
  [
    'PAID',
    [
      { amount: '10', final: true, status: 4 },
      { amount: '3', final: true, status: 3 },
    ],
  ],
  ['PAID', [{ amount: '10', final: true, status: 3 }]],
  ['REFUNDED', [{ amount: '10', final: true, status: 4 }]],
  // These payments count for nothing: one failed, one is in a currency in which the request is not counted.
  ['OPEN', [{ amount: '10', final: true, status: 5 }]],
  ['OPEN', [{ amount: '10', final: true, status: 4, counts: false }]],
  [
    'REFUNDED',
    [
      { amount: '10', final: true, status: 4 },
      { amount: '10', final: true, status: 3, counts: false },
    ],
  ],
]

function closedOr(status: SettledStatus, { cancelledAt, expiresAt }: PaymentRequest): RequestStatus {
  if (status !== 'OPEN' && status !== 'PARTIALLY_PAID') return status
  if (cancelledAt !== undefined) return 'CANCELLED'
  return expiresAt !== undefined && expiresAt.getTime() <= START ? 'EXPIRED' : status
}

async function payRequests(): Promise<Map<string, SettledStatus>> {
  const statuses = new Map<string, SettledStatus>()
  const rows = entries.flatMap(({ terms }, n) => {
    const [status, paid] = pick(payments, n * 3 + (n >> 4))
    statuses.set(terms.requestId ?? '', status)
    return paid.map((payment) => ({ ...rowOf(payment), request_id: hexToBytes(terms.requestId ?? '') }))
  })
  const { knex } = database
  await knex('payments').insert(rows.map((row, n) => ({ ...row, id: paymentIdOf(n) })))
  await settleAll()
  return statuses
}

function settleAll(): Promise<void> {
  const ids = entries.map(({ terms }) => hexToBytes(terms.requestId ?? ''))
  return database.knex.transaction(async (trx) => settleStored(await lockAccount(trx, shop.id, new Date(START)), ids))
}

const paymentIdOf = (n: number) => `00000000-0000-8000-8000-${String(n).padStart(12, '0')}`

function rowOf({ amount, final, status, counts = true }: Paid) {
  return {
    account_id: shop.id,
    status,
    final,
    imported: true,
    timestamp: new Date(START),
    updated_at: new Date(START),
    network: 'BASE',
    currency: 'POINTS-ELSEWHERE',
    currency_symbol: 'POINTS',
    amount,
    refunded_amount: status === 4 ? amount : '0',
    invoice_amount: counts ? amount : null,
  }
}

async function cancelSome(): Promise<void> {
  const cancelled = entries.filter((_, n) => n % 6 === 1).map(({ terms }) => hexToBytes(terms.requestId ?? ''))
  const { knex } = database
  await knex('requests')
    .where({ account_id: shop.id })
    .whereIn('request_id', cancelled)
    .update({ cancelled_at: new Date(START) })
}

/** Changes two requests to a chain that is not configured, as if it had been removed from the chains file. */
async function renameTwo(): Promise<void> {
  const { knex } = database
  const ids = await knex('requests').where({ account_id: shop.id }).orderBy('request_id').limit(2).pluck('request_id')
  const names = { network: 'OLDNET', payment_currency: 'BEADS-OLDNET', invoice_currency: 'BEADS-OLDNET' }
  await knex('requests').where({ account_id: shop.id }).whereIn('request_id', ids).update(names)
}

/** Walks forward to the end, then back to the beginning. Returns the requests of both walks, each newest first. */
async function listAll(input: ListInput, service = requests) {
  const pages: RequestWithBalance[][] = []
  let page = await service.list(shop, { ...input, includeTotal: 'exact' })
  const { total } = page
  pages.push([...page.requests])
  while (page.nextCursor !== undefined) {
    page = await service.list(shop, { cursor: page.nextCursor })
    pages.push([...page.requests])
  }
  const back = [[...page.requests]]
  while (page.prevCursor !== undefined) {
    page = await service.list(shop, { cursor: page.prevCursor })
    back.unshift([...page.requests])
  }
  return { requests: pages.flat(), pages, back: back.flat(), total }
}

/** The oracle: whether one request matches the filters. */
function matches({ request, status, balance }: (typeof mine)[number], input: ListInput): boolean {
  const oneOf = (values: readonly string[] | undefined, is: (value: string) => boolean) =>
    values === undefined || values.length === 0 || values.some(is)
  const isOr = (asked: boolean | undefined, is: boolean) => asked === undefined || asked === is
  const at = request.createdAt.getTime()
  return (
    oneOf(input.status, (value) => value === status) &&
    oneOf(input.reference, (value) => value === request.reference) &&
    oneOf(input.requestId, (value) => value === request.requestId) &&
    oneOf(input.payee, (value) => value.toLowerCase() === request.payee) &&
    oneOf(input.network, (value) => (networks[value] ?? value) === request.network) &&
    oneOf(input.currency, (value) => isCurrency(request, value)) &&
    (input.fromDate === undefined || at >= Date.parse(input.fromDate)) &&
    (input.toDate === undefined || at <= Date.parse(input.toDate)) &&
    isOr(input.overpaid, balance.overpaidAmount.units > 0n)
  )
}

const networks: Readonly<Record<string, string>> = {
  base: 'BASE',
  matic: 'POLYGON',
  '137': 'POLYGON',
  oldnet: 'OLDNET',
}

function isCurrency({ paymentCurrency, invoiceCurrency }: PaymentRequest, value: string): boolean {
  const symbol = symbolOfCurrency(paymentCurrency)
  if (parseFiatCode(value) !== undefined) return invoiceCurrency === parseFiatCode(value)
  const [asked = '', chain] = value.split('-')
  if (chain === undefined) return symbol.toLowerCase() === asked.toLowerCase()
  return paymentCurrency.toLowerCase() === `${asked}-${networks[chain] ?? chain}`.toLowerCase()
}

const some = <T>(arbitrary: fc.Arbitrary<T>, maxLength = 3) =>
  fc.option(fc.array(arbitrary, { minLength: 1, maxLength }), { nil: undefined })
const hours = fc.integer({ min: -2, max: 50 }).map((n) => new Date(START - n * HOUR_MS).toISOString())

const arbitraryInput: fc.Arbitrary<ListInput> = fc
  .record(
    {
      status: some(fc.constantFrom(...requestStatuses)),
      reference: some(fc.constantFrom('INV-1', 'inv-1', 'a,b', 'INV-2', 'nothing', 'INV-7')),
      requestId: some(
        fc.nat(COUNT + 20).map((n) => idOf((n * 7919) % 10_007)),
        40,
      ),
      payee: some(fc.constantFrom(0x700, 0x701, 0x702, 0x709, 0x999).map((n) => formatAddress(addressOf(n)))),
      network: some(fc.constantFrom('base', 'BASE', 'matic', '137', 'POLYGON', 'TRON', 'oldnet')),
      currency: some(
        fc.constantFrom('usdc', 'USDC.e', 'usdc-matic', 'ETH-base', 'DAI', 'EUR', 'usd', 'BEADS', 'beads-oldnet'),
      ),
      fromDate: fc.option(hours, { nil: undefined }),
      toDate: fc.option(hours, { nil: undefined }),
      overpaid: fc.option(fc.boolean(), { nil: undefined }),
      limit: fc.constantFrom(1, 7, 40, 100),
    },
    { requiredKeys: ['limit'] },
  )
  .filter(({ fromDate, toDate }) => fromDate === undefined || toDate === undefined || fromDate <= toDate)

const idsOf = (found: readonly { request: PaymentRequest }[]) => found.map(({ request }) => request.requestId)

describe('the list of requests', () => {
  it('has what a brute-force filter finds, newest first, for any filters and attempts, forward and back', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryInput, async (input) => {
        const expected = mine.filter((each) => matches(each, input))
        // Longer walks take too much time.
        fc.pre(expected.length <= (input.limit ?? 0) * 30)
        for (const service of services) {
          const { requests: found, pages, back, total } = await listAll(input, service)
          expect(idsOf(found)).toEqual(idsOf(expected))
          expect(found.map(({ balance }) => balance.status)).toEqual(expected.map(({ status }) => status))
          expect(idsOf(back)).toEqual(idsOf(expected))
          expect(pages.slice(0, -1).every(({ length }) => length === input.limit)).toBe(true)
          expect(total).toEqual({ count: expected.length, relation: 'EXACT' })
        }
      }),
      { numRuns: 100 },
    )
  })

  it.each<ListInput>([
    { overpaid: true },
    { overpaid: false },
    ...requestStatuses.map((status) => ({ status: [status] })),
    { status: ['OPEN', 'EXPIRED'] },
    { status: ['CANCELLED', 'PAID'], overpaid: false },
  ])('is filtered by %j alone', async (input) => {
    const expected = mine.filter((each) => matches(each, input))
    expect(expected.length).toBeGreaterThan(4)
    expect(expected.length).toBeLessThan(mine.length)
    for (const service of services) {
      const { requests: found, back } = await listAll({ ...input, limit: 3 }, service)
      expect([idsOf(found), idsOf(back)]).toEqual([idsOf(expected), idsOf(expected)])
    }
  })

  it('of overpaid requests that are still to be paid is empty', async () => {
    for (const status of ['OPEN', 'PARTIALLY_PAID', 'CANCELLED', 'EXPIRED'] as const) {
      expect((await listAll({ status: [status], overpaid: true })).total).toEqual({ count: 0, relation: 'EXACT' })
    }
  })

  it('is empty from after the last millisecond of the year 9999', async () => {
    const { requests: found } = await requests.list(shop, { fromDate: '9999-12-31T23:59:59.9999Z' })
    expect(found).toEqual([])
  })

  it('is ordered by creation time and then by id, both descending', () => {
    const keys = mine.map(({ request }) => [request.createdAt.toISOString(), request.requestId] as const)
    const sorted = keys.toSorted((a, b) => (a[0] === b[0] ? (a[1] < b[1] ? 1 : -1) : a[0] < b[0] ? 1 : -1))
    expect(keys).toEqual(sorted)
    expect(new Set(keys.map(([at]) => at)).size).toBeLessThan(keys.length)
  })

  it('has requests of every status, each as its payments make it', async () => {
    expect(new Set(mine.map(({ status }) => status))).toEqual(new Set(requestStatuses))
    expect(await findRequestDifferences()).toEqual([])
  })

  it('leads back when nothing after the cursor matches any more', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('emptied')
    await requests.storeAll(account, entries.slice(0, 6))
    const first = await requests.list(account, { status: ['OPEN'], limit: 3 })
    const seen = new Set(idsOf(first.requests))
    const later = entries.slice(0, 6).filter(({ terms }) => !seen.has(terms.requestId ?? ''))
    await database
      .knex('requests')
      .where({ account_id: account.id })
      .whereIn(
        'request_id',
        later.map(({ terms }) => hexToBytes(terms.requestId ?? '')),
      )
      .update({ status: 4 })
    const empty = await requests.list(account, { cursor: first.nextCursor })
    expect(empty).toMatchObject({ requests: [], prevCursor: expect.any(String) })
    expect(empty.nextCursor).toBeUndefined()
    const back = await requests.list(account, { cursor: empty.prevCursor })
    expect(idsOf(back.requests)).toEqual(idsOf(first.requests))
  })

  it('answers AT_LEAST and ESTIMATED only for more matches than it counts', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('many')
    await database.knex.raw(
      `insert into requests (account_id, request_id, salt, payment_reference, topic, payee, amount, invoice_currency, payment_currency,
         network, created_at)
       select ?, decode('01' || lpad(to_hex(n), 64, '0'), 'hex'), '\\x0000000000000000', decode(lpad(to_hex(n), 16, '0'), 'hex'),
         decode(lpad(to_hex(n), 64, '0'), 'hex'), '\\x01' || decode(lpad('7', 40, '0'), 'hex'), 1, 'USDC-BASE', 'USDC-BASE', 'BASE', now()
       from generate_series(1, 10001) n`,
      [account.id],
    )
    await database.knex.raw('analyze requests')
    const totalOf = async (input: ListInput) => (await requests.list(account, { limit: 1, ...input })).total
    expect(await totalOf({})).toBeUndefined()
    expect(await totalOf({ includeTotal: 'exact' })).toEqual({ count: 10_000, relation: 'AT_LEAST' })
    expect(await totalOf({ includeTotal: 'exact', status: ['PAID'] })).toEqual({ count: 0, relation: 'EXACT' })
    expect(await totalOf({ includeTotal: 'exact', status: ['OPEN'] })).toEqual({ count: 10_000, relation: 'AT_LEAST' })
    const estimatedOpen = await totalOf({ includeTotal: 'estimated', status: ['OPEN'], overpaid: false })
    expect(estimatedOpen?.count).toBeGreaterThan(5_000)
    const estimated = await totalOf({ includeTotal: 'estimated', network: ['base'] })
    expect(estimated?.relation).toBe('ESTIMATED')
    expect(estimated?.count).toBeGreaterThan(5_000)
    expect(estimated?.count).toBeLessThan(20_000)
    await database.knex('requests').where({ account_id: account.id }).delete()
  })
})

async function findRequestDifferences() {
  const differences = await findDifferences(database.knex)
  return differences.filter(({ check, account }) => account === 'shop' && (check === 'request' || check === 'payment'))
}

describe('what is stored of a request', () => {
  it.each<[string, object]>([
    ['status', { status: 1 }],
    ['what is paid', { paid: 1 }],
    ['what is pending', { pending: 7 }],
    ['what is held', { held: 77 }],
    ['that it is overpaid', { overpaid: true }],
  ])('is found and repaired where it does not follow from the payments: %s', async (_, damage) => {
    const { knex } = database
    const all = () => knex('requests').where({ account_id: shop.id }).orderBy('request_id')
    const before = await all()
    await knex('requests').where({ account_id: shop.id }).update(damage)
    const differences = await findRequestDifferences()
    expect(differences.length).toBeGreaterThan(COUNT / 2)
    expect(differences[0]).toMatchObject({ check: 'request' })
    await settleAll()
    expect(await findRequestDifferences()).toEqual([])
    const known = ({ overpaid, ...row }: { overpaid: boolean | null }) => ({ ...row, overpaid: overpaid ?? false })
    expect((await all()).map(known)).toEqual(before.map(known))
  })
})

describe('the sums of requests', () => {
  it('are those of what a brute-force filter finds, for any filters', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryInput, async (input) => {
        const expected = mine.filter((each) => matches(each, input))
        const { groups, count } = await summarize(shop, input)
        expect(count).toBe(expected.length)
        expect(groups).toEqual(groupsOf(expected))
      }),
      { numRuns: 100 },
    )
  })

  it('are exact for the largest amounts, and of one account', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('rich')
    const most = `${(2n ** 256n - 1n) / 10n ** 18n}`
    const terms = { payee: formatAddress(addressOf(0x700)), paymentCurrency: 'ETH-BASE', invoiceCurrency: 'ETH-BASE' }
    for (const amount of [most, '0.000000000000000001', '1']) await requests.create(account, { ...terms, amount })
    await requests.create(account, { ...terms, amount: '0.10000001', invoiceCurrency: 'EUR' })
    const { groups } = await summarize(account, { status: ['OPEN', 'PARTIALLY_PAID'] })
    const more = `${BigInt(most) + 1n}.000000000000000001`
    expect(
      groups.map(({ symbol, network, count, outstandingAmount }) => [
        symbol,
        network,
        count,
        formatDecimal(outstandingAmount),
      ]),
    ).toEqual([
      ['ETH', 'BASE', 3, more],
      ['EUR', undefined, 1, '0.10000001'],
    ])
  })

  it('of more currencies than a summary has groups are refused', async () => {
    const account = await createApiKeyRepository(database.knex).ensureAccount('collector')
    await database.knex.raw(
      `insert into requests (account_id, request_id, salt, payment_reference, topic, payee, amount, invoice_currency, payment_currency,
         network, created_at)
       select ?, decode('01' || lpad(to_hex(n), 64, '0'), 'hex'), '\\x0000000000000000', decode(lpad(to_hex(n), 16, '0'), 'hex'),
         decode(lpad(to_hex(n), 64, '0'), 'hex'), '\\x01' || decode(lpad('7', 40, '0'), 'hex'), 1, 'T' || n || '-BASE', 'USDC-BASE', 'BASE', now()
       from generate_series(1, 10001) n`,
      [account.id],
    )
    await expect(summarize(account, {})).rejects.toMatchObject({
      reason: 'TOO_MANY_GROUPS',
      metadata: { limit: '10000' },
    })
    await database.knex('requests').where({ account_id: account.id }).delete()
  })
})

/** The oracle of sums: what the list says of each request, added up. */
function groupsOf(expected: typeof mine): readonly RequestGroup[] {
  return [...Map.groupBy(expected, ({ request }) => request.invoiceCurrency)]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([invoiceCurrency, each]) => {
      const sum = (amountOf: (one: (typeof mine)[number]) => Decimal) =>
        readStoredDecimal(formatDecimal(sumDecimals(each.map(amountOf))))
      const [, network] = invoiceCurrency.split('-')
      return {
        invoiceCurrency,
        symbol: symbolOfCurrency(invoiceCurrency),
        network,
        count: each.length,
        amount: sum(({ request }) => request.amount),
        paidAmount: sum(({ balance }) => balance.paidAmount),
        pendingAmount: sum(({ balance }) => balance.pendingAmount),
        outstandingAmount: sum(({ balance }) => balance.outstandingAmount),
        overpaidAmount: sum(({ balance }) => balance.overpaidAmount),
      }
    })
}

describe('cursors', () => {
  it.each<[string, ListInput]>([
    ['reference', { reference: ['INV-2'] }],
    ['requestId', { requestId: [idOf(1)] }],
    ['payee', { payee: [addressOf(0x709)] }],
    ['network', { network: ['matic'] }],
    ['currency', { currency: ['DAI'] }],
    ['fromDate', { fromDate: '2020-01-01' }],
    ['toDate', { toDate: '2030-01-01' }],
    ['status', { status: ['EXPIRED'] }],
    ['overpaid', { overpaid: false }],
  ])('of one filter are refused beside another %s, and taken beside the same', async (field, input) => {
    const carried = { network: ['base'], reference: ['INV-1', 'inv-1', 'a,b'], limit: 2 }
    const { nextCursor: cursor } = await requests.list(shop, carried)
    await expect(requests.list(shop, { ...input, cursor })).rejects.toMatchObject({
      reason: 'CURSOR_MISMATCH',
      metadata: { field },
    })
    const again = { cursor, network: ['8453'], reference: ['a,b', 'inv-1', 'INV-1', 'INV-1'] }
    expect(idsOf((await requests.list(shop, again)).requests)).toEqual(
      idsOf((await requests.list(shop, { cursor })).requests),
    )
  })

  it('of another account are refused, even of one with the same requests', async () => {
    const { nextCursor: cursor } = await requests.list(other, { limit: 2 })
    await expect(requests.list(shop, { cursor })).rejects.toMatchObject({ reason: 'INVALID_CURSOR' })
  })
})
