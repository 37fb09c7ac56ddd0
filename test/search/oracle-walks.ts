/** Every filter of a search of payments, walked in pages to the end and back and compared with a brute-force filter over the same payments. */
import { expect } from 'vitest'
import { seededRandom } from '../../bench/search/seeded-random.ts'
import { compareDecimals, parseDecimal } from '../../src/domain/decimal.ts'
import { type Payment, rankOfStatus } from '../../src/domain/payment.ts'
import type { SearchInput, SortOrder } from '../../src/search/filter/payment-filter.ts'
import type { SortBy } from '../../src/search/filter/search-fields.ts'
import { createPaymentSearch, type PaymentPage, type PaymentSearch } from '../../src/search/page/payment-search.ts'
import { type LadderOptions, makeGuess } from '../../src/search/plan/ladder.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import {
  chains,
  generatePayments,
  hash,
  insertPayments,
  PAYEES,
  PAYERS,
  PAYMENT_REFERENCES,
  REFERENCES,
  REQUEST_IDS,
  START,
  type StoredPayment,
  spreadStamps,
  tokens,
} from '../support/data/search-payments.ts'

/** Of a payment: its own, that of its source, and those of its refunds. */
const hashesOf = ({ txHash, sourceTxHash, refunds }: Payment) => [
  txHash,
  sourceTxHash,
  ...refunds.map((refund) => refund.txHash),
]

const account = { id: 1, name: 'one' }
const HOUR = 3_600_000

/** Stored payments and the searches of them. */
export interface Oracle {
  readonly database: TestDatabase
  /** One as the service makes it, and one for each of {@link LADDERS}. */
  readonly searches: readonly PaymentSearch[]
  /** The payments of {@link account}. */
  readonly mine: readonly Payment[]
}

/** Stores 1,200 payments of {@link account}, the same payments with the same ids under another account, and others under a third. */
export async function storeOracle(): Promise<Oracle> {
  const database = await createTestDatabase()
  const terms = { knex: database.knex, chains, tokens, cursorSecret: Buffer.alloc(32, 1) }
  const searches = [undefined, ...LADDERS].map((ladder) => createPaymentSearch({ ...terms, ladder }))
  const ours = generatePayments(1, 1_200, 1)
  const theirs = ours.slice(0, 800).map((stored): StoredPayment => ({ ...stored, accountId: 2 }))
  await insertPayments(database.knex, [...ours, ...theirs, ...generatePayments(3, 800, 3)])
  const mine = await spreadStamps(
    database.knex,
    account.id,
    ours.map(({ payment }) => payment),
  )
  await database.knex.raw('analyze payments, payment_metadata')
  return { database, searches, mine }
}

const random = seededRandom(29)
/** A first guess that says nothing: any way may come first, at any limit. */
const anyGuess = () => () => ({
  cost: random(),
  start: Math.floor(random() * 60),
  price: 1 + Math.floor(random() * 4),
  isCovered: random() < 0.5,
})

/** Low limits, so that attempts are cut, and random guesses, so that every way comes first: the pages are the same whatever is tried. */
export const LADDERS: readonly LadderOptions[] = [
  { limits: [3, 10, 100], makeGuess },
  { limits: [1, 30, 5_000], makeGuess: anyGuess },
  { limits: [2, 40], makeGuess: anyGuess },
  { limits: [], makeGuess: anyGuess },
]

export type Basis = 'amount' | 'invoiceAmount' | 'amountInUsd'

export interface Case {
  readonly input: SearchInput
  matches(payment: Payment, basis: Basis): boolean
  readonly basis?: Basis
}

const symbol = (wanted: string) => (payment: Payment) => payment.currency.replace(/-[^-]*$/, '') === wanted
const within = (payment: Payment, basis: Basis, test: (comparedTo: (bound: string) => number) => boolean) => {
  const value = payment[basis]
  return value !== undefined && test((bound) => compare(value, bound))
}

export const cases: readonly Case[] = [
  { input: {}, matches: () => true },
  { input: { fromDate: '2026-03-08' }, matches: (p) => p.timestamp.getTime() >= START + 7 * 24 * HOUR },
  { input: { toDate: '2026-03-08' }, matches: (p) => p.timestamp.getTime() < START + 8 * 24 * HOUR },
  {
    input: { fromDate: '2026-03-02T05:00:00+01:00', toDate: '2026-03-03T04:00:00Z' },
    matches: (p) => p.timestamp.getTime() >= START + 28 * HOUR && p.timestamp.getTime() <= START + 52 * HOUR,
  },
  {
    input: { fromDate: '2026-03-02T04:00:00.0001Z', toDate: '2026-03-03T03:59:59.999999Z' },
    matches: (p) => p.timestamp.getTime() > START + 28 * HOUR && p.timestamp.getTime() < START + 52 * HOUR,
  },
  { input: { sourceNetwork: ['arbitrum-one'] }, matches: (p) => p.sourceNetwork === 'ARBITRUM' },
  {
    input: { sourceNetwork: ['SOURCEONLY', '8453'] },
    matches: (p) => ['SOURCEONLY', 'BASE'].includes(p.sourceNetwork ?? ''),
  },
  { input: { destinationNetwork: ['oldnet'] }, matches: (p) => p.network === 'OLDNET' },
  { input: { destinationNetwork: ['base', 'TRON'] }, matches: (p) => ['BASE', 'TRON'].includes(p.network) },
  {
    input: { destinationNetwork: ['POLYGON'], sourceNetwork: ['BASE'] },
    matches: (p) => p.network === 'POLYGON' && p.sourceNetwork === 'BASE',
  },
  {
    input: { network: ['BASE'], destinationNetwork: ['POLYGON', 'ARBITRUM', 'BASE'], currency: ['USDC'] },
    matches: (p) =>
      [p.network, p.sourceNetwork].includes('BASE') &&
      ['POLYGON', 'ARBITRUM', 'BASE'].includes(p.network) &&
      symbol('USDC')(p),
    basis: 'amount',
  },
  {
    input: { timeZone: 'Asia/Kolkata', fromDate: '2026-03-03', toDate: '2026-03-08' },
    matches: (p) => p.timestamp.getTime() >= START + 42.5 * HOUR && p.timestamp.getTime() < START + 186.5 * HOUR,
  },
  {
    // clocks go from 2 to 3 on 8 March
    input: { timeZone: 'america/NEW_YORK', toDate: '2026-03-08' },
    matches: (p) => p.timestamp.getTime() < START + (8 * 24 + 4) * HOUR,
  },
  {
    input: { timeZone: 'Europe/Zurich', fromDate: '2026-03-02T05:00:00+01:00' },
    matches: (p) => p.timestamp.getTime() >= START + 28 * HOUR,
  },
  {
    input: { changedFrom: '2026-03-26T00:00:01Z', changedTo: '2026-03-26T18:00:00.001Z', status: ['CONFIRMED'] },
    matches: (p) =>
      changedMs(p) >= START + 600 * HOUR + 1_000 && changedMs(p) <= START + 618 * HOUR + 1 && p.status === 'CONFIRMED',
  },
  { input: { changedFrom: '2026-03-27' }, matches: (p) => changedMs(p) >= START + 26 * 24 * HOUR },
  {
    input: { changedTo: '2026-03-26', fromDate: '2026-03-08', minAmount: '2' },
    matches: (p, basis) =>
      changedMs(p) < START + 26 * 24 * HOUR &&
      p.timestamp.getTime() >= START + 7 * 24 * HOUR &&
      within(p, basis, (to) => to('2') >= 0),
  },
  { input: { minAmount: '10.50' }, matches: (p, basis) => within(p, basis, (to) => to('10.5') >= 0) },
  { input: { maxAmount: '1.5' }, matches: (p, basis) => within(p, basis, (to) => to('1.5') <= 0) },
  { input: { minAmount: '0' }, matches: (p, basis) => within(p, basis, () => true) },
  {
    input: { minAmount: '0.000000000000000001', maxAmount: '10.499999999999999999' },
    matches: (p, basis) => within(p, basis, (to) => to('0') > 0 && to('10.5') < 0),
  },
  { input: { currency: ['usdc'] }, matches: symbol('USDC'), basis: 'amount' },
  {
    input: { currency: ['USDC-BASE', 'usdc-polygon'] },
    matches: (p) => ['USDC-BASE', 'USDC-POLYGON'].includes(p.currency),
    basis: 'amount',
  },
  { input: { currency: ['USDC.e'] }, matches: symbol('USDC.e'), basis: 'amount' },
  {
    input: { currency: ['USDC', 'DAI-BASE'] },
    matches: (p) => symbol('USDC')(p) || symbol('DAI')(p),
    basis: 'amountInUsd',
  },
  { input: { currency: ['ODD-coin'] }, matches: symbol('Odd-coin'), basis: 'amount' },
  { input: { currency: ['odd-COIN-moon_9'] }, matches: symbol('Odd-coin'), basis: 'amount' },
  { input: { currency: ['USDT'] }, matches: symbol('USDT'), basis: 'amount' },
  { input: { currency: ['usdc-Matic'] }, matches: (p) => p.currency === 'USDC-POLYGON', basis: 'amount' },
  { input: { paymentCurrency: ['ETH-arbitrum-one'] }, matches: (p) => p.currency === 'ETH-ARBITRUM', basis: 'amount' },
  { input: { currency: ['usdt-trx'] }, matches: (p) => p.currency === 'USDT-TRON', basis: 'amount' },
  {
    input: { invoiceCurrency: ['USDC-8453'] },
    matches: (p) => p.invoiceCurrency === 'USDC-BASE',
    basis: 'invoiceAmount',
  },
  { input: { currency: ['eur'] }, matches: (p) => p.invoiceCurrency === 'EUR', basis: 'invoiceAmount' },
  { input: { currency: ['points'] }, matches: (p) => p.invoiceCurrency === 'POINTS', basis: 'invoiceAmount' },
  {
    input: { currency: ['EUR', 'USDC'] },
    matches: (p) => p.invoiceCurrency === 'EUR' || symbol('USDC')(p),
    basis: 'amountInUsd',
  },
  { input: { paymentCurrency: ['ETH'] }, matches: symbol('ETH'), basis: 'amount' },
  {
    input: { invoiceCurrency: ['USDC'] },
    matches: (p) => ['USDC-BASE', 'USDC-OLDNET'].includes(p.invoiceCurrency ?? ''),
    basis: 'invoiceAmount',
  },
  {
    input: { invoiceCurrency: ['USDC-base'] },
    matches: (p) => p.invoiceCurrency === 'USDC-BASE',
    basis: 'invoiceAmount',
  },
  {
    input: { invoiceCurrency: ['usdc-X'] },
    matches: (p) => p.invoiceCurrency === 'USDC-x-BASE',
    basis: 'invoiceAmount',
  },
  {
    input: { invoiceCurrency: ['USD', 'EUR'] },
    matches: (p) => ['USD', 'EUR'].includes(p.invoiceCurrency ?? ''),
    basis: 'amountInUsd',
  },
  {
    input: { paymentCurrency: ['USDC'], invoiceCurrency: ['USDC'] },
    matches: (p) => symbol('USDC')(p) && ['USDC-BASE', 'USDC-OLDNET'].includes(p.invoiceCurrency ?? ''),
    basis: 'amount',
  },
  {
    input: { currency: ['USDC'], invoiceCurrency: ['EUR'] },
    matches: (p) => symbol('USDC')(p) && p.invoiceCurrency === 'EUR',
    basis: 'amountInUsd',
  },
  {
    input: { currency: ['EUR'], paymentCurrency: ['USDC-BASE'] },
    matches: (p) => p.currency === 'USDC-BASE' && p.invoiceCurrency === 'EUR',
    basis: 'amountInUsd',
  },
  { input: { status: ['PENDING'] }, matches: (p) => p.status === 'PENDING' },
  { input: { status: ['FAILED', 'PARTIAL'] }, matches: (p) => ['FAILED', 'PARTIAL'].includes(p.status) },
  { input: { type: ['CROSSCHAIN'] }, matches: (p) => p.type === 'CROSSCHAIN' },
  { input: { type: ['DIRECT', 'RECURRING'] }, matches: (p) => ['DIRECT', 'RECURRING'].includes(p.type ?? '') },
  { input: { payer: [PAYERS[0] ?? ''] }, matches: (p) => p.payer === PAYERS[0] },
  { input: { payer: PAYERS.slice(1) }, matches: (p) => p.payer !== undefined && p.payer !== PAYERS[0] },
  { input: { payee: [(PAYEES[1] ?? '').toUpperCase().replace('X', 'x')] }, matches: (p) => p.payee === PAYEES[1] },
  { input: { payee: [PAYEES[2] ?? ''] }, matches: (p) => p.payee === PAYEES[2] },
  // this wallet is the payer of some payments, the payee of others, and both of a few
  { input: { walletAddress: [PAYEES[0] ?? ''] }, matches: (p) => p.payer === PAYEES[0] || p.payee === PAYEES[0] },
  {
    input: { walletAddress: [PAYEES[0] ?? '', PAYERS[3] ?? ''] },
    matches: (p) => [p.payer, p.payee].some((wallet) => wallet === PAYEES[0] || wallet === PAYERS[3]),
  },
  { input: { walletAddress: [`0x${'0'.repeat(39)}1`] }, matches: () => false },
  { input: { txHash: [hash(7)] }, matches: (p) => hashesOf(p).includes(hash(7)) },
  {
    input: { txHash: [hash(8).slice(2).toUpperCase(), hash(70), hash(9999)] },
    matches: (p) => hashesOf(p).some((of) => of === hash(8) || of === hash(70)),
  },
  { input: { requestId: [REQUEST_IDS[0] ?? ''] }, matches: (p) => p.requestId === REQUEST_IDS[0] },
  { input: { requestId: REQUEST_IDS }, matches: (p) => p.requestId !== undefined },
  {
    input: { paymentReference: [(PAYMENT_REFERENCES[1] ?? '').slice(2)] },
    matches: (p) => p.paymentReference === PAYMENT_REFERENCES[1],
  },
  { input: { reference: ['INV-1'] }, matches: (p) => p.reference === 'INV-1' },
  { input: { reference: ['a,b', 'Ünï ✓'] }, matches: (p) => ['a,b', 'Ünï ✓'].includes(p.reference ?? '') },
  { input: { reference: REFERENCES.slice(4, 6) }, matches: (p) => REFERENCES.slice(4, 6).includes(p.reference ?? '') },
  { input: { network: ['base'] }, matches: (p) => [p.network, p.sourceNetwork].includes('BASE') },
  { input: { network: ['31337002'] }, matches: (p) => p.network === 'POLYGON' },
  { input: { network: ['eip155:137'] }, matches: () => false },
  { input: { network: ['matic', 'polygon', 'TRX'] }, matches: (p) => ['POLYGON', 'TRON'].includes(p.network) },
  { input: { network: ['oldnet'] }, matches: (p) => p.network === 'OLDNET' },
  { input: { network: ['sourceonly'] }, matches: (p) => p.sourceNetwork === 'SOURCEONLY' },
  {
    input: { network: ['137', 'moon-9', 'ARBITRUM'] },
    matches: (p) => [p.network, p.sourceNetwork].some((of) => of === 'MOON_9' || of === 'ARBITRUM'),
  },
  { input: { network: ['mainnet'] }, matches: () => false },
  { input: { destinationNetwork: ['mainnet'] }, matches: () => false },
  { input: { q: PAYEES[0] ?? '' }, matches: (p) => p.payer === PAYEES[0] || p.payee === PAYEES[0] },
  { input: { q: PAYEES[2] ?? '' }, matches: (p) => p.payee === PAYEES[2] },
  {
    input: { q: hash(7).toUpperCase().replace('X', 'x') },
    matches: (p) => hashesOf(p).includes(hash(7)),
  },
  { input: { q: ` ${REQUEST_IDS[0]}` }, matches: (p) => p.requestId === REQUEST_IDS[0] },
  {
    input: { q: (PAYMENT_REFERENCES[1] ?? '').slice(2) },
    matches: (p) => p.paymentReference === PAYMENT_REFERENCES[1] || p.reference === PAYMENT_REFERENCES[1]?.slice(2),
  },
  { input: { q: 'INV-1 ' }, matches: (p) => p.reference === 'INV-1' },
  { input: { q: 'a,b' }, matches: (p) => p.reference === 'a,b' },
  { input: { referencePrefix: 'INV-1' }, matches: (p) => p.reference?.startsWith('INV-1') === true },
  { input: { referencePrefix: 'Ün' }, matches: (p) => p.reference === 'Ünï ✓' },
  { input: { referencePrefix: '%_' }, matches: () => false },
  { input: { metadata: ['channel=web'] }, matches: (p) => p.metadata?.['channel'] === 'web' },
  { input: { metadata: ['channel=web', 'channel=pos', 'channel=none'] }, matches: (p) => p.metadata !== undefined },
  { input: { metadata: ['a.b-C_9=x=y, "z" %'] }, matches: (p) => p.metadata?.['a.b-C_9'] !== undefined },
  { input: { metadata: ['order=5', 'order=15'] }, matches: (p) => ['5', '15'].includes(p.metadata?.['order'] ?? '') },
  {
    input: { metadata: ['order=5', 'channel=pos', 'order=25'] },
    matches: (p) => ['5', '25'].includes(p.metadata?.['order'] ?? '') && p.metadata?.['channel'] === 'pos',
  },
  {
    input: { metadata: ['channel=pos'], fromDate: '2026-03-08', minAmount: '1', status: ['CONFIRMED', 'FAILED'] },
    matches: (p, basis) =>
      p.metadata?.['channel'] === 'pos' &&
      p.timestamp.getTime() >= START + 7 * 24 * HOUR &&
      within(p, basis, (to) => to('1') >= 0) &&
      ['CONFIRMED', 'FAILED'].includes(p.status),
  },
  {
    input: { metadata: ['channel=web', 'channel=pos'], currency: ['USDC'] },
    matches: (p) => p.metadata?.['channel'] !== undefined && symbol('USDC')(p),
    basis: 'amount',
  },
  {
    input: { metadata: ['channel=pos', 'order=5', 'order=15', 'order=25'], paymentCurrency: ['usdc'], minAmount: '0' },
    matches: (p, basis) =>
      p.metadata?.['channel'] === 'pos' &&
      ['5', '15', '25'].includes(p.metadata['order'] ?? '') &&
      symbol('USDC')(p) &&
      within(p, basis, () => true),
    basis: 'amount',
  },
  {
    input: { metadata: ['channel=web'], currency: ['USDC-BASE', 'usdc-polygon'], maxAmount: '10.5' },
    matches: (p, basis) =>
      p.metadata?.['channel'] === 'web' &&
      ['USDC-BASE', 'USDC-POLYGON'].includes(p.currency) &&
      within(p, basis, (to) => to('10.5') <= 0),
    basis: 'amount',
  },
  {
    input: { metadata: ['channel=web'], paymentCurrency: ['USDC'], invoiceCurrency: ['USDC'] },
    matches: (p) =>
      p.metadata?.['channel'] === 'web' &&
      symbol('USDC')(p) &&
      ['USDC-BASE', 'USDC-OLDNET'].includes(p.invoiceCurrency ?? ''),
    basis: 'amount',
  },
  {
    input: { metadata: ['channel=web', 'channel=pos'], currency: ['USDC', 'ETH'], maxAmount: '100' },
    matches: (p, basis) =>
      p.metadata?.['channel'] !== undefined &&
      (symbol('USDC')(p) || symbol('ETH')(p)) &&
      within(p, basis, (to) => to('100') <= 0),
    basis: 'amountInUsd',
  },
  { input: { metadata: ['channel=Web'] }, matches: () => false },
  {
    input: { metadata: Array.from({ length: 40 }, (_, n) => `order=${n}`) },
    matches: (p) => Number(p.metadata?.['order']) < 40,
  },
  {
    input: { referencePrefix: 'INV', reference: ['a,b', 'INV-2'], 'exclude.status': ['FAILED'] },
    matches: (p) => p.reference === 'INV-2' && p.status !== 'FAILED',
  },
  {
    input: { 'exclude.status': ['CONFIRMED', 'PARTIAL'] },
    matches: (p) => !['CONFIRMED', 'PARTIAL'].includes(p.status),
  },
  { input: { 'exclude.status': ['PENDING'], status: ['PENDING'] }, matches: () => false },
  {
    input: { 'exclude.type': ['DIRECT', 'CROSSCHAIN'] },
    matches: (p) => !['DIRECT', 'CROSSCHAIN'].includes(p.type ?? ''),
  },
  {
    input: { 'exclude.network': ['base', 'OLDNET'] },
    matches: (p) => ![p.network, p.sourceNetwork].some((of) => of === 'BASE' || of === 'OLDNET'),
  },
  {
    input: { 'exclude.currency': ['USDC', 'EUR'] },
    matches: (p) => !symbol('USDC')(p) && p.invoiceCurrency !== 'EUR',
    basis: 'amountInUsd',
  },
  { input: { 'exclude.currency': ['usdc-base'] }, matches: (p) => p.currency !== 'USDC-BASE', basis: 'amountInUsd' },
  { input: { 'exclude.payer': PAYERS.slice(0, 2) }, matches: (p) => !PAYERS.slice(0, 2).includes(p.payer as never) },
  {
    input: { 'exclude.payee': [PAYEES[0] ?? ''], walletAddress: [PAYEES[0] ?? ''] },
    matches: (p) => p.payer === PAYEES[0] && p.payee !== PAYEES[0],
  },
]

export const orders = (['date', 'amount', 'status', 'changed'] as const).flatMap((sortBy) =>
  (['asc', 'desc'] as const).map((sortOrder) => ({ sortBy, sortOrder })),
)

/** A payment has to match both of two filters. @param run - its remainders choose the order and the search */
export async function checkPair(oracle: Oracle, run: number, random: () => number): Promise<void> {
  const [one, two] = pickDisjoint(random)
  const both: Case = {
    input: { ...one.input, ...two.input },
    matches: (payment, basis) => one.matches(payment, basis) && two.matches(payment, basis),
    ...((one.basis ?? two.basis) === undefined ? {} : { basis: one.basis ?? two.basis ?? 'amount' }),
  }
  const { sortBy, sortOrder } = orders[run % orders.length] ?? { sortBy: 'date', sortOrder: 'asc' }
  await checkWalk(oracle, run, both, { sortBy, sortOrder, random })
}

/** Two cases of different filters. A lower and an upper bound of two cases could be an empty range, which is refused. */
function pickDisjoint(random: () => number): readonly [Case, Case] {
  const pick = () => cases[Math.floor(random() * cases.length)] as Case
  for (;;) {
    const [one, two] = [pick(), pick()]
    const names = rangesOf(one)
    const shared = rangesOf(two).some((name) => names.includes(name))
    if (!shared && !(one.basis !== undefined && two.basis !== undefined)) return [one, two]
  }
}

/** The names of a case's filters; both bounds of an amount have one name, and so have those of changes, and those of dates and their zone. */
const rangesOf = ({ input }: Case) =>
  Object.keys(input).map((name) =>
    name
      .replace(/^(?:min|max)Amount$/, 'amount')
      .replace(/^(?:from|to)Date$|^timeZone$/, 'date')
      .replace(/^changed(?:From|To)$/, 'changed'),
  )

/** Walks to the end and back and compares every page with the brute-force answer. @param planner - which search, counted round and round */
export async function checkWalk(
  { searches, mine }: Oracle,
  nth: number,
  each: Case,
  { sortBy, sortOrder, random }: { sortBy: SortBy; sortOrder: SortOrder; random: () => number },
): Promise<void> {
  const basis = each.basis ?? 'amountInUsd'
  const expected = mine
    .filter((payment) => each.matches(payment, basis))
    .toSorted(orderOf(sortBy, sortOrder, basis))
    .map(({ id }) => id)
  const input: SearchInput = { ...each.input, sortBy, sortOrder, limit: limitFor(expected.length, random) }
  const paymentSearch = searches[nth % searches.length] as PaymentSearch
  const pages = await walkForward(paymentSearch, input)
  expect(pages.flatMap(idsOf)).toEqual(expected)
  const back = await walkBackward(paymentSearch, pages.at(-1))
  expect(back.map(idsOf)).toEqual(pages.map(idsOf))
  expect(back[0]?.pagination.prevCursor).toBeUndefined()
}

/** A limit that gives a few pages, if 100 a page allow it. The last page is sometimes exactly full. */
function limitFor(matches: number, random: () => number): number {
  const pages = 1 + Math.floor(random() * 4)
  return Math.min(Math.max(Math.ceil(matches / pages), 1), 100)
}

/** More than any walk has. */
const MOST_PAGES = 1_200

export async function walkForward(paymentSearch: PaymentSearch, input: SearchInput): Promise<PaymentPage[]> {
  const pages = [await paymentSearch.search(account, input)]
  for (let cursor = pages[0]?.pagination.nextCursor; cursor !== undefined; ) {
    // every other page is asked for by the cursor alone, the others with all filters sent again
    const beside = pages.length % 2 === 0 ? input : {}
    const page = await paymentSearch.search(account, { ...beside, cursor })
    expect(page.payments.length).toBeGreaterThan(0)
    expect(page.pagination.limit).toBe(input.limit)
    expect(page.pagination.prevCursor).toBeDefined()
    pages.push(page)
    if (pages.length > MOST_PAGES) throw new Error('the walk does not end')
    cursor = page.pagination.nextCursor
  }
  return pages
}

/** The pages from the first to the one given, by their previous cursors. */
async function walkBackward(paymentSearch: PaymentSearch, last: PaymentPage | undefined): Promise<PaymentPage[]> {
  const pages = last === undefined ? [] : [last]
  for (let cursor = last?.pagination.prevCursor; cursor !== undefined; ) {
    const page = await paymentSearch.search(account, { cursor })
    expect(page.pagination.nextCursor).toBeDefined()
    pages.unshift(page)
    if (pages.length > MOST_PAGES) throw new Error('the walk does not end')
    cursor = page.pagination.prevCursor
  }
  return pages
}

export const idsOf = (page: PaymentPage) => page.payments.map(({ id }) => id)

function orderOf(sortBy: SortBy, sortOrder: SortOrder, basis: Basis): (a: Payment, b: Payment) => number {
  const byId = (a: Payment, b: Payment) => (a.id < b.id ? -1 : 1)
  const byDate = (a: Payment, b: Payment) => a.timestamp.getTime() - b.timestamp.getTime()
  const byAmount = (a: Payment, b: Payment) => {
    const [left, right] = [a[basis], b[basis]]
    if (left === undefined || right === undefined) return Number(left !== undefined) - Number(right !== undefined)
    return compare(left, right)
  }
  const ascending = {
    date: (a: Payment, b: Payment) => byDate(a, b) || byId(a, b),
    amount: (a: Payment, b: Payment) => byAmount(a, b) || byId(a, b),
    changed: (a: Payment, b: Payment) => changedMs(a) - changedMs(b) || byId(a, b),
    status: (a: Payment, b: Payment) => rankOfStatus(a.status) - rankOfStatus(b.status) || byDate(a, b) || byId(a, b),
  }[sortBy]
  return sortOrder === 'asc' ? ascending : (a, b) => ascending(b, a)
}

const changedMs = ({ changedAt }: Payment) => changedAt?.getTime() ?? Number.NaN

function compare(a: string, b: string): number {
  const [left, right] = [parseDecimal(a), parseDecimal(b)]
  if (left === undefined || right === undefined) throw new Error(`no decimals: ${a}, ${b}`)
  return compareDecimals(left, right)
}
