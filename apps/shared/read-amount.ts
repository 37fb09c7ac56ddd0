/** Amounts as people type them: with the decimal sign of their language, and thousands set apart. */
import { formatAmount } from './format-amount.ts'
import { formatOnce } from './format-time.ts'
import { amountTexts } from './texts.ts'

/** Both amounts that a text may mean. */
export interface TwoReadings {
  readonly either: readonly [whole: string, fraction: string]
}

/**
 * Reads an amount: `19,90` → `19.90`, `1.234,50` → `1234.50`, `1 234` → `1234`. One sign before three digits, as in `1,234`, is a decimal sign
 * only where the viewer's language has it; otherwise both readings are returned, because one of them is wrong by a factor of 1,000.
 *
 * @returns a decimal string; undefined if the text is no amount
 */
export function readAmount(typed: string, locale?: string): string | TwoReadings | undefined {
  const text = typed.trim().replace(/(?<=\d)[\s'’](?=\d{3}(?!\d))/g, '')
  if (/^\d+$/.test(text)) return text
  const [, whole, sign, fraction = ''] = /^(\d*)([.,])(\d+)$/.exec(text) ?? []
  if (whole !== undefined) {
    const isEither = fraction.length === 3 && /^[1-9]\d{0,2}$/.test(whole) && sign !== decimalSign(locale)
    const amount = `${whole || '0'}.${fraction}`
    return isEither ? { either: [whole + fraction, amount] } : amount
  }
  const isGrouped = /^\d{1,3}(?:(?:,\d{2,3})*,\d{3}(?:\.\d+)?|(?:\.\d{2,3})*\.\d{3}(?:,\d+)?)$/.test(text)
  if (!isGrouped) return undefined
  const group = /[.,]/.exec(text)?.[0] ?? ''
  return text.replaceAll(group, '').replace(',', '.')
}

/** Says why no amount was read, with numbers as the viewer writes them. */
export function sayUnreadAmount(read: TwoReadings | undefined, locale?: string): string {
  if (read === undefined) return amountTexts.none(formatAmount('19.90', locale))
  const [whole, fraction] = read.either
  return amountTexts.either(whole, formatAmount(fraction, locale))
}

function decimalSign(locale: string | undefined): string | undefined {
  const parts = formatOnce(Intl.NumberFormat, locale, {}).formatToParts(0.5)
  return parts.find(({ type }) => type === 'decimal')?.value
}
