import { describe, expect, it } from 'vitest'
import { silentLogger } from '../../../test/support/logs.ts'
import type { Hex } from '../../domain/hex.ts'
import type { Findings } from '../match/detected.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import type { PendingReplays } from '../sql/pending-replays-repository.ts'
import { createReplayQueue, newlyKnown } from './replay-queue.ts'

const [a, b]: Hex[] = ['0xa', '0xb'] as const
it.each<[string, now: [Hex, number[]][], before: [Hex, number[]][], unknown[]]>([
  ['an account that came to know a topic', [['0xa', [1, 2]]], [['0xa', [1]]], [{ accountId: 2, topic: a }]],
  ['a topic that nobody knew', [['0xb', [1]]], [], [{ accountId: 1, topic: b }]],
  ['nothing where nothing is new', [['0xa', [1]]], [['0xa', [1, 2]]], []],
])('what was not known when events were matched: %s', (_, now, before, added) => {
  expect(newlyKnown(new Map(now), new Map(before))).toEqual(added)
})

describe('a running queue', () => {
  const findings: Findings = {
    accounts: new Map([[1, { payments: [], refunds: [] }]]),
    unmatched: [],
    proxies: [],
    directory: new Map([['0xa', []]]),
    lacking: [],
    untraced: new Set(),
    withoutTrace: new Set(),
  }

  it('replays at once what was still being added when it began to wait again', async () => {
    let drains = 0
    const slowCommit = Promise.withResolvers<void>()
    const commits = [slowCommit.promise, Promise.resolve()]
    const next = async () => {
      drains++
      return []
    }
    const pending = { add: () => commits.shift(), next } as unknown as PendingReplays
    const repository = { accountsOfTopics: async () => new Map([['0xa', [1]]]) } as unknown as DetectionRepository
    const queue = createReplayQueue({ repository, pending, logger: silentLogger })
    const stopping = new AbortController()
    const running = queue.run(stopping.signal)
    const slow = queue.recheck(findings)
    await queue.recheck(findings)
    await expect.poll(() => drains, { interval: 5 }).toBe(1)
    slowCommit.resolve()
    await slow
    // Sooner than the next retry.
    await expect.poll(() => drains, { interval: 5, timeout: 1_000 }).toBe(2)
    stopping.abort()
    await running
  })
})
