import { codeOfType, rankOfStatus } from '../../domain/payment.ts'
import { amountBasis, currencyFields, type PaymentFilter } from '../filter/payment-filter.ts'
import type { CurrencyMatch } from '../filter/resolve-names.ts'
import type { AccountStatistics, Cell } from '../sql/account-statistics.ts'

/** The expected selectivity of each group of filters, as shares from 0 (nothing matches) to 1 (all match). */
export interface Estimate {
  /** Share of all payments that have one of the statuses. */
  readonly ofStatus: number
  /** Of those, the share that networks, currencies and types leave. */
  readonly ofSmall: number
  /** Share of all payments within the dates. */
  readonly ofDates: number
  /** Share of all payments within the range of amounts; undefined where the statistics say nothing about such amounts. */
  readonly ofAmounts: number | undefined
  /** The cells that status, currencies and destination networks leave. */
  readonly cells: readonly Cell[]
  /** How many payments come from one of the filter's networks and go elsewhere. */
  readonly elsewhere: number
  /** Of the payments in these cells and of those elsewhere, the share that matches. */
  readonly inCells: number
}

/** Estimates from the statistics. Filters whose correlation they do not know are taken to be independent. */
export function estimateMatches(filter: PaymentFilter, statistics: AccountStatistics): Estimate {
  const ranks = filter.status && new Set(filter.status.map(rankOfStatus))
  const networks = filter.network && new Set(filter.network)
  const currencies = paymentCurrencies(filter, statistics)
  const ofStatus = kept(statistics.cells, ranks && (({ status }) => ranks.has(status)))
  const ofCurrency = currencies.reduce((cells, { has }) => kept(cells, has), ofStatus)
  const destinations = filter.destinationNetwork && new Set(filter.destinationNetwork)
  const received = kept(ofCurrency, destinations && (({ network }) => destinations.has(network)))
  const cells = kept(received, networks && (({ network }) => networks.has(network)))
  const elsewhere = sum((filter.network ?? []).map((network) => statistics.shareOfSource.get(network) ?? 0))
  const inCells =
    shareOfTypes(filter, statistics) *
    shareOfInvoices(filter, statistics) *
    currencies.reduce((product, { inCells: share }) => product * share, 1)
  const nOfStatus = countOf(ofStatus)
  const matches = (countOf(cells) + elsewhere * countOf(received)) * inCells
  return {
    ofStatus: ratio(nOfStatus, statistics.n),
    ofSmall: Math.min(1, ratio(matches, nOfStatus)),
    ofDates: shareOfDates(filter, statistics),
    ofAmounts: shareOfAmounts(filter, statistics),
    cells,
    elsewhere: elsewhere * statistics.n,
    inCells: Math.min(1, ratio(matches, countOf(cells) + elsewhere * statistics.n)),
  }
}

/** A filter that names payment currencies alone: which cells have any of them, and which share of those cells matches. */
interface PaymentCurrencies {
  readonly has: (cell: Cell) => boolean
  readonly inCells: number
}

function paymentCurrencies(filter: PaymentFilter, statistics: AccountStatistics): PaymentCurrencies[] {
  return currencyFields.flatMap((name) => {
    const matches = filter[name]
    if (matches?.every(({ of }) => of === 'payment') !== true) return []
    const whole = new Set(matches.flatMap(({ symbol, id }) => (id === undefined ? [symbol] : [])))
    const exact = matches.flatMap(({ symbol, id }) =>
      id === undefined || whole.has(symbol)
        ? []
        : (statistics.currencies.get(id) ?? []).map(({ network, n }) => ({ key: `${symbol} ${network}`, n })),
    )
    const pairs = new Set(exact.map(({ key }) => key))
    const has = ({ symbol, network }: Cell) =>
      whole.has(symbol) || (pairs.size > 0 && pairs.has(`${symbol} ${network}`))
    const ofWhole = countOf(statistics.cells.filter(({ symbol }) => whole.has(symbol)))
    const matching = ofWhole + sum(exact.map(({ n }) => n))
    return [{ has, inCells: ratio(matching, countOf(statistics.cells.filter(has))) }]
  })
}

function shareOfTypes({ type }: PaymentFilter, { shareOfType }: AccountStatistics): number {
  return type === undefined ? 1 : sum(type.map((name) => shareOfType.get(codeOfType(name)) ?? 0))
}

/** The share that the filters leave which also name invoice currencies. */
function shareOfInvoices(filter: PaymentFilter, statistics: AccountStatistics): number {
  const ofMatch = (match: CurrencyMatch) => {
    if (match.of === 'invoice') {
      return sum(invoiceIdsOf(match, statistics).map((id) => statistics.shareOfInvoice.get(id) ?? 0))
    }
    const matching =
      match.id === undefined
        ? statistics.cells.filter(({ symbol }) => symbol === match.symbol)
        : (statistics.currencies.get(match.id) ?? [])
    return ratio(sum(matching.map(({ n }) => n)), statistics.n)
  }
  return currencyFields.reduce((product, name) => {
    const matches = filter[name]
    if (matches === undefined || matches.every(({ of }) => of === 'payment')) return product
    return product * Math.min(1, sum(matches.map(ofMatch)))
  }, 1)
}

/** The ids of invoice currencies that a match means: one, or all of its symbol. */
export function invoiceIdsOf({ symbol, id }: CurrencyMatch, { shareOfInvoice }: AccountStatistics): readonly string[] {
  if (id !== undefined) return [id]
  const start = `${symbol}-`
  return [...shareOfInvoice.keys()].filter(
    (known) => known.startsWith(start) && !known.slice(start.length).includes('-'),
  )
}

function shareOfDates({ fromDate, toDate }: PaymentFilter, { firstMs, lastMs }: AccountStatistics): number {
  const span = Math.max(1, lastMs - firstMs)
  const shared = Math.min(toDate ?? lastMs, lastMs) - Math.max(fromDate ?? firstMs, firstMs)
  return Math.min(1, Math.max(0, shared / span))
}

/** The share of the sample within the range. Half a payment is added, so that a range which the sample misses is not taken to be empty. */
function shareOfAmounts(filter: PaymentFilter, { sample }: AccountStatistics): number | undefined {
  const { minAmount, maxAmount } = filter
  if (minAmount === undefined && maxAmount === undefined) return 1
  if (sample.n === 0 || amountBasis(filter) !== 'amountInUsd') return undefined
  const below = (amount: number, inclusive: boolean) => countBelow(sample.known, amount, inclusive)
  const beginning = minAmount === undefined ? 0 : below(Number(minAmount), false)
  const end = maxAmount === undefined ? sample.known.length : below(Number(maxAmount), true)
  return (Math.max(0, end - beginning) + 0.5) / (sample.n + 0.5)
}

/** How many of the ascending amounts are below one, or, inclusive, at most that one. */
function countBelow(sorted: readonly number[], amount: number, inclusive: boolean): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const at = sorted[middle] as number
    if (at < amount || (inclusive && at === amount)) low = middle + 1
    else high = middle
  }
  return low
}

/** Without a condition the list itself: an account has thousands of cells. */
function kept(cells: readonly Cell[], keep: ((cell: Cell) => boolean) | undefined): readonly Cell[] {
  return keep === undefined ? cells : cells.filter(keep)
}

/** How many payments the cells have. */
export function countOf(cells: readonly Cell[]): number {
  return cells.reduce((total, { n }) => total + n, 0)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
