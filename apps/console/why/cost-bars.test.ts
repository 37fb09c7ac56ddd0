import { FeeLine_Type } from '@waybill/client'
import { expect, it } from 'vitest'
import { costParts, formatFraction, kindsOf, longestBar } from './route-list.tsx'

const { GAS, SWAP, CROSSCHAIN } = FeeLine_Type

it('adds the lines of a kind exactly and orders the kinds', () => {
  const parts = costParts({
    feeAmount: '3.834132204692015833',
    feeRate: 0.02556088,
    priceImpact: 0.003,
    feeBreakdown: [
      { type: CROSSCHAIN, amountInFeeCurrency: '0.075' },
      { type: GAS, amountInFeeCurrency: '0.006804810131866066' },
      { type: GAS, amountInFeeCurrency: '3.752327394560149767' },
      // no price
      { type: SWAP },
    ],
  })
  expect(parts.map(({ kind, amount }) => [kind, amount])).toEqual([
    ['GAS', '3.759132204692015833'],
    ['CROSSCHAIN', '0.075'],
    ['PRICE_IMPACT', undefined],
  ])
  expect(parts.reduce((sum, { rate }) => sum + rate, 0)).toBeCloseTo(0.02556088 + 0.003, 10)
})

it('draws nothing for a route without costs', () => {
  const free = costParts({
    feeAmount: '0',
    feeRate: 0,
    priceImpact: 0,
    feeBreakdown: [{ type: GAS, amountInFeeCurrency: '0' }],
  })
  expect(free).toEqual([])
  expect(longestBar([free])).toBeGreaterThan(0)
})

it('lists the kinds of all bars in one order', () => {
  expect(
    kindsOf([
      [{ kind: 'PRICE_IMPACT', rate: 1 }],
      [
        { kind: 'SWAP', rate: 1 },
        { kind: 'GAS', rate: 1 },
      ],
    ]),
  ).toEqual(['GAS', 'SWAP', 'PRICE_IMPACT'])
})

it('does not let a gain shorten the longest bar', () => {
  const gain = [
    { kind: 'GAS', rate: 0.02 },
    { kind: 'PRICE_IMPACT', rate: -0.01 },
  ] as const
  expect(longestBar([gain, [{ kind: 'GAS', rate: 0.01 }]])).toBe(0.02)
})

it.each([
  [0, '0%'],
  [0.01, '1.00%'],
  [0.0199, '1.99%'],
  [0.01989229, '≈ 1.99%'],
  [0.00003, '< 0.01%'],
  [-0.00003, '> -0.01%'],
  [-0.0021, '-0.21%'],
  [1.5, '150.00%'],
])('writes the fraction %d as %s', (fraction, written) => {
  expect(formatFraction(fraction, 'en-US')).toBe(written)
})
