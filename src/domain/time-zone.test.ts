import { expect, test } from 'vitest'
import { daysOfZone, parseTimeZone, timeZoneNames } from './time-zone.ts'

test.each([
  ['UTC', 'UTC'],
  ['utc', 'UTC'],
  ['Etc/UTC', 'UTC'],
  ['Etc/GMT-1', 'Etc/GMT-1'],
  ['Europe/Zurich', 'Europe/Zurich'],
  ['EUROPE/zurich', 'Europe/Zurich'],
  ['Asia/Kolkata', 'Asia/Calcutta'],
  ['US/Eastern', 'America/New_York'],
  ['America/Argentina/Buenos_Aires', 'America/Buenos_Aires'],
])('%s is the zone %s', (text, name) => {
  expect(parseTimeZone(text)).toBe(name)
})

test.each([
  '',
  ' ',
  'UTC+3x',
  'UTC+3',
  '+01:00',
  '-05',
  '01:00',
  // The runtime takes these for zones: abbreviations, offsets and names of countries.
  'BST',
  'IST',
  'EST',
  'CET',
  'GMT',
  'EST5EDT',
  'Japan',
  'Turkey',
  'Z',
  'Europe',
  'Europe/',
  '/UTC',
  'UTC/',
  'Europe/Zurick',
  'Europe/Zurich ',
  'posix/Europe/Zurich',
  'Etc/Unknown',
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

const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const midnight = (date: string) => Date.parse(`${date}T00:00:00Z`)
const iso = (ms: number | undefined) => ms && new Date(ms).toISOString().replace('.000', '')

test.each([
  ['UTC', '2026-03-29', '2026-03-29T00:00:00Z', 24],
  ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15:00Z', 24],
  ['Europe/Zurich', '2026-03-29', '2026-03-28T23:00:00Z', 23],
  ['Europe/Zurich', '2026-10-25', '2026-10-24T22:00:00Z', 25],
  ['Australia/Lord_Howe', '2026-04-05', '2026-04-04T13:00:00Z', 24.5],
  // clocks go from 0 to 1, so the day begins at 1
  ['Africa/Cairo', '2023-04-28', '2023-04-27T22:00:00Z', 23],
  // clocks go from 1 to 0: the day begins at the first midnight
  ['America/Havana', '2025-11-02', '2025-11-02T04:00:00Z', 25],
  // clocks go from 0:01 to 23:01 of the day before, whose last hour then belongs to the day that has begun
  ['America/St_Johns', '2008-11-01', '2008-11-01T02:30:00Z', 24],
  ['America/St_Johns', '2008-11-02', '2008-11-02T02:30:00Z', 25],
  ['Pacific/Apia', '2011-12-29', '2011-12-29T10:00:00Z', 24],
  ['Pacific/Apia', '2011-12-30', undefined, 0],
  ['Pacific/Apia', '2011-12-31', '2011-12-30T10:00:00Z', 24],
  ['Pacific/Kwajalein', '1993-08-21', undefined, 0],
  ['Pacific/Kiritimati', '1994-12-31', undefined, 0],
])('in %s %s begins at %s and has %d hours', (zone, date, begin, hours) => {
  const { startOf, startFrom } = daysOfZone(zone)
  expect(iso(startOf(midnight(date)))).toBe(begin)
  expect((startFrom(midnight(date) + DAY_MS) - startFrom(midnight(date))) / HOUR_MS).toBe(hours)
})

/** Checks the days that begin in some spans of time. @returns their lengths in hours */
function checkDays(zone: string, spans: readonly (readonly [from: number, to: number])[]): Set<number> {
  const shown = new Intl.DateTimeFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' })
  const { startOf, startFrom } = daysOfZone(zone)
  const lengths = new Set<number>()
  for (const [from, to] of spans) {
    for (let date = from; date < to; date += DAY_MS) {
      const at = startOf(date) ?? Number.NaN
      const shows = [at, at - 1].map((ms) => midnight(shown.format(ms)))
      if (shows[0] !== date || shows[1] !== date - DAY_MS) throw new Error(`${zone}: ${iso(date)} begins not at ${at}`)
      lengths.add((startFrom(date + DAY_MS) - at) / HOUR_MS)
    }
  }
  return lengths
}

/** The 1st and the 16th of each month of five years. */
const halves = Array.from({ length: 121 }, (_, n) => Date.UTC(2022, Math.floor(n / 2), n % 2 === 0 ? 1 : 16))

// Every day of every zone takes half a minute: test/search/time-zones.long.test.ts. Here it is the half months in which a zone changes its clocks.
test('the days of all zones over five years are those that the runtime shows', () => {
  const others = [
    'Asia/Kolkata',
    'Europe/Kyiv',
    'America/Argentina/Buenos_Aires',
    'US/Pacific',
    'Etc/GMT+12',
    'Etc/GMT-14',
  ]
  const lengths = [...timeZoneNames(), ...others].flatMap((zone) => {
    const named = new Intl.DateTimeFormat('en', { timeZone: zone, timeZoneName: 'longOffset' })
    const offsets = halves.map((at) => named.format(at).split('GMT')[1])
    const isChanging = (n: number) => offsets[n] !== offsets[n + 1]
    const spans = halves
      .slice(0, -1)
      .map((from, n) => [from, isChanging(n) ? (halves[n + 1] as number) : from + DAY_MS] as const)
    return [...checkDays(zone, spans)]
  })
  // stations in the Antarctic change their clocks by two and three hours
  expect([...new Set(lengths)].toSorted((a, b) => a - b)).toEqual([21, 22, 23, 23.5, 24, 24.5, 25, 26, 27])
})

test('a date begins at the same instant whatever was asked before', () => {
  const dates = ['2026-03-27', '2026-03-28', '2026-03-29', '2026-03-30', '2026-10-24', '2026-10-25', '2026-10-26'].map(
    midnight,
  )
  for (const zone of ['Europe/Zurich', 'Africa/Cairo', 'America/Santiago', 'Australia/Lord_Howe', 'UTC']) {
    const inOrder = daysOfZone(zone)
    const found = dates.map((date) => inOrder.startOf(date))
    expect(found).toEqual(dates.map((date) => daysOfZone(zone).startOf(date)))
    expect(dates.toReversed().map((date) => inOrder.startOf(date))).toEqual(found.toReversed())
  }
})
