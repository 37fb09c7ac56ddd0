/** What the chart and its table write. */

import { addDecimals } from '../../shared/decimals.ts'
import { formatAmount, formatUsd } from '../../shared/format-amount.ts'
import { formatDay, formatOnce } from '../../shared/format-time.ts'
import { paymentsTexts, stateTexts } from '../../shared/texts.ts'
import { lastDayOf, type Period } from './periods.ts'
import { type Bar, type ChartState, heightOf, type Measure, OTHER, type Part } from './sums.ts'

type Parts = readonly Part[]

/** What a bar says to those who cannot see it: `23 Nov 2026: 12 payments, $400.00; BASE $300.00, BSC $100.00`. */
export function barText({ firstDay, parts }: Bar, state: ChartState, series: readonly string[]): string {
  const ofSeries = series.map((name) => `${nameText(name, state)} ${seriesText(name, parts, state)}`)
  return `${periodText(state.period, firstDay)}: ${totalText(parts)}; ${ofSeries.join(', ')}`
}

export const totalText = (parts: Parts) => `${paymentsTexts.count(countOf(parts))}, ${usdOf(parts)}`

export function seriesText(name: string, parts: Parts, { measure }: ChartState): string {
  const ofSeries = parts.filter((part) => part.name === name)
  return measure === 'usd' ? usdOf(ofSeries) : formatAmount(String(countOf(ofSeries)))
}

export function periodText(period: Period, firstDay: string, lastDay = lastDayOf(period, firstDay)): string {
  return firstDay === lastDay ? dayText(firstDay) : `${dayText(firstDay)} – ${dayText(lastDay)}`
}

/** A day is the same in every zone, so it is written as a moment of UTC. */
export const dayText = (day: string) => formatDay(new Date(`${day}T00:00:00Z`), 'UTC')

export function nameText(name: string, { split }: ChartState): string {
  if (name === OTHER) return paymentsTexts.chart.other
  return split === 'status' ? stateTexts.payment[name as keyof typeof stateTexts.payment] : name
}

export const countOf = (parts: Parts) => parts.reduce((sum, { count }) => sum + count, 0)
export const usdOf = (parts: Parts) => formatUsd(addDecimals(parts.map(({ usd }) => usd)))

/** `$20K`, `1.5K` */
export function tickText(value: number, measure: Measure): string {
  const dollars = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const
  const options: Intl.NumberFormatOptions = { notation: 'compact', maximumFractionDigits: 2, minimumFractionDigits: 0 }
  return formatOnce(Intl.NumberFormat, undefined, { ...options, ...(measure === 'usd' && dollars) }).format(value)
}

/** The height of a bar. */
export function totalOf({ parts }: Bar, { measure }: ChartState): number {
  return parts.reduce((sum, part) => sum + heightOf(part, measure), 0)
}

const MAX_STEPS = 4

/**
 * The values of a y axis: round ones, equally far apart, from 0 to one that is at least the highest.
 *
 * @param unit - the least step: 1 of a count
 */
export function ticksFor(highest: number, unit: number): number[] {
  const rough = Math.max(highest / MAX_STEPS, unit)
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= rough * 0.999_999)!
  const steps = Math.max(1, Math.ceil((highest / step) * 0.999_999))
  return Array.from({ length: steps + 1 }, (_, index) => index * step)
}
