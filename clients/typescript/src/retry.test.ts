import { describe, expect, it } from 'vitest'
import { waitBeforeRetry } from './retry.ts'

const attempt = { attempt: 0, retries: 2, isSafe: true, leftMs: 30_000, random: 1 }
const failed = (code: string, retryAfterMs?: number) => ({ code, retryAfterMs })

describe('waitBeforeRetry', () => {
  it.each([
    ['no answer to a safe call', { error: failed('unavailable') }, 250],
    ['the second time', { error: failed('unavailable'), attempt: 1 }, 500],
    ['half of it at least', { error: failed('unavailable'), random: 0 }, 125],
    ['no answer to a call that may not be repeated', { error: failed('unavailable'), isSafe: false }, undefined],
    ['too many calls', { error: failed('resource_exhausted', 3_000) }, 3_250],
    ['never earlier than reported', { error: failed('resource_exhausted', 3_000), random: 0 }, 3_000],
    ['too many calls that may not be repeated', { error: failed('resource_exhausted', 3_000), isSafe: false }, 3_250],
    ['too large, which a retry does not change', { error: failed('resource_exhausted') }, undefined],
    ['all attempts used', { error: failed('unavailable'), attempt: 2 }, undefined],
    ['no retries wanted', { error: failed('unavailable'), retries: 0 }, undefined],
    ['the deadline before the wait ends', { error: failed('resource_exhausted', 30_000) }, undefined],
    ['an answer that says no', { error: failed('invalid_argument') }, undefined],
    ['an answer that was too late', { error: failed('deadline_exceeded') }, undefined],
    ['a mistake of the service', { error: failed('internal') }, undefined],
  ])('%s', (_, change, expected) => {
    expect(waitBeforeRetry({ ...attempt, ...change })).toBe(expected)
  })
})
