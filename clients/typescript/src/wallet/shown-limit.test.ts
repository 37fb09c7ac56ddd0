import { expect, it } from 'vitest'
import { limitOf } from './pay.ts'

it.each([
  ['150.75', undefined, '151.50'],
  ['5', undefined, '5'],
  ['1000', undefined, '1005'],
  ['0.000000000000000199', undefined, '0.000000000000000199'],
  ['0.000000000000000200', undefined, '0.000000000000000201'],
  ['123456789012345678901234567890.5', '0', '123456789012345678901234567890.5'],
  ['100.00', '1.25', '101.25'],
  ['100.00', '50', '150.00'],
  ['', undefined, undefined],
  ['-5', undefined, undefined],
  ['5', '-1', undefined],
  ['5', 'half', undefined],
  ['1e3', undefined, undefined],
])('of %s with %s percent is %s', (shown, slippage, limit) => {
  expect(limitOf(shown, slippage)).toBe(limit)
})
