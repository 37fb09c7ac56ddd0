import { expect, it } from 'vitest'
import { addDecimals, isAboveZero, shareOf, subtractDecimals } from './decimals.ts'

it.each([
  [[], '0'],
  [['0'], '0'],
  [['0.1', '0.20'], '0.3'],
  [['0.000000000000000001', '9007199254740993'], '9007199254740993.000000000000000001'],
  [['-1.5', '1.25'], '-0.25'],
  [['-0.5', '0.5'], '0'],
  [['99.99', '0.01'], '100'],
])('adds %s to %s', (amounts, sum) => {
  expect(addDecimals(amounts)).toBe(sum)
})

it.each([
  ['5', '1.5', '3.5'],
  ['1', '2', '-1'],
  ['130', '30', '100'],
])('%s less %s is %s', (from, amount, left) => {
  expect(subtractDecimals(from, amount)).toBe(left)
})

it.each([
  ['0', false],
  ['0.000', false],
  ['-1', false],
  ['0.000000000000000001', true],
  ['10', true],
])('%s is above zero: %s', (amount, expected) => {
  expect(isAboveZero(amount)).toBe(expected)
})

it.each([
  ['1', '3', 33.33],
  ['180', '300', 60],
  ['1', '0', 0],
  ['0.000000000000000001', '1', 0],
])('%s of %s is %d percent', (part, whole, percent) => {
  expect(shareOf(part, whole)).toBe(percent)
})
