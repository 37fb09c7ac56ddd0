import { expect, test } from 'vitest'
import { parseDateBound } from './date-bound.ts'
import { daysOfZone } from './time-zone.ts'

const iso = (ms: number) => new Date(ms).toISOString()

test.each([
  ['2026-03-01', '2026-03-01T00:00:00.000Z', '2026-03-01T23:59:59.999Z'],
  ['2024-02-29', '2024-02-29T00:00:00.000Z', '2024-02-29T23:59:59.999Z'],
  ['0001-01-01', '0001-01-01T00:00:00.000Z', '0001-01-01T23:59:59.999Z'],
  ['9999-12-31', '9999-12-31T00:00:00.000Z', '9999-12-31T23:59:59.999Z'],
  ['2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z', '2026-03-01T12:00:00.000Z'],
  ['2026-03-01t12:00:00z', '2026-03-01T12:00:00.000Z', '2026-03-01T12:00:00.000Z'],
  ['2026-03-01T00:30:00+01:00', '2026-02-28T23:30:00.000Z', '2026-02-28T23:30:00.000Z'],
  ['2026-03-01T00:30:00-05:45', '2026-03-01T06:15:00.000Z', '2026-03-01T06:15:00.000Z'],
  ['2026-03-01T00:00:00-00:00', '2026-03-01T00:00:00.000Z', '2026-03-01T00:00:00.000Z'],
  ['2026-03-01T00:00:00.5Z', '2026-03-01T00:00:00.500Z', '2026-03-01T00:00:00.500Z'],
  ['2026-03-01T00:00:00.1230000Z', '2026-03-01T00:00:00.123Z', '2026-03-01T00:00:00.123Z'],
  ['2026-03-01T00:00:00.1234Z', '2026-03-01T00:00:00.124Z', '2026-03-01T00:00:00.123Z'],
  ['2016-12-31T23:59:60Z', '2016-12-31T23:59:59.999Z', '2016-12-31T23:59:59.999Z'],
  ['2017-01-01T00:59:60.25+01:00', '2016-12-31T23:59:59.999Z', '2016-12-31T23:59:59.999Z'],
])('%s is from %s to %s', (text, first, last) => {
  const parsed = parseDateBound(text)
  expect(parsed.ok && { first: iso(parsed.firstMs), last: iso(parsed.lastMs) }).toEqual({ first, last })
})

test.each([
  ['2021-02-30', 'no such day'],
  ['2023-02-29', 'no such day'],
  ['2026-13-01', 'no such day'],
  ['2026-00-10', 'no such day'],
  ['2026-01-00', 'no such day'],
  ['0000-01-01', 'no such day'],
  ['2021-02-30T00:00:00Z', 'no such day'],
  ['2026-03-01T24:00:00Z', 'no such time'],
  ['2026-03-01T12:60:00Z', 'no such time'],
  ['2026-03-01T12:00:61Z', 'no such time'],
  ['2026-03-01T12:00:60Z', 'no such time'],
  ['2026-03-15T23:59:60Z', 'no such time'],
  ['2016-12-31T23:59:60+01:00', 'no such time'],
  ['2026-03-01T12:00:00+24:00', 'no such time'],
  ['2026-03-01T12:00:00', 'no offset'],
  ['2026-03-01T12:00:00.5', 'no offset'],
  ['2026-03-01T12:00:00 01:00', '%2B'],
  ['2026-03-01T12:00:00+1', 'offset is neither'],
  ['2026-03-01T12:00:00+0100', 'offset is neither'],
  ['2026-03-01T12:00:00Z ', 'offset is neither'],
  ['0001-01-01T00:00:00+14:00', 'year'],
  ['9999-12-31T23:59:59-01:00', 'year'],
  ['2026-03-01 12:00:00Z', 'RFC 3339'],
  ['2026-03-01T12:00Z', 'RFC 3339'],
  ['2026-3-1', 'RFC 3339'],
  [' 2026-03-01', 'RFC 3339'],
  ['20260301', 'RFC 3339'],
  ['1772323200', 'RFC 3339'],
  ['+02026-03-01', 'RFC 3339'],
  ['yesterday', 'RFC 3339'],
  ['٢٠٢٦-٠٣-٠١', 'RFC 3339'],
  ['', 'RFC 3339'],
])('refuses "%s": %s', (text, detail) => {
  expect(parseDateBound(text)).toEqual({ ok: false, detail: expect.stringContaining(detail) })
})

test.each([
  ['Europe/Zurich', '2026-03-01', '2026-02-28T23:00:00.000Z', '2026-03-01T22:59:59.999Z'],
  ['Europe/Zurich', '2026-03-29', '2026-03-28T23:00:00.000Z', '2026-03-29T21:59:59.999Z'],
  ['Europe/Zurich', '2026-10-25', '2026-10-24T22:00:00.000Z', '2026-10-25T22:59:59.999Z'],
  ['Africa/Cairo', '2023-04-28', '2023-04-27T22:00:00.000Z', '2023-04-28T20:59:59.999Z'],
  ['Pacific/Apia', '2011-12-29', '2011-12-29T10:00:00.000Z', '2011-12-30T09:59:59.999Z'],
  ['Asia/Kolkata', '0001-01-01', '0001-01-01T00:00:00.000Z', '0001-01-01T18:06:31.999Z'],
  ['America/New_York', '9999-12-31', '9999-12-31T05:00:00.000Z', '9999-12-31T23:59:59.999Z'],
  ['Europe/Zurich', '2026-03-01T12:00:00Z', '2026-03-01T12:00:00.000Z', '2026-03-01T12:00:00.000Z'],
  ['Europe/Zurich', '2026-03-01T00:30:00-05:00', '2026-03-01T05:30:00.000Z', '2026-03-01T05:30:00.000Z'],
])('in %s, %s is from %s to %s', (zone, text, first, last) => {
  const parsed = parseDateBound(text, daysOfZone(zone))
  expect(parsed.ok && { first: iso(parsed.firstMs), last: iso(parsed.lastMs) }).toEqual({ first, last })
})

test('a date that the zone skips is refused', () => {
  const skipped = parseDateBound('2011-12-30', daysOfZone('Pacific/Apia'))
  expect(skipped).toEqual({ ok: false, detail: 'the clocks of Pacific/Apia skipped that day' })
  expect(parseDateBound('2011-02-30', daysOfZone('Pacific/Apia'))).toEqual({
    ok: false,
    detail: 'there is no such day',
  })
})
