import { expect, it } from 'vitest'
import { suggestName } from './nearest.ts'

const parameters = ['fromDate', 'toDate', 'payer', 'walletAddress', 'txHash', 'sortOrder', 'status', 'network', 'limit']

it.each([
  ['from', 'fromDate'],
  ['to', 'toDate'],
  ['tx', 'txHash'],
  ['order', 'sortOrder'],
  ['wallet', 'walletAddress'],
  ['statuss', 'status'],
  ['STATUS', 'status'],
  ['netwrok', 'network'],
  ['lmit', 'limit'],
  ['netowrk', 'network'],
  ['paeyr', 'payer'],
])('takes %s for %s', (mistyped, name) => {
  expect(suggestName(mistyped, parameters)).toBe(`did you mean "${name}"?`)
})

it.each(['nope', 'xy', '', 'pageSize', 'x'.repeat(10_000)])('lists the names when none is near to "%s"', (mistyped) => {
  expect(suggestName(mistyped, ['q', 'op', ...parameters])).toBe(`use one of: q, op, ${parameters.join(', ')}`)
})

it('shows at most 40 names', () => {
  const names = Array.from({ length: 100 }, (_, i) => `NAME${i}`)
  expect(suggestName('zzz', names)).toMatch(/NAME39, …$/)
})
