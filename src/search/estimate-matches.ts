import { codeOfType, rankOfStatus } from '../domain/payment.ts'
import type { AccountStatistics, Cell } from './account-statistics-repository.ts'
import type { CurrencyMatch, PaymentFilter } from './payment-filter.ts'

/** How many of an account's payments a filter is expected to match, as parts of all, from 0 to 1. */
export interface Estimate {
  /** Those that have the statuses. */
  readonly ofStatus: number
  /** Of those, what networks, currencies and types leave. */
  readonly ofSmall: number
  /** Of all, what the dates leave. */
  readonly ofDates: number
  /** The cells that the filter leaves, by destination network where it names networks. */
  readonly cells: readonly Cell[]
  /** Of the payments in these cells, what matches. */
  readonly inCells: number
}

/** The currency filters. */
export const currencyFields = ['currency', 'paymentCurrency', 'invoiceCurrency'] as const

/** Reckons by the statistics; what they do not tell together is taken for independent. */
export function estimateMatches(filter: PaymentFilter, statistics: AccountStatistics): Estimate {
  const ranks = filter.status && new Set(filter.status.map(rankOfStatus))
  const symbols = wantedSymbols(filter)
  const ofStatus = statistics.cells.filter(({ status }) => ranks?.has(status) ?? true)
  const ofSymbols = ofStatus.filter(({ symbol }) => symbols?.has(symbol) ?? true)
  const cells = ofSymbols.filter(({ network }) => filter.network?.includes(network) ?? true)
  const elsewhere = sum((filter.network ?? []).map((network) => statistics.shareOfSource.get(network) ?? 0))
  const inCells = shareOfTypes(filter, statistics) * shareOfCurrencies(filter, statistics, symbols)
  const nOfStatus = sum(ofStatus.map(({ n }) => n))
  const matches = (sum(cells.map(({ n }) => n)) + elsewhere * sum(ofSymbols.map(({ n }) => n))) * inCells
  return {
    ofStatus: ratio(nOfStatus, statistics.n),
    ofSmall: Math.min(1, ratio(matches, nOfStatus)),
    ofDates: shareOfDates(filter, statistics),
    cells,
    inCells: Math.min(1, inCells),
  }
}

/** The symbols that payments must have; undefined where any may match. */
function wantedSymbols(filter: PaymentFilter): ReadonlySet<string> | undefined {
  const sets = currencyFields.flatMap((name) => {
    const matches = filter[name]
    return matches?.every(({ of }) => of === 'payment') ? [new Set(matches.map(({ symbol }) => symbol))] : []
  })
  return sets.length === 0
    ? undefined
    : sets.reduce((one, other) => new Set([...one].filter((symbol) => other.has(symbol))))
}

function shareOfTypes({ type }: PaymentFilter, { shareOfType }: AccountStatistics): number {
  return type === undefined ? 1 : sum(type.map((name) => shareOfType.get(codeOfType(name)) ?? 0))
}

/** What currency filters leave of the payments that have the wanted symbols. */
function shareOfCurrencies(
  filter: PaymentFilter,
  statistics: AccountStatistics,
  symbols: ReadonlySet<string> | undefined,
): number {
  const ofSymbol = (wanted: string) =>
    ratio(sum(statistics.cells.map(({ symbol, n }) => (symbol === wanted ? n : 0))), statistics.n)
  const ofMatch = (match: CurrencyMatch) => {
    if (match.of === 'payment') {
      return match.id === undefined ? ofSymbol(match.symbol) : (statistics.shareOfCurrency.get(match.id) ?? 0)
    }
    return sum(invoiceIdsOf(match, statistics).map((id) => statistics.shareOfInvoice.get(id) ?? 0))
  }
  const shares = currencyFields.flatMap((name) => {
    const matches = filter[name]
    if (matches === undefined) return []
    const share = sum(matches.map(ofMatch))
    const isOfSymbols = matches.every(({ of }) => of === 'payment')
    return isOfSymbols ? ratio(share, sum([...(symbols ?? [])].map(ofSymbol))) : share
  })
  return shares.reduce((product, share) => product * Math.min(1, share), 1)
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

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole
}
