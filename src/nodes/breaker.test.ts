import { describe, expect, it } from 'vitest'
import { createBreaker } from './breaker.ts'

/** A breaker that was open and whose cool-down is over. */
function halfOpen() {
  const breaker = createBreaker(() => {})
  breaker.fail({ detail: 'HTTP status 503', opensAtOnce: true }, 0)
  return breaker
}

describe('the probe of an open breaker', () => {
  it('goes to one caller, once the cool-down is over', () => {
    const breaker = halfOpen()
    expect([999, 1_000, 1_000].map((nowMs) => breaker.admit(nowMs))).toEqual(['NO', 'PROBE', 'NO'])
  })

  it('is not ended by another caller who gives up', () => {
    const breaker = halfOpen()
    const probe = breaker.admit(1_000)
    breaker.abandon(breaker.admit(1_000))
    expect(breaker.admit(1_000)).toBe('NO')
    breaker.abandon(probe)
    expect(breaker.admit(1_000)).toBe('PROBE')
  })
})
