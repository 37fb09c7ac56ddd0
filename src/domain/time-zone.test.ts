import { expect, test } from 'vitest'
import { parseTimeZone, timeZoneNames } from './time-zone.ts'

test.each([
  ['UTC', 'UTC'],
  ['utc', 'UTC'],
  ['Europe/Zurich', 'Europe/Zurich'],
  ['EUROPE/zurich', 'Europe/Zurich'],
  ['America/Argentina/Buenos_Aires', 'America/Buenos_Aires'],
])('%s is the zone %s', (text, name) => {
  expect(parseTimeZone(text)).toBe(name)
})

test.each([
  '',
  ' ',
  'UTC+3x',
  '+01:00',
  '-05',
  '01:00',
  'Europe',
  'Europe/',
  'Europe/Zurick',
  'Mars/Olympus',
  "UTC'; --",
  '\0',
])('%j is none', (text) => {
  expect(parseTimeZone(text)).toBeUndefined()
})

test('every name that is suggested is taken', () => {
  const names = timeZoneNames()
  expect(names.length).toBeGreaterThan(300)
  expect(names.filter((name) => parseTimeZone(name) === undefined)).toEqual([])
})
