/**
 * Time zones and their days, by the data of this runtime (ICU). A database's own data may be older, and it takes abbreviations for zones.
 */

/** Only `UTC` has no `/`. Names without one are abbreviations (`IST`, `EST5EDT`), which mean several zones, or offsets. */
const NAME_FORM = /^(?:utc|[a-z][a-z0-9_+-]*(?:\/[a-z0-9_+-]+)+)$/i

/** The zone of dates where none is named. */
export const DEFAULT_TIME_ZONE = 'UTC'

const DAY_MS = 86_400_000

/**
 * Reads a name of a time zone in any case; former names are accepted.
 *
 * @returns the name as this runtime writes it, or undefined
 */
export function parseTimeZone(text: string): string | undefined {
  if (!NAME_FORM.test(text)) return undefined
  try {
    return new Intl.DateTimeFormat('en', { timeZone: text }).resolvedOptions().timeZone
  } catch {
    return undefined
  }
}

/** All names, for suggestions. */
export function timeZoneNames(): readonly string[] {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')]
}

/** The days of a time zone. A date is the time of its midnight in UTC, in milliseconds since 1970, and so are the results of `dateOf`. */
export interface ZoneDays {
  /** The name of the zone. */
  readonly timeZone: string
  /** The date that the zone's clocks show at a time. */
  readonly dateOf: (atMs: number) => number
  /** The first instant of a date; undefined for a date that the zone skips. */
  readonly startOf: (dateMs: number) => number | undefined
  /** The first instant of the first date from this one on that the zone does not skip. */
  readonly startFrom: (dateMs: number) => number
}

/**
 * The days of a zone. A day runs from its first instant to that of the next date, so that days do not overlap: an hour that the clocks repeat
 * around midnight belongs to the later date if that date began before it.
 *
 * @param timeZone - a name that {@link parseTimeZone} gave
 */
export function daysOfZone(timeZone: string): ZoneDays {
  const offsetAt = offsetsOf(timeZone)
  let known: { readonly dateMs: number; readonly offset: number } | undefined
  const startOf = (dateMs: number): number | undefined => {
    // Days are mostly asked for one after the other, and mostly no clock changes in between.
    const guess = known?.dateMs === dateMs - DAY_MS ? dateMs - known.offset : undefined
    const isRight = guess !== undefined && offsetAt(guess) === known?.offset
    const atMs = isRight ? guess : findStart(dateMs, offsetAt)
    known = atMs === undefined ? undefined : { dateMs, offset: dateMs - atMs }
    return atMs
  }
  const startFrom = (dateMs: number): number => startOf(dateMs) ?? startFrom(dateMs + DAY_MS)
  return {
    timeZone,
    dateOf: (atMs) => Math.floor((atMs + offsetAt(atMs)) / DAY_MS) * DAY_MS,
    startOf,
    startFrom,
  }
}

function findStart(dateMs: number, offsetAt: (atMs: number) => number): number | undefined {
  const around = new Set([offsetAt(dateMs - DAY_MS), offsetAt(dateMs + DAY_MS)])
  const offsets = [...around].flatMap((offset) => [offset, offsetAt(dateMs - offset)])
  // The clocks may show midnight twice: the largest offset is the first time.
  const shown = offsets.toSorted((a, b) => b - a).find((offset) => offsetAt(dateMs - offset) === offset)
  if (shown !== undefined) return dateMs - shown
  const at = firstAtOrAfter(dateMs, offsetAt)
  return at + offsetAt(at) < dateMs + DAY_MS ? at : undefined
}

/** The first whole second at which the clocks show this midnight or later; they skip midnight, once within a day of it. */
function firstAtOrAfter(dateMs: number, offsetAt: (atMs: number) => number): number {
  let [before, after] = [dateMs - DAY_MS, dateMs + DAY_MS]
  while (after - before > 1_000) {
    const middle = before + Math.floor((after - before) / 2_000) * 1_000
    if (middle + offsetAt(middle) < dateMs) before = middle
    else after = middle
  }
  return after
}

/**
 * How far a zone's clocks are ahead of UTC at a time, in milliseconds. Only the day of the month and the time of day are formatted, since an
 * offset is less than a day.
 */
function offsetsOf(timeZone: string): (atMs: number) => number {
  const clock = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'iso8601',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  return (atMs) => {
    const [day = 0, hour = 0, minute = 0, second = 0] = (clock.format(atMs).match(/\d+/g) ?? []).map(Number)
    const daysAhead = day - new Date(atMs).getUTCDate()
    // From the last day of a month to the first of the next, or back.
    const days = Math.abs(daysAhead) > 1 ? -Math.sign(daysAhead) : daysAhead
    const secondOfDay = Math.floor(atMs / 1_000) - Math.floor(atMs / DAY_MS) * (DAY_MS / 1_000)
    return (days * (DAY_MS / 1_000) + (hour * 60 + minute) * 60 + second - secondOfDay) * 1_000
  }
}
