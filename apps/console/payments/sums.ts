/** Sums of the payments that match, over periods and parts, for the chart. */
import {
  Payment_Status,
  type PaymentSummary,
  PaymentSummary_GroupBy,
  PaymentSummary_Measure as SumOf,
  type WatchFilter,
} from '@waybill/client'
import { fillPeriods, firstDayOf, type Period } from './periods.ts'

export const PERIODS: readonly Period[] = ['day', 'week', 'month']
export const SPLITS = ['network', 'currency', 'status'] as const
export const MEASURES = ['usd', 'count'] as const
export type Split = (typeof SPLITS)[number]
export type Measure = (typeof MEASURES)[number]

export interface ChartState {
  readonly period: Period
  readonly split: Split
  readonly measure: Measure
}

export function groupsOf({ period, split }: ChartState): PaymentSummary_GroupBy[] {
  return [period, split].map((name) => PaymentSummary_GroupBy[name.toUpperCase() as Uppercase<Period | Split>])
}

export interface Part {
  readonly name: string
  readonly count: number
  /** A decimal string. */
  readonly usd: string
}

export interface Bar {
  readonly firstDay: string
  readonly parts: readonly Part[]
}

/** Series that are distinguished; what is less stands together as the last. */
const MAX_SERIES = 5
export const OTHER = ''

/** The bars of a chart, and its series, the largest first. */
export function barsOf({ groups }: Pick<PaymentSummary, 'groups'>, { period, split, measure }: ChartState) {
  const found = groups.flatMap((group) => {
    const at = group[period]
    const name =
      split === 'status' ? (group.status === undefined ? undefined : Payment_Status[group.status]) : group[split]
    return at === undefined
      ? []
      : [{ firstDay: firstDayOf(period, at), name: name ?? OTHER, count: group.count, usd: group.amountInUsd }]
  })
  const totals = new Map<string, number>()
  for (const part of found) totals.set(part.name, (totals.get(part.name) ?? 0) + heightOf(part, measure))
  const sorted = [...totals.keys()].toSorted(
    (left, right) => totals.get(right)! - totals.get(left)! || (left < right ? -1 : 1),
  )
  const series = sorted.filter((name) => name !== OTHER).slice(0, MAX_SERIES)
  const parts = found.map((part) => ({ ...part, name: series.includes(part.name) ? part.name : OTHER }))
  const byDay = Map.groupBy(parts, ({ firstDay }) => firstDay)
  const bars = fillPeriods(period, [...byDay.keys()].toSorted()).map(
    (firstDay): Bar => ({ firstDay, parts: byDay.get(firstDay) ?? [] }),
  )
  return { bars, series: sorted.length > series.length ? [...series, OTHER] : series }
}

/** For the height of a bar alone: what is written comes from the decimal string. */
export function heightOf({ count, usd }: Part, measure: Measure): number {
  return measure === 'count' ? count : Number(usd)
}

const STATUSES = [
  Payment_Status.PENDING,
  Payment_Status.PARTIAL,
  Payment_Status.CONFIRMED,
  Payment_Status.REFUNDED,
  Payment_Status.FAILED,
]

type StatusFilter = Pick<WatchFilter, 'status' | 'exclude'>

/** The statuses that a filter lets through. */
const statusesOf = ({ status = [], exclude }: StatusFilter) =>
  (status.length === 0 ? STATUSES : status).filter((each) => exclude?.status?.includes(each) !== true)

/** Whether a filter leaves failed payments alone: sums are of these then, and otherwise of money that moved. */
export const isFailedOnly = (filter: StatusFilter) => statusesOf(filter).every((each) => each === Payment_Status.FAILED)

/** Whether a filter lets failed payments through. */
export const mayHaveFailed = (filter: StatusFilter) => statusesOf(filter).includes(Payment_Status.FAILED)

/** The same filter without failed payments, or of these alone. */
export function withoutFailed<Filter extends WatchFilter>(filter: Filter): Filter {
  const excluded = filter.exclude?.status ?? []
  return { ...filter, exclude: { ...filter.exclude, status: [...excluded, Payment_Status.FAILED] } }
}

export const failedOf = <Filter extends WatchFilter>(filter: Filter): Filter => ({
  ...filter,
  status: [Payment_Status.FAILED],
})

/** The sums of a currency apart by its networks: `USDC-POLYGON`. */
export const byNetwork = ({ sums }: Pick<PaymentSummary, 'sums'>) => ({
  sums: sums.flatMap(({ measure, parts }) => parts.map((part) => ({ ...part, measure, symbol: part.currency }))),
})

type Summed = Pick<PaymentSummary['sums'][number], 'measure' | 'symbol' | 'amount' | 'count'>

/** How many payments are in the sums, and the sums by currency, those with most payments first. */
export function sumsByCurrency({ sums }: { readonly sums: readonly Summed[] }) {
  const bySymbol = Map.groupBy(sums, ({ symbol }) => symbol)
  const rows = [...bySymbol].map(([symbol, ofSymbol]) => {
    const sumOf = (measure: SumOf) => ofSymbol.find((sum) => sum.measure === measure)
    const amounts = sumOf(SumOf.AMOUNTS)
    const [refunded, net] = [SumOf.REFUNDS, SumOf.NET].map((measure) => sumOf(measure)?.amount ?? '0')
    return { symbol, count: amounts?.count ?? 0, gross: amounts?.amount ?? '0', refunded: refunded!, net: net! }
  })
  return {
    count: rows.reduce((total, { count }) => total + count, 0),
    currencies: rows.toSorted((left, right) => right.count - left.count),
  }
}
