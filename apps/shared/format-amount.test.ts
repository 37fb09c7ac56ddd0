import { expect, it, vi } from 'vitest'
import { formatAmount, formatAtLeast, formatMoney, formatShortAmount, formatUsd, formatWorth } from './format-amount.ts'

it.each([
  ['0', '0'],
  ['1234567.5', '1,234,567.5'],
  ['0.100000000000000001', '0.100000000000000001'],
  [
    '115792089237316195423570985008687907853269984665640564039457584007913129639935',
    '115,792,089,237,316,195,423,570,985,008,687,907,853,269,984,665,640,564,039,457,584,007,913,129,639,935',
  ],
  ['-12.30', '-12.30'],
])('writes every digit of %s as %s', (amount, written) => {
  expect(formatAmount(amount, 'en-US')).toBe(written)
})

it.each([
  ['12.5', '12.5'],
  ['12.345', '12.34…'],
  ['12.30', '12.3'],
  ['0.00000001234', '0.000000012…'],
  ['0.5', '0.5'],
  ['1999.00000001', '1,999…'],
])('in a column of two decimals %s is %s', (amount, written) => {
  expect(formatShortAmount(amount, 2, 'en-US')).toBe(written)
})

it.each([
  ['0', '$0.00'],
  ['12.5', '$12.50'],
  ['12.340000', '$12.34'],
  ['12.345', '≈ $12.35'],
  ['0.004', '< $0.01'],
  ['0.01', '$0.01'],
  ['1234567.891', '≈ $1,234,567.89'],
])('writes %s US dollars as %s', (amount, written) => {
  expect(formatUsd(amount, 'en-US')).toBe(written)
})

it('makes a format of dollars once', () => {
  formatUsd('1', 'en')
  const made = vi.spyOn(Intl, 'NumberFormat')
  expect(formatUsd('12.5', 'en')).toBe('$12.50')
  expect(made).not.toHaveBeenCalled()
  made.mockRestore()
})

it.each([
  ['24.5', '24.5'],
  ['24.573841575314190454', '24.5738…'],
  ['0.046991904957724905', '0.0469919…'],
  ['0.0000001', '0.0000001'],
  ['1234567.891', '1,234,567.89…'],
  ['1234567.89', '1,234,567.89'],
  ['-1234567.891', '-1,234,567.89…'],
  ['1234567', '1,234,567'],
  ['99999.90', '99,999.9'],
  ['-0.12345678', '-0.123456…'],
  ['150.000000000000000000', '150'],
])('people read %s as %s: six digits that count, and cents', (amount, written) => {
  expect(formatShortAmount(amount, undefined, 'en-US')).toBe(written)
})

it.each([
  ['0.001263', 3, '0.00127'],
  ['0.00127', 3, '0.00127'],
  ['137.5', 6, '137.5'],
  ['1234.5678', 3, '1,240'],
  ['0.000000000000000001', 3, '0.000000000000000001'],
  ['115792089237316195423.570985008687907853', 6, '115,793,000,000,000,000,000'],
])('what is missing, %s, is in %i digits at least %s', (amount, digits, written) => {
  expect(formatAtLeast(amount, digits, 'en-US')).toBe(written)
})

it.each([
  ['24.5', '≈ $24.50'],
  ['24.5738', '≈ $24.57'],
  ['0.001', '< $0.01'],
])('a worth of %s is %s', (amount, written) => {
  expect(formatWorth(amount, 'en-US')).toBe(written)
})

it.each([
  ['24.5', 'USDC-ETHEREUM', 'en-US', '24.5 USDC'],
  ['49.9', 'USD', 'en-US', '$49.90'],
  ['49.9', 'USD', 'de-DE', '49,90\u00a0$'],
  ['1234.5678', 'EUR', 'en-US', '€1,234.5678'],
  ['1000', 'JPY', 'en-US', '¥1,000'],
])('%s %s is written for %s as %s', (amount, currency, locale, written) => {
  expect(formatMoney(amount, currency, undefined, locale)).toBe(written)
})
