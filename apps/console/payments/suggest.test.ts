import { expect, it } from 'vitest'
import { suggest } from './suggest.ts'

const known = {
  status: ['PENDING', 'CONFIRMED', 'FAILED'],
  type: ['DIRECT'],
  network: ['ETHEREUM', 'BASE'],
  currency: ['ETH', 'USDC', 'USDC-BASE'],
}
const at = { now: new Date('2026-01-05T20:00:00Z'), zone: 'Asia/Kolkata' }
const wallet = '0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC'
const uuid = 'd2719f0e-93a4-4b8e-8f0c-5f6d3a1c7e10'
const hash = `0x${'ab'.repeat(32)}`

it.each([
  ['eth', [['network:ETHEREUM'], ['currency:ETH'], ['referencePrefix:eth'], ['q:eth']]],
  ['base', [['network:BASE'], ['currency:USDC-BASE'], ['referencePrefix:base'], ['q:base']]],
  ['fai', [['status:FAILED'], ['referencePrefix:fai'], ['q:fai']]],
  ['irmed', [['status:CONFIRMED'], ['referencePrefix:irmed'], ['q:irmed']]],
  // One letter is within nearly every name, so it has to begin a word.
  ['e', [['network:ETHEREUM'], ['currency:ETH'], ['q:e']]],
  ['ba', [['network:BASE'], ['currency:USDC-BASE'], ['referencePrefix:ba'], ['q:ba']]],
  ['y', [['from:2026-01-05', 'to:2026-01-05'], ['q:y']]],
  ['INV-2026', [['referencePrefix:INV-2026'], ['q:INV-2026']]],
  // An order number is likelier than an amount.
  ['1001', [['referencePrefix:1001'], ['minAmount:1001'], ['maxAmount:1001'], ['q:1001']]],
  ['5', [['minAmount:5'], ['maxAmount:5'], ['q:5']]],
  [uuid, [[`q:${uuid}`]]],
  [wallet, [[`walletAddress:${wallet}`], [`payer:${wallet}`], [`payee:${wallet}`], [`q:${wallet}`]]],
  [hash, [[`txHash:${hash}`], [`q:${hash}`]]],
  ['0x92a4a5b4a45fd0a1', [['paymentReference:0x92a4a5b4a45fd0a1'], ['q:0x92a4a5b4a45fd0a1']]],
  ['>100', [['minAmount:100'], ['q:>100']]],
  ['<= 5.5', [['maxAmount:5.5'], ['q:<= 5.5']]],
  ['>19,90', [['minAmount:19.90'], ['q:>19,90']]],
  // 1234 or 1.234?
  ['>1,234', [['q:>1,234']]],
  ['10-20', [['referencePrefix:10-20'], ['minAmount:10', 'maxAmount:20'], ['q:10-20']]],
  ['2025-12', [['from:2025-12-01', 'to:2025-12-31'], ['referencePrefix:2025-12'], ['q:2025-12']]],
  ['2026-02-28', [['from:2026-02-28', 'to:2026-02-28'], ['referencePrefix:2026-02-28'], ['q:2026-02-28']]],
  // 20:00Z is the next day in Kolkata
  ['today', [['from:2026-01-06', 'to:2026-01-06'], ['referencePrefix:today'], ['q:today']]],
  ['INV-*', [['referencePrefix:INV-'], ['q:INV-*']]],
  ['last month', [['from:2025-12-01', 'to:2025-12-31'], ['referencePrefix:last month'], ['q:last month']]],
  // 6 January is a Tuesday.
  ['last week', [['from:2025-12-29', 'to:2026-01-04'], ['referencePrefix:last week'], ['q:last week']]],
  ['Oct', [['from:2025-10-01', 'to:2025-10-31'], ['referencePrefix:Oct'], ['q:Oct']]],
  ['january', [['from:2026-01-01', 'to:2026-01-31'], ['referencePrefix:january'], ['q:january']]],
  ['june 2024', [['from:2024-06-01', 'to:2024-06-30'], ['referencePrefix:june 2024'], ['q:june 2024']]],
  [
    '2025',
    [
      ['referencePrefix:2025'],
      ['from:2025-01-01', 'to:2025-12-31'],
      ['minAmount:2025'],
      ['maxAmount:2025'],
      ['q:2025'],
    ],
  ],
  [
    'failed yesterday',
    [
      ['status:FAILED', 'from:2026-01-05', 'to:2026-01-05'],
      ['referencePrefix:failed yesterday'],
      ['q:failed yesterday'],
    ],
  ],
  [
    'failed on base in october',
    [
      ['status:FAILED', 'network:BASE', 'from:2025-10-01', 'to:2025-10-31'],
      ['referencePrefix:failed on base in october'],
      ['q:failed on base in october'],
    ],
  ],
])('suggests for %s', (typed, expected) => {
  const suggested = suggest(typed, known, at).filter(({ to }) => to === undefined)
  const found = suggested.map(({ filters }) => filters.map(({ field, value }) => `${field}:${value}`))
  expect(found).toEqual(expected)
})

it('suggests days where nothing is typed', () => {
  expect(suggest('', known, at)).toHaveLength(5)
})

it('leads from an order number to its request, which no payment may have', () => {
  const places = (typed: string) => suggest(typed, known, at).flatMap(({ to }) => (to === undefined ? [] : [to]))
  expect(places('order 1001')).toEqual(['/requests?q=order+1001'])
  expect(places('base')).toEqual([])
})
