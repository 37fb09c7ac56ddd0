import { codeOfType, rankOfStatus } from '../../domain/payment.ts'
import { amountBasis, type CurrencyMatch, type PaymentFilter } from '../filter/payment-filter.ts'
import type { AccountStatistics, Cell } from '../sql/account-statistics-repository.ts'

/** How many of an account's payments a filter is expected to match, as parts of all, from 0 to 1. */
export interface Estimate {
  /** Those that have the statuses. */
  readonly ofStatus: number
  /** Of those, what networks, currencies and types leave. */
  readonly ofSmall: number
  /** Of all, what the dates leave. */
  readonly ofDates: number
  /** Of all, what the range of amounts leaves; undefined where nothing is known of such amounts. */
  readonly ofAmounts: number | undefined
  /** The cells that the filter leaves, by destination network where it names networks. */
  readonly cells: readonly Cell[]
  /** The payments that only come from the filter's networks. */
  readonly elsewhere: number
  /** Of the payments in these cells and those from elsewhere, what matches. */
  readonly inCells: number
}

/** The currency filters. */
export const currencyFields = ['currency', 'paymentCurrency', 'invoiceCurrency'] as const

/** Reckons by the statistics; what they do not tell together is taken for independent. */
export function estimateMatches(filter: PaymentFilter, statistics: AccountStatistics): Estimate {
  const ranks = filter.status && new Set(filter.status.map(rankOfStatus))
  const networks = filter.network && new Set(filter.network)
  const currencies = paymentCurrencies(filter, statistics)
  const ofStatus = kept(statistics.cells, ranks && (({ status }) => ranks.has(status)))
  const ofCurrency = currencies.reduce((cells, { has }) => kept(cells, has), ofStatus)
  const cells = kept(ofCurrency, networks && (({ network }) => networks.has(network)))
  const elsewhere = sum((filter.network ?? []).map((network) => statistics.shareOfSource.get(network) ?? 0))
  const inCells =
    shareOfTypes(filter, statistics) *
    shareOfInvoices(filter, statistics) *
    currencies.reduce((product, { inCells: share }) => product * share, 1)
  const nOfStatus = countOf(ofStatus)
  const matches = (countOf(cells) + elsewhere * countOf(ofCurrency)) * inCells
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

/** A filter that only payment currencies match: which cells have any, and what part of these cells matches. */
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

/** What filters leave that currencies of invoices match as well. */
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

/** The currencies of invoices that a match means: itself, or all of its symbol. */
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

/** What is in none of a sample may still be in half of one. */
function shareOfAmounts(filter: PaymentFilter, { sample }: AccountStatistics): number | undefined {
  const { minAmount, maxAmount } = filter
  if (minAmount === undefined && maxAmount === undefined) return 1
  if (sample.n === 0 || amountBasis(filter) !== 'amountInUsd') return undefined
  const below = (amount: number, inclusive: boolean) => countBelow(sample.known, amount, inclusive)
  const beginning = minAmount === undefined ? 0 : below(Number(minAmount), false)
  const end = maxAmount === undefined ? sample.known.length : below(Number(maxAmount), true)
  return (Math.max(0, end - beginning) + 0.5) / (sample.n + 0.5)
}

/** How many of the sorted amounts are less, or no more, than one. */
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

/** An account has thousands of cells, which are not gone through without a filter on them. */
function kept(cells: readonly Cell[], keep: ((cell: Cell) => boolean) | undefined): readonly Cell[] {
  return keep === undefined ? cells : cells.filter(keep)
}

/** The payments of cells. */
export function countOf(cells: readonly Cell[]): number {
  return cells.reduce((total, { n }) => total + n, 0)
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
