import { expect, it } from 'vitest'
import { assignSlots } from './payments-table.tsx'

const slotsOf = (pairs: Readonly<Record<string, number>>) => new Map(Object.entries(pairs))

it.each([
  ['the first page', {}, 'abc', { a: 0, b: 1, c: 2 }],
  ['another page takes the rows in their order', { a: 0, b: 1, c: 2 }, 'def', { d: 0, e: 1, f: 2 }],
  ['a shorter page', { a: 0, b: 1, c: 2 }, 'd', { d: 0 }],
  ['a longer page', { a: 0 }, 'bcd', { b: 0, c: 1, d: 2 }],
  ['a payment on top, while none leaves', { a: 0, b: 1 }, 'xab', { x: 2, a: 0, b: 1 }],
  ['a payment on top, while the last leaves', { a: 0, b: 1, c: 2 }, 'xab', { x: 2, a: 0, b: 1 }],
  ['the next page keeps the order of rows that were moved', { x: 2, a: 0, b: 1 }, 'def', { d: 2, e: 0, f: 1 }],
  ['the same payments in another order', { a: 0, b: 1, c: 2 }, 'cab', { c: 2, a: 0, b: 1 }],
  ['none', { a: 0 }, '', {}],
])('%s', (_, before, ids, after) => {
  expect([...assignSlots(slotsOf(before), Array.from(ids))]).toEqual(Object.entries(after))
})
