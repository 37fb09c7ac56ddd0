import { expect, it, vi } from 'vitest'
import { formatAmount, formatShortAmount, formatUsd } from './format-amount.ts'

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
  ['0.123456', '0.123456'],
  ['0.1234567', '0.123456…'],
  ['1999.9999999', '1,999.999999…'],
  ['0.000000000123', '0.00000000012…'],
  ['0.0000001', '0.0000001'],
])('cuts %s to %s and never rounds', (amount, written) => {
  expect(formatShortAmount(amount, 6, 'en-US')).toBe(written)
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
