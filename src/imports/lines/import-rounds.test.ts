import { expect, it } from 'vitest'
import type { Payment } from '../../domain/payment.ts'
import { splitRounds } from './import-rounds.ts'

/** A payment of an id and an event index, where it has one. */
const of = (id: string, eventIndex?: number) =>
  ({ id, network: 'BASE', ...(eventIndex !== undefined && { txHash: '0x1', eventIndex }) }) as unknown as Payment

it.each<[string, Payment[], number[][]]>([
  ['nothing', [], []],
  ['different ones', [of('a', 1), of('b', 2), of('c')], [[0, 1, 2]]],
  ['one id again', [of('a', 1), of('b'), of('a', 2)], [[0, 1], [2]]],
  ['one event again', [of('a', 1), of('b', 1), of('c', 1)], [[0], [1], [2]]],
  // a payment of a later round delays those after it that share a key with it
  ['a chain of both', [of('a', 1), of('b', 1), of('b', 3), of('c', 3), of('d', 4)], [[0, 4], [1], [2], [3]]],
])('rounds of %s hold no key twice and keep the order of each', (_, batch, rounds) => {
  expect(splitRounds(batch)).toEqual(rounds)
})
