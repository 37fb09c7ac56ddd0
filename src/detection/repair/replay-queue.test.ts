import { expect, it } from 'vitest'
import type { Hex } from '../../domain/hex.ts'
import { newlyKnown } from './replay-queue.ts'

const [a, b]: Hex[] = ['0xa', '0xb'] as const
it.each<[string, now: [Hex, number[]][], before: [Hex, number[]][], unknown[]]>([
  ['an account that came to know a topic', [['0xa', [1, 2]]], [['0xa', [1]]], [{ accountId: 2, topic: a }]],
  ['a topic that nobody knew', [['0xb', [1]]], [], [{ accountId: 1, topic: b }]],
  ['nothing where nothing is new', [['0xa', [1]]], [['0xa', [1, 2]]], []],
])('what was not known when events were matched: %s', (_, now, before, added) => {
  expect(newlyKnown(new Map(now), new Map(before))).toEqual(added)
})
