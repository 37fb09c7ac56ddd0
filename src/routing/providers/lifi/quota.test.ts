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

it('counts questions under way, which the source may not have counted', () => {
  const quota = createQuota()
  quota.take(0)
  quota.take(0)
  quota.answered(reported(1, 60), 0)
  expect(quota.take(0)).toBe(60_000)
  quota.unanswered()
  expect(quota.take(0)).toBe(0)
})

it.each([
  ['its own header', new Headers({ 'ratelimit-reset': '30', 'retry-after': '5' }), 30_000],
  ['Retry-After', new Headers({ 'retry-after': '5' }), 5_000],
  ['nothing', new Headers(), 60_000],
  ['a date', new Headers({ 'retry-after': 'Fri, 20 Nov 2026 15:00:00 GMT' }), 60_000],
  ['a year', new Headers({ 'ratelimit-reset': '31536000' }), 7_200_000],
])('pauses after a refusal with %s', (_, headers, pauseMs) => {
  const quota = createQuota()
  quota.take(0)
  quota.answered(headers, 0)
  quota.refused(headers, 0)
  expect(quota.take(0)).toBe(pauseMs)
  expect(quota.take(pauseMs)).toBe(0)
})

it('ignores headers that are not numbers', () => {
  const quota = createQuota()
  quota.take(0)
  quota.answered(new Headers({ 'ratelimit-remaining': '-3', 'ratelimit-reset': 'soon' }), 0)
  expect(quota.take(0)).toBe(0)
})
