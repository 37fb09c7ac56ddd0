import { expect, it } from 'vitest'
import { lifetimeOf } from './pay.ts'

const arrived = Date.parse('2026-03-01T12:00:00Z')
const HOUR_MS = 3_600_000
const quote = { expiresAtMs: arrived + 30_000, date: 'Sun, 01 Mar 2026 12:00:00 GMT', nowMs: arrived }

it.each([
  ['the clocks agree', {}, 29_000],
  ['the clock is an hour slow', { nowMs: arrived - HOUR_MS }, 29_000],
  ['the clock is an hour fast', { nowMs: arrived + HOUR_MS }, 29_000],
  ['the clock is fast by nearly the lifetime', { nowMs: arrived + 29_900 }, 29_000],
  ['the page may not read the date', { date: null }, 30_000],
  ['no date, and the clock is an hour slow', { date: null, nowMs: arrived - HOUR_MS }, 25_000],
  ['no date, and the clock is an hour fast', { date: null, nowMs: arrived + HOUR_MS }, 25_000],
  ['the date cannot be read', { date: 'now' }, 30_000],
  ['a proxy has an old date', { date: 'Sun, 01 Mar 2026 11:00:00 GMT' }, 25_000],
  ['the request ends soon', { expiresAtMs: arrived + 5_000 }, 4_000],
])('%s', (_, change, lifetimeMs) => {
  expect(lifetimeOf({ ...quote, ...change })).toBe(lifetimeMs)
})
