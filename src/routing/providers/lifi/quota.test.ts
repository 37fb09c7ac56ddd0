import { expect, it } from 'vitest'
import { createQuota } from './lifi-endpoint.ts'

const reported = (remaining: number, reset: number) =>
  new Headers({ 'ratelimit-limit': '75', 'ratelimit-remaining': `${remaining}`, 'ratelimit-reset': `${reset}` })

it('allows everything before the first answer', () => {
  const quota = createQuota()
  expect([quota.take(0), quota.take(0), quota.take(0)]).toEqual([0, 0, 0])
})

it('stops at the limit that the source reported, until its window ends', () => {
  const quota = createQuota()
  quota.take(0)
  quota.answered(reported(2, 10), 1_000)
  expect([quota.take(1_000), quota.take(2_000), quota.take(3_000)]).toEqual([0, 0, 8_000])
  expect(quota.take(10_999)).toBe(1)
  expect(quota.take(11_000)).toBe(0)
})

it('takes what each answer reports for what is left', () => {
  const quota = createQuota()
  quota.take(0)
  quota.take(0)
  quota.answered(reported(1, 60), 0)
  quota.answered(reported(0, 60), 0)
  expect(quota.take(0)).toBe(60_000)
})

it('pauses after a refusal', () => {
  const quota = createQuota()
  quota.take(0)
  quota.answered(new Headers(), 0)
  quota.refused(30, 0)
  expect(quota.take(0)).toBe(30_000)
  expect(quota.take(30_000)).toBe(0)
})

it('ignores headers that are not numbers', () => {
  const quota = createQuota()
  quota.take(0)
  quota.answered(new Headers({ 'ratelimit-remaining': '-3', 'ratelimit-reset': 'soon' }), 0)
  expect(quota.take(0)).toBe(0)
})
