import { expect, test } from 'vitest'
import { type StatisticsRow, statisticsOfRows } from '../sql/account-statistics-repository.ts'
import { estimateMatches } from './estimate-matches.ts'

/** Four payments in five are of known amount: 1 to 80 US dollars. */
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
  ['from what is the least to what is the most, both included', { minAmount: '11', maxAmount: '20' }, 10.5 / 100.5],
  ['upwards', { minAmount: '71' }, 10.5 / 100.5],
  ['downwards', { maxAmount: '1' }, 1.5 / 100.5],
  ['what none of the sample has', { minAmount: '1000' }, 0.5 / 100.5],
  ['the wrong way round', { minAmount: '20', maxAmount: '10' }, 0.5 / 100.5],
  ['without a range', {}, 1],
])('a range of US dollars is reckoned by the sample: %s', (_, filter, share) => {
  expect(estimateMatches({ accountId: 1, ...filter }, statistics).ofAmounts).toBe(share)
})

test('of other amounts, and without a sample, nothing is known', () => {
  const currency = [{ of: 'payment', symbol: 'USDC' }] as const
  expect(estimateMatches({ accountId: 1, currency, minAmount: '11' }, statistics).ofAmounts).toBeUndefined()
  expect(estimateMatches({ accountId: 1, minAmount: '11' }, statisticsOfRows([])).ofAmounts).toBeUndefined()
})
