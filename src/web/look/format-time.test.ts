import { expect, it, vi } from 'vitest'
import { dayIn, endOfDay, formatDistance, formatUtc, startOfDay, viewerZone } from './format-time.ts'

it.each([
  ['2026-11-22T23:30:00Z', 'UTC', '2026-11-22'],
  ['2026-11-22T23:30:00Z', 'Asia/Kolkata', '2026-11-23'],
  ['2026-11-22T23:30:00Z', 'America/Los_Angeles', '2026-11-22'],
])('%s is in %s on %s', (at, zone, day) => {
  expect(dayIn(new Date(at), zone)).toBe(day)
})

it.each([
  ['2026-11-23', 'UTC', '2026-11-23T00:00:00.000Z', '2026-11-23T23:59:59.999Z'],
  ['2026-11-23', 'Asia/Kolkata', '2026-11-22T18:30:00.000Z', '2026-11-23T18:29:59.999Z'],
  // 23 and 25 hours long
  ['2026-03-29', 'Europe/Berlin', '2026-03-28T23:00:00.000Z', '2026-03-29T21:59:59.999Z'],
  ['2026-10-25', 'Europe/Berlin', '2026-10-24T22:00:00.000Z', '2026-10-25T22:59:59.999Z'],
  ['2026-12-31', 'Pacific/Auckland', '2026-12-30T11:00:00.000Z', '2026-12-31T10:59:59.999Z'],
])('%s in %s begins at %s and ends at %s', (day, zone, first, last) => {
  expect(startOfDay(day, zone)).toBe(first)
  expect(endOfDay(day, zone)).toBe(last)
})

it('writes UTC and distances', () => {
  const at = new Date('2026-11-23T13:05:09.120Z')
  expect(formatUtc(at)).toBe('2026-11-23 13:05:09 UTC')
  expect(formatDistance(at, new Date('2026-11-23T13:08:10Z'), 'en')).toBe('3 minutes ago')
  expect(formatDistance(at, new Date('2026-11-23T13:05:09.500Z'), 'en')).toBe('now')
  expect(formatDistance(new Date('2026-11-24T14:05:09Z'), at, 'en')).toBe('tomorrow')
})

it('asks the browser for its zone once', () => {
  viewerZone()
  const asked = vi.spyOn(Intl, 'DateTimeFormat')
  expect(viewerZone()).toBe(new Intl.DateTimeFormat().resolvedOptions().timeZone)
  expect(asked).toHaveBeenCalledTimes(1)
  asked.mockRestore()
})
