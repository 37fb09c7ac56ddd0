import { expect, it } from 'vitest'
import { sumOutstanding } from './outstanding.tsx'

it('adds what is left of a currency on all its chains, exactly', () => {
  const sums = sumOutstanding([
    { symbol: 'EUR', network: undefined, count: 1, outstandingAmount: '0.1' },
    { symbol: 'USDC', network: 'POLYGON', count: 1, outstandingAmount: '0.000001' },
    { symbol: 'USDC', network: 'BASE', count: 2, outstandingAmount: '9007199254740993' },
  ])
  expect(sums).toEqual([
    {
      symbol: 'USDC',
      amount: '9007199254740993.000001',
      requests: 3,
      parts: [
        { network: 'BASE', amount: '9007199254740993' },
        { network: 'POLYGON', amount: '0.000001' },
      ],
    },
    { symbol: 'EUR', amount: '0.1', requests: 1, parts: [{ network: undefined, amount: '0.1' }] },
  ])
})
