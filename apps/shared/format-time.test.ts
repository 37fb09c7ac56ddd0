import { expect, it, vi } from 'vitest'
import { dayIn, formatDistance, formatUtc, viewerZone } from './format-time.ts'

it.each([
  ['2026-11-22T23:30:00Z', 'UTC', '2026-11-22'],
  ['2026-11-22T23:30:00Z', 'Asia/Kolkata', '2026-11-23'],
  ['2026-11-22T23:30:00Z', 'America/Los_Angeles', '2026-11-22'],
])('%s is in %s on %s', (at, zone, day) => {
  expect(dayIn(new Date(at), zone)).toBe(day)
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
