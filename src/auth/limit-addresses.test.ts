import { expect, it } from 'vitest'
import type { LimitState } from './caller.ts'
import { createCountAddress, MAX_ADDRESSES } from './limit-addresses.ts'

function start(callsPerMinute: number) {
  let nowMs = 0
  let reported: LimitState | undefined
  const count = createCountAddress({ callsPerMinute, monotonicMs: () => nowMs })
  return {
    spend: (address: string) => count(address, (state) => (reported = state)),
    isRefused: (address: string) => {
      try {
        count(address, (state) => (reported = state))
        return false
      } catch (error) {
        return (error as { reason: string }).reason === 'RATE_LIMITED'
      }
    },
    reported: () => reported,
    pass: (ms: number) => {
      nowMs += ms
    },
  }
}

it('refuses an address beyond its limit, and no other, until its minute is over', () => {
  const { isRefused, pass, reported } = start(2)
  expect(['a', 'a', 'a', 'b'].map(isRefused)).toEqual([false, false, true, false])
  pass(59_001)
  expect(isRefused('a')).toBe(true)
  expect(reported()).toEqual({ policy: 'address', limit: 2, remaining: 0, resetSeconds: 1 })
  pass(999)
  expect(['a', 'a', 'a'].map(isRefused)).toEqual([false, false, true])
})

it('undoes the count and the report of a call with a good key', () => {
  const { spend, isRefused, reported } = start(1)
  spend('a')()
  expect(reported()).toBeUndefined()
  expect([isRefused('a'), isRefused('a')]).toEqual([false, true])
})

it('without a limit lets any number of calls through, and reports nothing', () => {
  const { isRefused, reported } = start(0)
  expect(Array.from({ length: 1000 }, () => isRefused('a'))).not.toContain(true)
  expect(reported()).toBeUndefined()
})

it('keeps only the newest MAX_ADDRESSES addresses', () => {
  const { isRefused } = start(1)
  for (let i = 0; i < 2 * MAX_ADDRESSES; i++) isRefused(String(i))
  expect(isRefused(String(2 * MAX_ADDRESSES - 1))).toBe(true)
  expect(isRefused(String(MAX_ADDRESSES))).toBe(true)
  expect(isRefused(String(MAX_ADDRESSES - 1))).toBe(false)
})
