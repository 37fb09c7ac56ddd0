import { expect, test } from 'vitest'
import { type StatisticsRow, statisticsOfRows } from '../sql/account-statistics.ts'
import { estimateMatches } from './estimate-matches.ts'

/** 100 payments, of which 80 have a known amount: 1 to 80 US dollars. */
const sampled: StatisticsRow = {
  kind: 'sample',
  name: Array.from({ length: 80 }, (_, nth) => `${80 - nth}.000000`).join(' '),
  n: '100',
  status: null,
  type: null,
  network: null,
  first_at: null,
  last_at: null,
  seq: null,
  priced: null,
}
const statistics = statisticsOfRows([sampled])

test.each([
  ['includes both bounds', { minAmount: '11', maxAmount: '20' }, 10.5 / 100.5],
  ['with a lower bound alone', { minAmount: '71' }, 10.5 / 100.5],
  ['with an upper bound alone', { maxAmount: '1' }, 1.5 / 100.5],
  ['that no payment of the sample has', { minAmount: '1000' }, 0.5 / 100.5],
  ['with the bounds exchanged', { minAmount: '20', maxAmount: '10' }, 0.5 / 100.5],
  ['that is not given', {}, 1],
])('the share of a range of US dollars %s is taken from the sample', (_, filter, share) => {
  expect(estimateMatches({ accountId: 1, ...filter }, statistics).ofAmounts).toBe(share)
})

test('the share of other amounts, or without a sample, is unknown', () => {
  const currency = [{ of: 'payment', symbol: 'USDC' }] as const
  expect(estimateMatches({ accountId: 1, currency, minAmount: '11' }, statistics).ofAmounts).toBeUndefined()
  expect(estimateMatches({ accountId: 1, minAmount: '11' }, statisticsOfRows([])).ofAmounts).toBeUndefined()
})
