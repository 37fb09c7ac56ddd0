import type { ZoneDays } from './time-zone.ts'

/** Dates of callers: RFC 3339 with an offset, or a bare date, which is that whole day in UTC or in a given zone. */

/** The moment or the day that a text names, in milliseconds since 1970. */
export interface ParsedMoment {
  readonly ok: true
  /** The moment itself, with finer digits cut off. Of a day, its first millisecond. */
  readonly atMs: number
  /** The first whole millisecond that is not before the moment: the bound of "from". */
  readonly firstMs: number
  /** The last whole millisecond that is not after the moment, or the last of the day: the bound of "to". */
  readonly lastMs: number
}

/** The moment, or what is wrong with the text. */
type ParsedDateBound = ParsedMoment | { readonly ok: false; readonly detail: string }

const DAY = /^(\d{4})-(\d{2})-(\d{2})$/
const LOCAL_TIME = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,64}))?/
const OFFSET = /^(?:[Zz]|([+-])(\d{2}):(\d{2}))$/
const DAY_MS = 86_400_000
const EARLIEST_MS = startOfDay(1, 1, 1) ?? 0
const LATEST_MS = (startOfDay(9999, 12, 31) ?? 0) + DAY_MS - 1

/**
 * Reads a date or a moment in the years 0001 to 9999. A leap second (23:59:60 UTC at the end of a month) counts as the last millisecond
 * before midnight, because block times have none.
 *
 * @param days - of the zone of a bare date; without it the date is a day in UTC
 * @see https://www.rfc-editor.org/rfc/rfc3339#section-5.6
 */
export function parseDateBound(text: string, days?: ZoneDays): ParsedDateBound {
  const day = DAY.exec(text)
  if (day !== null) {
    const dateMs = startOfDay(Number(day[1]), Number(day[2]), Number(day[3]))
    return dateMs === undefined ? NO_SUCH_DAY : wholeDay(dateMs, days)
  }
  const time = LOCAL_TIME.exec(text)
  if (time === null) return refuse('it is not in the form of RFC 3339')
  return parseMoment(time, text.slice(time[0].length))
}

/** From the first instant of a date to that of the next one that its zone has, within the years 0001 to 9999 of UTC. */
function wholeDay(dateMs: number, days: ZoneDays | undefined): ParsedDateBound {
  if (days === undefined) return { ok: true, atMs: dateMs, firstMs: dateMs, lastMs: dateMs + DAY_MS - 1 }
  const atMs = days.startOf(dateMs)
  if (atMs === undefined) return refuse(`the clocks of ${days.timeZone} skipped that day`)
  const firstMs = Math.max(atMs, EARLIEST_MS)
  return { ok: true, atMs: firstMs, firstMs, lastMs: Math.min(days.startFrom(dateMs + DAY_MS) - 1, LATEST_MS) }
}

function parseMoment(time: RegExpExecArray, offsetText: string): ParsedDateBound {
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = time.slice(1, 7).map(Number)
  const fraction = time[7] ?? ''
  if (offsetText === '') return refuse('it has no offset')
  if (/^ \d{2}:\d{2}$/.test(offsetText)) return refuse('a + in a query string is a blank, so write it as %2B')
  const offset = OFFSET.exec(offsetText)
  if (offset === null) return refuse('its offset is neither Z nor of the form +01:00')
  const [offsetHours, offsetMinutes] = [Number(offset[2] ?? 0), Number(offset[3] ?? 0)]
  const dayMs = startOfDay(year, month, day)
  if (dayMs === undefined) return NO_SUCH_DAY
  if (hour > 23 || minute > 59 || second > 60 || offsetHours > 23 || offsetMinutes > 59) return NO_SUCH_TIME
  const offsetMs = (offset[1] === '-' ? -1 : 1) * (offsetHours * 60 + offsetMinutes) * 60_000
  const secondMs = dayMs + ((hour * 60 + minute) * 60 + Math.min(second, 59)) * 1_000 - offsetMs
  if (second === 60) return isEndOfMonth(secondMs) ? moment(secondMs + 999, false) : NO_SUCH_TIME
  return moment(secondMs + Number(fraction.slice(0, 3).padEnd(3, '0')), /[1-9]/.test(fraction.slice(3)))
}

/** @param finer - whether there were digits beyond the milliseconds that are not 0 */
function moment(atMs: number, finer: boolean): ParsedDateBound {
  if (atMs < EARLIEST_MS || atMs > LATEST_MS) return refuse('its year in UTC is not one of 0001 to 9999')
  return { ok: true, atMs, firstMs: finer ? atMs + 1 : atMs, lastMs: atMs }
}

/** @returns undefined for a day that does not exist, such as 2021-02-30 */
function startOfDay(year: number, month: number, day: number): number | undefined {
  const date = new Date(0)
  date.setUTCFullYear(year, month - 1, day)
  const exists = date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day
  return exists && year > 0 ? date.getTime() : undefined
}

function isEndOfMonth(lastSecondMs: number): boolean {
  const next = new Date(lastSecondMs + 1_000)
  return next.getUTCDate() === 1 && next.getTime() % DAY_MS === 0
}

function refuse(detail: string): ParsedDateBound & { ok: false } {
  return { ok: false, detail }
}

const NO_SUCH_DAY = refuse('there is no such day')
const NO_SUCH_TIME = refuse('there is no such time of day')
