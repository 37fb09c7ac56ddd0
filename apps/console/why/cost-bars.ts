/** What a route costs, as parts of a bar: fees by kind and the price impact, all as fractions of what the payee receives. */
import { type FeeLine, FeeLine_Type, type Route } from '@waybill/client'
import { addDecimals, shareOf } from '../parts/decimals.ts'

export type CostKind = keyof typeof FeeLine_Type | 'PRICE_IMPACT'

export interface CostPart {
  readonly kind: CostKind
  /** Fraction of what the payee receives. Negative where the payer gains. */
  readonly rate: number
  /** The sum of the lines in the route's `feeCurrency`, exact. The price impact has none. */
  readonly amount?: string
}

/** What a bar needs of a route. */
export interface Costs extends Pick<Route, 'feeAmount' | 'feeRate' | 'priceImpact'> {
  readonly feeBreakdown: readonly Pick<FeeLine, 'type' | 'amountInFeeCurrency'>[]
}

/** More than a screen has pixels. */
const DIGITS = 7
const order: readonly CostKind[] = ['GAS', 'SWAP', 'CROSSCHAIN', 'PROTOCOL', 'PLATFORM', 'PRICE_IMPACT']

/** Each kind has its own; what has no kind is grey, like the last. */
export const colourOf = (kind: CostKind) => `var(--series-${((order.indexOf(kind) + order.length) % order.length) + 1})`

/** @returns the parts that are not zero, in the order in which every bar shows them; costs without a price are left out */
export function costParts({ feeAmount, feeRate, priceImpact, feeBreakdown }: Costs): CostPart[] {
  const fees = [...Map.groupBy(feeBreakdown, ({ type }) => type)].map(([type, lines]) => {
    const amount = addDecimals(lines.flatMap(({ amountInFeeCurrency: line }) => (line === undefined ? [] : [line])))
    return {
      kind: FeeLine_Type[type] as CostKind,
      rate: (shareOf(amount, feeAmount, DIGITS) / 100) * feeRate,
      amount,
    }
  })
  return [...fees, { kind: 'PRICE_IMPACT', rate: priceImpact } as const]
    .filter((part) => ('amount' in part ? part.amount !== '0' : part.rate !== 0))
    .toSorted((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))
}

/** The kinds that any of the bars shows, in their order. */
export function kindsOf(bars: readonly (readonly CostPart[])[]): CostKind[] {
  const kinds = new Set(bars.flat().map(({ kind }) => kind))
  return order.filter((kind) => kinds.has(kind))
}

/** The length of the longest bar, which fills the width; above 0. */
export function longestBar(bars: readonly (readonly CostPart[])[]): number {
  return Math.max(...bars.map((parts) => parts.reduce((sum, { rate }) => sum + Math.max(0, rate), 0)), Number.MIN_VALUE)
}

/**
 * A fraction in percent: `1.50%`; `≈ 1.99%` where digits were rounded away, `< 0.01%` for less.
 */
export function formatFraction(fraction: number, locale?: string): string {
  const format = new Intl.NumberFormat(locale, { style: 'percent', minimumFractionDigits: 2, maximumFractionDigits: 2 })
  if (fraction === 0) return new Intl.NumberFormat(locale, { style: 'percent' }).format(0)
  const size = Math.abs(fraction)
  if (size < 0.000_1) return fraction > 0 ? `< ${format.format(0.000_1)}` : `> ${format.format(-0.000_1)}`
  const isExact = Math.abs(size * 10_000 - Math.round(size * 10_000)) < 1e-9
  return isExact ? format.format(fraction) : `≈ ${format.format(fraction)}`
}
