import { expect, it } from 'vitest'
import { sumOutstanding } from './outstanding.tsx'

it('adds what is left of a currency on all its chains, exactly', () => {
  const sums = sumOutstanding([
    { symbol: 'EUR', count: 1, outstandingAmount: '0.1' },
    { symbol: 'USDC', count: 1, outstandingAmount: '0.000001' },
    { symbol: 'USDC', count: 2, outstandingAmount: '9007199254740993' },
  ])
  expect(sums).toEqual([
    { symbol: 'USDC', amount: '9007199254740993.000001', requests: 3 },
    { symbol: 'EUR', amount: '0.1', requests: 1 },
  ])
})
