/** Amounts as people read them: grouped, never rounded without a sign of it. Amounts are decimal strings of any length. */
import { formatOnce } from './format-time.ts'

/** Marks digits that are left out. */
const MORE = '…'

/**
 * All digits, grouped for the viewer's language: `1234567.5` → `1,234,567.5`.
 *
 * @param amount - a decimal string without exponent
 */
export function formatAmount(amount: string, locale?: string): string {
  const fraction = /\.(\d+)$/.exec(amount)?.[1]?.length ?? 0
  const digits = { minimumFractionDigits: fraction, maximumFractionDigits: fraction }
  return formatOnce(Intl.NumberFormat, locale, digits).format(amount as Intl.StringNumericLiteral)
}

/** Digits that people read of an amount, beside whole coins and cents, which are never cut. */
const SIGNIFICANT = 6
const CENTS = 2

/**
 * An amount as people read it: at most 6 digits that count, cut and never rounded, with a sign of it: `24.573841575` → `24.5738…`,
 * `0.00126999999` → `0.00126999…`, `1234567.891` → `1,234,567.89…`.
 *
 * @param decimals - how many fit instead; a small amount keeps its first two digits that are not zero
 */
export function formatShortAmount(amount: string, decimals?: number, locale?: string): string {
  const [whole = '0', fraction = ''] = amount.split('.')
  const isSmall = /^-?0$/.test(whole)
  const zeros = /^0*/.exec(fraction)?.[0].length ?? 0
  const digits = isSmall ? -zeros : whole.replace('-', '').length
  const fit = decimals ?? SIGNIFICANT - digits
  const kept = Math.max(fit, isSmall ? zeros + CENTS : Math.min(CENTS, decimals ?? CENTS))
  const cut = fraction.slice(0, kept).replace(/0+$/, '')
  const isWhole = /^0*$/.test(fraction.slice(kept))
  return formatAmount(cut === '' ? whole : `${whole}.${cut}`, locale) + (isWhole ? '' : MORE)
}

/** What is missing, rounded up so that it suffices: `0.001263` → `0.00127` of three digits that count. */
export function formatAtLeast(amount: string, digits = SIGNIFICANT, locale?: string): string {
  const options = { maximumSignificantDigits: digits, roundingMode: 'ceil' } as const
  return formatOnce(Intl.NumberFormat, locale, options).format(amount as Intl.StringNumericLiteral)
}

/**
 * US dollars to the cent: `$12.50`; `≈ $12.34` where digits were rounded away, `< $0.01` for less than a cent.
 *
 * @param amount - a decimal string
 */
export function formatUsd(amount: string, locale?: string): string {
  const options = { style: 'currency', currency: 'USD', currencyDisplay: 'narrowSymbol' } as const
  const format = formatOnce(Intl.NumberFormat, locale, options)
  const fraction = /\.(\d+)$/.exec(amount)?.[1]?.replace(/0+$/, '') ?? ''
  if (fraction.length <= 2) return format.format(amount as Intl.StringNumericLiteral)
  if (amount.startsWith('0.00')) return `< ${format.format(0.01)}`
  return `≈ ${format.format(amount as Intl.StringNumericLiteral)}`
}

/** What an amount is worth in US dollars, which no feed knows exactly: `≈ $12.34`. */
export function formatWorth(amount: string, locale?: string): string {
  const usd = formatUsd(amount, locale)
  return /^[≈<]/.test(usd) ? usd : `≈ ${usd}`
}

/**
 * An amount with its currency: `24.5 USDC`, and of fiat as the viewer writes it, `$49.90`, `49,90 $`.
 *
 * @param currency - an id such as `USDC-BASE`, or a code of ISO 4217
 */
export function formatMoney(
  amount: string,
  currency: string,
  format: (amount: string) => string = formatAmount,
  locale?: string,
): string {
  if (!/^[A-Z]{3}$/.test(currency)) return `${format(amount)} ${symbolOf(currency)}`
  const options = { style: 'currency', currency, maximumFractionDigits: 20 } as const
  return formatOnce(Intl.NumberFormat, locale, options).format(amount as Intl.StringNumericLiteral)
}

/** `USDC-BASE` → `USDC`; what has no network stays as it is. */
export const symbolOf = (currency: string) => currency.replace(/-[^-]*$/, '')
