import { Payment_Status, PaymentSummary_Measure as SumOf } from '@waybill/client'
import { expect, it } from 'vitest'
import { choosePeriod, fillPeriods, firstDayOf, lastDayOf } from './periods.ts'
import { barsOf, byNetwork, isFailedOnly, mayHaveFailed, OTHER, sumsByCurrency } from './sums.ts'

it.each([
  ['day', '2026-11-23', '2026-11-23', '2026-11-23'],
  ['week', '2026-W48', '2026-11-23', '2026-11-29'],
  // 1 January 2027 is a Friday of the last week of 2026
  ['week', '2026-W53', '2026-12-28', '2027-01-03'],
  ['week', '2025-W01', '2024-12-30', '2025-01-05'],
  ['month', '2024-02', '2024-02-01', '2024-02-29'],
] as const)('a %s named %s is from %s to %s', (period, name, first, last) => {
  expect(firstDayOf(period, name)).toBe(first)
  expect(lastDayOf(period, first)).toBe(last)
})

it('fills what lies between', () => {
  expect(fillPeriods('month', ['2025-11-01', '2026-02-01'])).toEqual([
    '2025-11-01',
    '2025-12-01',
    '2026-01-01',
    '2026-02-01',
  ])
  expect(fillPeriods('week', ['2026-12-28', '2027-01-11'])).toEqual(['2026-12-28', '2027-01-04', '2027-01-11'])
  expect(fillPeriods('day', [])).toEqual([])
})

it.each([
  [null, null, 'week'],
  ['2026-11-01', null, 'day'],
  ['2026-01-01', '2026-11-23', 'week'],
  ['2020-01-01', null, 'month'],
])('shows what is from %s to %s by %s and %s', (from, to, period) => {
  expect(choosePeriod(from, to, '2026-11-23')).toBe(period)
})

it('puts the largest series first and small ones together', () => {
  const group = (month: string, network: string, count: number) =>
    ({ month, network, count, amountInUsd: String(count), status: Payment_Status.CONFIRMED }) as never
  const names = ['A', 'B', 'C', 'D', 'E', 'F', 'G']
  const groups = names.map((name, index) => group('2026-01', name, index + 1))
  const state = { period: 'month', split: 'network', measure: 'count' } as const
  const { bars, series } = barsOf({ groups: [...groups, group('2026-03', 'A', 100)] }, state)
  expect(series).toEqual(['A', 'G', 'F', 'E', 'D', OTHER])
  expect(bars.map(({ firstDay, parts }) => [firstDay, parts.length])).toEqual([
    ['2026-01-01', 7],
    ['2026-02-01', 0],
    ['2026-03-01', 1],
  ])
})

it('puts gross, refunded and net of a currency side by side, and counts each payment once', () => {
  const sum = (measure: SumOf, symbol: string, amount: string, count: number) => ({ measure, symbol, amount, count })
  const sums = [
    sum(SumOf.AMOUNTS, 'ETH', '2', 1),
    sum(SumOf.AMOUNTS, 'USDC', '100.5', 3),
    sum(SumOf.REFUNDS, 'USDC', '0.5', 2),
    sum(SumOf.NET, 'ETH', '2', 1),
    sum(SumOf.NET, 'USDC', '100', 3),
  ]
  expect(sumsByCurrency({ sums })).toMatchObject({
    count: 4,
    currencies: [
      { symbol: 'USDC', gross: '100.5', refunded: '0.5', net: '100' },
      { symbol: 'ETH', gross: '2', refunded: '0', net: '2' },
    ],
  })
})

const { PENDING, PARTIAL, CONFIRMED, REFUNDED, FAILED } = Payment_Status
it.each([
  [{}, false],
  [{ status: [FAILED] }, true],
  [{ status: [FAILED, PENDING] }, false],
  [{ status: [FAILED, PENDING], exclude: { status: [PENDING] } }, true],
  [{ exclude: { status: [PENDING, PARTIAL, CONFIRMED, REFUNDED] } }, true],
  [{ exclude: { status: [FAILED] } }, false],
])('knows whether %j leaves failed payments alone', (filter, expected) => {
  expect(isFailedOnly(filter)).toBe(expected)
})

it.each([
  [{}, true],
  [{ status: [FAILED, CONFIRMED] }, true],
  [{ status: [CONFIRMED] }, false],
  [{ exclude: { status: [FAILED] } }, false],
])('knows whether %j lets failed payments through', (filter, expected) => {
  expect(mayHaveFailed(filter)).toBe(expected)
})

it('takes the sums of a currency apart by its networks', () => {
  const parts = [
    { currency: 'USDC-BASE', amount: '90', count: 2 },
    { currency: 'USDC-POLYGON', amount: '10', count: 1 },
  ]
  const sums = [SumOf.AMOUNTS, SumOf.NET].map((measure) => ({
    measure,
    symbol: 'USDC',
    amount: '100',
    count: 3,
    parts,
  }))
  expect(sumsByCurrency(byNetwork({ sums } as never))).toEqual({
    count: 3,
    currencies: [
      { symbol: 'USDC-BASE', count: 2, gross: '90', refunded: '0', net: '90' },
      { symbol: 'USDC-POLYGON', count: 1, gross: '10', refunded: '0', net: '10' },
    ],
  })
})
