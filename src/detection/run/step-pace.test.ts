import { describe, expect, it } from 'vitest'
import { type FollowOutcome, paceAfter, paceAfterError, pollIntervalOf } from './follow-step.ts'

describe('the pace of a follower', () => {
  it.each<[blockTimeSeconds: number, pollMs: number]>([
    [0.25, 250],
    [1, 500],
    [2, 1_000],
    [12, 2_000],
  ])('on a chain with a block every %d s is a scan every %i ms', (blockTimeSeconds, pollMs) => {
    expect(pollIntervalOf(blockTimeSeconds)).toBe(pollMs)
  })

  it.each<[FollowOutcome['kind'], pollMs: number, waitMs: number]>([
    ['MORE', 500, 0],
    ['CAUGHT_UP', 500, 500],
    ['AGAIN', 500, 500],
    ['WAIT', 500, 500],
    ['ALARM', 500, 500],
    ['ELSEWHERE', 500, 750],
    ['ELSEWHERE', 2_000, 750],
  ])('after %s, polling every %i ms, is a step in %i ms', (outcome, pollMs, waitMs) => {
    expect(paceAfter(outcome, pollMs)).toEqual({ waitMs, failures: 0 })
  })

  it.each<[failures: number, waitMs: number]>([
    [0, 500],
    [1, 1_000],
    [5, 16_000],
    [6, 30_000],
    [50, 30_000],
  ])('after %i failures and one more is a step in %i ms', (failures, waitMs) => {
    const pace = paceAfterError(failures, { isFollowing: true, pollMs: 250 })
    expect(pace).toEqual({ waitMs, failures: failures + 1 })
  })

  it.each<[retryAfterMs: number, waitMs: number]>([
    [1, 500],
    [7_000, 7_000],
    [86_400_000, 30_000],
  ])('after a node asked to be left alone for %i ms is a step in %i ms', (retryAfterMs, waitMs) => {
    expect(paceAfterError(5, { isFollowing: true, pollMs: 250, retryAfterMs })).toEqual({ waitMs, failures: 6 })
  })

  it('is the usual one after another process took the chain over', () => {
    expect(paceAfterError(4, { isFollowing: false, pollMs: 250 })).toEqual({ waitMs: 250, failures: 0 })
  })
})
