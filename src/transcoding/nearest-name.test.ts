import { expect, test } from 'vitest'
import { findNearestName } from './nearest-name.ts'

const known = ['wallet', 'amount', 'feePercentage', 'fee_percentage', 'feeAddress', 'toDate', 'to', 'id', 'payer']

test.each([
  ['walet', 'wallet'],
  ['walllet', 'wallet'],
  ['wlalet', 'wallet'],
  ['WALLET', 'wallet'],
  ['amuont', 'amount'],
  ['feePercent', 'feePercentage'],
  ['fee_percent', 'fee_percentage'],
  ['feeAdress', 'feeAddress'],
  ['todate', 'toDate'],
  ['ot', 'to'],
  ['di', 'id'],
  ['xy', undefined],
  ['page', undefined],
  ['dt', undefined],
  ['', undefined],
  ['entirelyDifferent', undefined],
  ['w'.repeat(100_000), undefined],
])('%.20s means %s', (name, expected) => {
  expect(findNearestName(name, known)).toBe(expected)
})

test('of equally near names the first is meant', () => {
  expect(findNearestName('cat', ['bat', 'hat'])).toBe('bat')
})
