import { addressFromBytes, formatAddress } from '../../src/domain/address.ts'
import { bytesToHex } from '../../src/domain/hex.ts'
import type { SearchInput } from '../../src/search/filter/payment-filter.ts'
import { FIAT_CODES, RETIRED_NETWORK, SHARED_REFERENCE, SOURCE_ONLY_NETWORK, START } from './generate-payments.ts'
import type { SampledPayment } from './sample-payments.ts'

/** A kind of search that is measured separately. */
export interface SearchClass {
  readonly name: string
  /** Draws a search of this kind, another one with each call. */
  readonly draw: (draw: Draw) => SearchInput
}

/** Where the values of a search come from. */
export interface Draw {
  readonly random: () => number
  /** A random payment of the account. */
  readonly payment: () => SampledPayment
  /** A known value of the column, from a random payment of the account. */
  readonly known: <K extends keyof SampledPayment>(column: K) => NonNullable<SampledPayment[K]>
  /** The most frequent payer. */
  readonly topPayer: string
  /** The most frequent payee. */
  readonly topPayee: string
}

const DAY_MS = 86_400_000
const START_MS = Date.parse(START)
const SPAN_DAYS = 3 * 365

const address = (bytes: Buffer) => formatAddress(addressFromBytes(bytes))
const payer = (draw: Draw) => address(draw.known('payer'))
const payee = (draw: Draw) => address(draw.known('payee'))
const hash = (draw: Draw) => bytesToHex(draw.known('tx_hash'))
const repeat = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)
const noAddress = ({ random }: Draw) => `0x${repeat(40, () => Math.floor(random() * 10)).join('')}`

/** A range of `count` days anywhere in the three years. */
function days({ random }: Draw, count: number): SearchInput {
  const fromMs = START_MS + Math.floor(random() * (SPAN_DAYS - count)) * DAY_MS
  return { fromDate: new Date(fromMs).toISOString(), toDate: new Date(fromMs + count * DAY_MS - 1).toISOString() }
}

/** A range that begins at the US dollars of a random payment; `share` is its width as a share of them. */
function dollars(draw: Draw, share: number): SearchInput {
  const middle = Number(draw.known('amount_in_usd'))
  const plain = (value: number) => value.toFixed(2)
  return { minAmount: plain(middle), maxAmount: plain(middle * (1 + share) + 0.01) }
}

const LARGE_RANGE = { minAmount: '10', maxAmount: '1000' }
const byDate = (sortOrder: 'asc' | 'desc'): SearchInput => ({ sortBy: 'date', sortOrder })
const byAmount: SearchInput = { sortBy: 'amount', sortOrder: 'desc' }
const byStatus: SearchInput = { sortBy: 'status', sortOrder: 'asc' }
const RARE_NETWORK = 'GNOSIS'
const RARE_SYMBOL = 'DOGE'
const FREQUENT_PAIR = 'channel=web'
const RARE_PAIR = 'channel=mail'
const orderPair = (draw: Draw) => `order=${draw.known('metadata')['order']}`

/** Named after their filters and, where it is not by date, their order. */
const classes: Readonly<Record<string, SearchClass['draw']>> = {
  all: () => ({}),
  'all.asc': () => byDate('asc'),
  'all.amount': () => byAmount,
  'all.amount-asc': () => ({ sortBy: 'amount', sortOrder: 'asc' }),
  'all.status': () => byStatus,
  'all.status-desc': () => ({ sortBy: 'status', sortOrder: 'desc' }),

  'dates.day': (draw) => ({ ...days(draw, 1), ...byDate('asc') }),
  'dates.day.amount': (draw) => ({ ...days(draw, 1), ...byAmount }),
  'dates.month.amount': (draw) => ({ ...days(draw, 30), ...byAmount }),
  'dates.year.amount': (draw) => ({ ...days(draw, 365), ...byAmount }),
  'dates.month.status': (draw) => ({ ...days(draw, 30), ...byStatus }),
  'exclude.frequent': () => ({ 'exclude.status': ['CONFIRMED'] }),
  'exclude.network': (draw) => ({ 'exclude.network': [draw.payment().network], 'exclude.status': ['FAILED'] }),
  'exclude.currency': (draw) => ({ 'exclude.currency': [draw.known('currency_symbol')], ...byStatus }),
  'exclude.payers': (draw) => ({ 'exclude.payer': repeat(20, () => payer(draw)), ...byAmount }),
  'prefix.few': (draw) => ({ referencePrefix: draw.known('reference').slice(0, -1).padEnd(2, '-') }),
  'prefix.many': () => ({ referencePrefix: 'INV-' }),
  'changed.poll': (draw) => ({ changedFrom: days(draw, 1).fromDate, sortBy: 'changed', sortOrder: 'asc' }),
  'changed.payer': (draw) => ({ payer: [payer(draw)], sortBy: 'changed', sortOrder: 'desc' }),
  'changed.day': (draw) => {
    const { fromDate, toDate } = days(draw, 1)
    return { changedFrom: fromDate, changedTo: toDate, status: ['FAILED'] }
  },
  'amounts.small': (draw) => dollars(draw, 0.0005),
  'amounts.small.amount': (draw) => ({ ...dollars(draw, 0.0005), ...byAmount }),
  'amounts.large': () => LARGE_RANGE,
  'amounts.large.asc': () => ({ ...LARGE_RANGE, ...byDate('asc') }),
  'amounts.large.amount': () => ({ ...LARGE_RANGE, ...byAmount }),
  'amounts.highest': () => ({ minAmount: '20000' }),
  'amounts.large.status': () => ({ ...LARGE_RANGE, ...byStatus }),
  'two-ranges.small': (draw) => ({ ...days(draw, 1), ...dollars(draw, 0.05) }),
  'two-ranges.small.amount': (draw) => ({ ...days(draw, 1), ...dollars(draw, 0.05), ...byAmount }),
  'two-ranges.large': (draw) => ({ ...days(draw, 365), ...LARGE_RANGE }),
  'two-ranges.large.amount': (draw) => ({ ...days(draw, 365), ...LARGE_RANGE, ...byAmount }),
  'two-ranges.thin': (draw) => ({ ...days(draw, 700), ...dollars(draw, 0.001) }),
  'two-ranges.thin.amount': (draw) => ({ ...days(draw, 3), minAmount: '1', ...byAmount }),

  'status.frequent': () => ({ status: ['CONFIRMED'] }),
  'status.rare': () => ({ status: ['PENDING'] }),
  'status.rare.asc': () => ({ status: ['FAILED'], ...byDate('asc') }),
  'status.rare.amount': () => ({ status: ['FAILED'], ...byAmount }),
  'status.several': () => ({ status: ['PENDING', 'FAILED', 'REFUNDED'] }),
  'status.several.status': () => ({ status: ['PENDING', 'FAILED', 'REFUNDED'], ...byStatus }),
  'status.frequent.amount': () => ({ status: ['CONFIRMED'], ...byAmount }),
  'status.rare.amounts': (draw) => ({ status: ['REFUNDED'], ...dollars(draw, 0.01) }),

  'type.frequent': () => ({ type: ['DIRECT'] }),
  'type.rare': () => ({ type: ['RECURRING'] }),
  'type.rare.amount': () => ({ type: ['RECURRING'], ...byAmount }),
  'type.rare.status': () => ({ type: ['CROSSCHAIN'], ...byStatus }),
  'type.status': () => ({ type: ['RECURRING'], status: ['PENDING', 'FAILED'] }),

  'network.any': (draw) => ({ network: [draw.payment().network] }),
  'network.rare': () => ({ network: [RARE_NETWORK] }),
  'network.rare.amount': () => ({ network: [RARE_NETWORK], ...byAmount }),
  'network.rare.status': () => ({ network: [RARE_NETWORK], ...byStatus }),
  'network.retired': () => ({ network: [RETIRED_NETWORK] }),
  'network.retired.asc': () => ({ network: [RETIRED_NETWORK], ...byDate('asc') }),
  'network.retired.amount': () => ({ network: [RETIRED_NETWORK], ...byAmount }),
  'network.source-only': () => ({ network: [SOURCE_ONLY_NETWORK] }),
  'network.several': () => ({ network: ['LINEA', RARE_NETWORK, RETIRED_NETWORK] }),
  'network.status': () => ({ network: [RARE_NETWORK], status: ['FAILED'] }),
  'network.retired.status': () => ({ network: [RETIRED_NETWORK], status: ['PENDING'] }),
  'network.dates': (draw) => ({ network: [RARE_NETWORK], ...days(draw, 30) }),
  'network.dates.amount': (draw) => ({ network: [RARE_NETWORK], ...days(draw, 90), ...byAmount }),
  'network.amounts': (draw) => ({ network: [RARE_NETWORK], ...dollars(draw, 0.01) }),
  'network.currency': () => ({ network: [RARE_NETWORK], currency: [RARE_SYMBOL] }),
  'network.currency.status': () => ({ network: [RARE_NETWORK], currency: ['USDT'], status: ['REFUNDED'] }),
  'network.type': () => ({ network: [RARE_NETWORK], type: ['RECURRING'] }),

  'currency.any': (draw) => ({ currency: [draw.payment().currency_symbol] }),
  'currency.rare': () => ({ currency: [RARE_SYMBOL] }),
  'currency.rare.usd': () => ({ currency: [RARE_SYMBOL, 'YFI'], ...byAmount }),
  'currency.any.amount': (draw) => ({ currency: [draw.payment().currency_symbol], ...byAmount }),
  'currency.id': (draw) => ({ currency: [draw.payment().currency] }),
  'currency.id.amount': (draw) => ({ currency: [draw.payment().currency], ...byAmount }),
  'currency.amounts': (draw) => {
    const { currency_symbol, amount } = draw.payment()
    return { currency: [currency_symbol], minAmount: amount, maxAmount: amount }
  },
  'currency.amounts.large': () => ({ currency: ['USDC'], ...LARGE_RANGE }),
  'currency.several.amount': () => ({ currency: ['USDC', 'DOGE'], ...byAmount }),
  'currency.status': () => ({ currency: ['USDT'], status: ['FAILED'] }),
  'currency.status-order': () => ({ currency: ['ETH'], ...byStatus }),
  'fiat.any': (draw) => ({ invoiceCurrency: [FIAT_CODES[Math.floor(draw.random() * FIAT_CODES.length)] ?? ''] }),
  'fiat.rare.amount': () => ({ currency: ['BRL'], ...byAmount }),
  'fiat.amounts': () => ({ currency: ['EUR'], minAmount: '100', maxAmount: '101' }),
  'fiat.amounts.large': () => ({ currency: ['EUR'], ...LARGE_RANGE }),
  'fiat.token': () => ({ invoiceCurrency: ['USDC'], ...byAmount }),
  'fiat.network': () => ({ currency: ['CHF'], network: [RARE_NETWORK] }),

  'payer.top': ({ topPayer }) => ({ payer: [topPayer] }),
  'payer.any': (draw) => ({ payer: [payer(draw)] }),
  'payer.top.amount': ({ topPayer }) => ({ payer: [topPayer], ...byAmount }),
  'payer.top.status': ({ topPayer }) => ({ payer: [topPayer], ...byStatus }),
  'payer.top.network': ({ topPayer }) => ({ payer: [topPayer], network: [RARE_NETWORK] }),
  'payer.top.status-rare': ({ topPayer }) => ({ payer: [topPayer], status: ['PENDING'] }),
  'payee.top': ({ topPayee }) => ({ payee: [topPayee] }),
  'payee.any': (draw) => ({ payee: [payee(draw)] }),
  'payee.top.amount': ({ topPayee }) => ({ payee: [topPayee], ...byAmount }),
  'payee.any.amount': (draw) => ({ payee: [payee(draw)], ...byAmount }),
  'payee.top.status': ({ topPayee }) => ({ payee: [topPayee], ...byStatus }),
  'payee.top.status-rare': ({ topPayee }) => ({ payee: [topPayee], status: ['PENDING'] }),
  'payee.top.network': ({ topPayee }) => ({ payee: [topPayee], network: [RARE_NETWORK] }),
  'payee.top.retired': ({ topPayee }) => ({ payee: [topPayee], network: [RETIRED_NETWORK] }),
  'payee.top.currency': ({ topPayee }) => ({ payee: [topPayee], currency: [RARE_SYMBOL] }),
  'payee.top.currency.amount': ({ topPayee }) => ({ payee: [topPayee], currency: ['ETH'], ...byAmount }),
  'payee.top.type': ({ topPayee }) => ({ payee: [topPayee], type: ['RECURRING'] }),
  'payee.top.fiat': ({ topPayee }) => ({ payee: [topPayee], currency: ['BRL'] }),
  'payee.top.payer': (draw) => ({ payee: [draw.topPayee], payer: [payer(draw)] }),
  'payee.top.payer-top': ({ topPayee, topPayer }) => ({ payee: [topPayee], payer: [topPayer], ...byAmount }),
  'payee.top.dates': (draw) => ({ payee: [draw.topPayee], ...days(draw, 30), ...byAmount }),
  'payee.top.amounts': (draw) => ({ payee: [draw.topPayee], ...dollars(draw, 0.002) }),
  'payee.top.amounts.large': ({ topPayee }) => ({ payee: [topPayee], minAmount: '5000' }),
  'payee.several': (draw) => ({ payee: repeat(5, () => payee(draw)) }),
  'payee.hundred': (draw) => ({ payee: repeat(100, () => payee(draw)) }),
  'payee.hundred.amount': (draw) => ({ payee: repeat(100, () => payee(draw)), ...byAmount }),
  'payer.hundred': (draw) => ({ payer: repeat(100, () => payer(draw)) }),
  'wallet.top': ({ topPayee }) => ({ walletAddress: [topPayee] }),
  'wallet.any': (draw) => ({ walletAddress: [draw.random() < 0.5 ? payer(draw) : payee(draw)] }),
  'wallet.top.amount': ({ topPayee }) => ({ walletAddress: [topPayee], ...byAmount }),
  'wallet.top.status': ({ topPayee }) => ({ walletAddress: [topPayee], ...byStatus }),
  'wallet.top.network': ({ topPayee }) => ({ walletAddress: [topPayee], network: [RARE_NETWORK] }),
  'wallet.several': (draw) => ({ walletAddress: repeat(5, () => payee(draw)) }),
  'wallet.hundred': (draw) => ({ walletAddress: repeat(100, () => (draw.random() < 0.5 ? payer(draw) : payee(draw))) }),

  'hash.single': (draw) => ({ txHash: [hash(draw)] }),
  'hash.hundred': (draw) => ({ txHash: repeat(100, () => hash(draw)) }),
  'request.single': (draw) => ({ requestId: [draw.known('request_id').toString('hex')] }),
  'request.hundred': (draw) => ({
    requestId: repeat(100, () => draw.known('request_id').toString('hex')),
    ...byAmount,
  }),
  'payment-reference.single': (draw) => ({ paymentReference: [bytesToHex(draw.known('payment_reference'))] }),
  'reference.any': (draw) => ({ reference: [draw.known('reference')] }),
  'reference.shared': () => ({ reference: [SHARED_REFERENCE] }),
  'reference.shared.amount': () => ({ reference: [SHARED_REFERENCE], ...byAmount }),
  'reference.shared.status': () => ({ reference: [SHARED_REFERENCE], ...byStatus }),
  'reference.shared.network': () => ({ reference: [SHARED_REFERENCE], network: [RETIRED_NETWORK] }),
  'reference.shared.payee': (draw) => ({ reference: [SHARED_REFERENCE], payee: [payee(draw)] }),

  // a pair of a third of all payments, one of 0.7 %, and those of a request
  'metadata.frequent': () => ({ metadata: [FREQUENT_PAIR] }),
  'metadata.frequent.asc': () => ({ metadata: [FREQUENT_PAIR], ...byDate('asc') }),
  'metadata.frequent.amount': () => ({ metadata: [FREQUENT_PAIR], ...byAmount }),
  'metadata.frequent.status': () => ({ metadata: [FREQUENT_PAIR], ...byStatus }),
  'metadata.frequent.changed': () => ({ metadata: [FREQUENT_PAIR], sortBy: 'changed', sortOrder: 'desc' }),
  'metadata.rare': () => ({ metadata: [RARE_PAIR] }),
  'metadata.rare.amount': () => ({ metadata: [RARE_PAIR], ...byAmount }),
  'metadata.rare.status': () => ({ metadata: [RARE_PAIR], ...byStatus }),
  'metadata.rare.changed': () => ({ metadata: [RARE_PAIR], sortBy: 'changed', sortOrder: 'desc' }),
  'metadata.single': (draw) => ({ metadata: [orderPair(draw)] }),
  'metadata.single.amount': (draw) => ({ metadata: [orderPair(draw)], ...byAmount }),
  'metadata.twenty': (draw) => ({ metadata: repeat(20, () => orderPair(draw)) }),
  'metadata.several': () => ({ metadata: [FREQUENT_PAIR, RARE_PAIR], ...byAmount }),
  'metadata.two-keys': (draw) => ({ metadata: [FREQUENT_PAIR, orderPair(draw)] }),
  'metadata.status': () => ({ metadata: [FREQUENT_PAIR], status: ['PENDING'] }),
  'metadata.network': () => ({ metadata: [RARE_PAIR], network: [RARE_NETWORK] }),
  'metadata.frequent.retired': () => ({ metadata: [FREQUENT_PAIR], network: [RETIRED_NETWORK] }),
  'metadata.payee': (draw) => ({ metadata: [FREQUENT_PAIR], payee: [payee(draw)] }),
  'metadata.payee-top': ({ topPayee }) => ({ metadata: [RARE_PAIR], payee: [topPayee] }),
  'metadata.dates': (draw) => ({ metadata: [RARE_PAIR], ...days(draw, 30), ...byAmount }),
  'metadata.amounts': (draw) => ({ metadata: [FREQUENT_PAIR], ...dollars(draw, 0.002) }),
  'metadata.rare.amounts': () => ({ metadata: [RARE_PAIR], ...LARGE_RANGE }),
  'metadata.currency.amount': () => ({ metadata: [RARE_PAIR], currency: ['ETH'], ...byAmount }),

  'empty.metadata': () => ({ metadata: ['channel=fax'] }),
  'empty.wallet': (draw) => ({ walletAddress: [noAddress(draw)] }),
  'empty.amounts': () => ({ minAmount: '90000000' }),
  'empty.retired': () => ({ network: [RETIRED_NETWORK], fromDate: '2026-01-01T00:00:00Z' }),
  'empty.combination': () => ({
    network: [RETIRED_NETWORK],
    currency: [RARE_SYMBOL],
    status: ['PENDING'],
    type: ['RECURRING'],
  }),
  'empty.payee-status': (draw) => ({ payee: [payee(draw)], status: ['PENDING'], network: [RETIRED_NETWORK] }),
}

/** All classes. */
export const searchClasses: readonly SearchClass[] = Object.entries(classes).map(([name, draw]) => ({ name, draw }))
