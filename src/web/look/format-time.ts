/** Times in the viewer's zone; the zone can be given for tests and for links that say it. */

/** A google.protobuf.Timestamp. */
export interface StampedTime {
  readonly seconds: bigint
  readonly nanos: number
}

export function toDate({ seconds, nanos }: StampedTime): Date {
  return new Date(Number(seconds) * 1_000 + Math.floor(nanos / 1_000_000))
}

let viewer: { readonly offset: number; readonly zone: string } | undefined

/** The viewer's zone, `Asia/Kolkata`. The browser is slow to tell it: each time on a page of payments asks, which took 40 ms of a sort. */
export function viewerZone(): string {
  // Who travels has another zone while a page is open.
  const offset = new Date().getTimezoneOffset()
  if (viewer?.offset !== offset) viewer = { offset, zone: Intl.DateTimeFormat().resolvedOptions().timeZone }
  return viewer.zone
}

/** Day and time: `23 Nov 2026, 14:05:09`. */
export function formatTime(at: Date, zone = viewerZone(), locale?: string): string {
  return dateFormat(locale, { timeZone: zone, dateStyle: 'medium', timeStyle: 'medium', hourCycle: 'h23' }).format(at)
}

/** Day alone: `23 Nov 2026`. */
export function formatDay(at: Date, zone = viewerZone(), locale?: string): string {
  return dateFormat(locale, { timeZone: zone, dateStyle: 'medium' }).format(at)
}

/** The day of a moment in a zone: `2026-11-23`. */
export function dayIn(at: Date, zone = viewerZone()): string {
  return dateFormat('en-CA', { timeZone: zone, year: 'numeric', month: '2-digit', day: '2-digit' }).format(at)
}

/** The same moment in UTC: `2026-11-23 13:05:09 UTC`. */
export function formatUtc(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/**
 * The first moment of a day in a zone, as RFC 3339 in UTC.
 *
 * @param day - `2026-11-23`
 */
export function startOfDay(day: string, zone = viewerZone()): string {
  const midnight = Date.parse(`${day}T00:00:00Z`)
  // The offset at the guess may differ from the one at the result where a clock was changed that night, so ask twice.
  let guess = midnight - offsetMs(midnight, zone)
  guess = midnight - offsetMs(guess, zone)
  return new Date(guess).toISOString()
}

/** The last millisecond of a day in a zone, as RFC 3339 in UTC. */
export function endOfDay(day: string, zone = viewerZone()): string {
  const next = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10)
  return new Date(Date.parse(startOfDay(next, zone)) - 1).toISOString()
}

/** How far a zone is ahead of UTC at a moment. */
function offsetMs(atMs: number, zone: string): number {
  const parts = dateFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  }).formatToParts(atMs)
  const value = (type: string) => Number(parts.find((part) => part.type === type)?.value)
  const local = Date.UTC(
    value('year'),
    value('month') - 1,
    value('day'),
    value('hour'),
    value('minute'),
    value('second'),
  )
  return local - Math.floor(atMs / 1000) * 1000
}

const formats = new Map<string, Intl.DateTimeFormat>()

function dateFormat(locale: string | undefined, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([locale, options])
  let format = formats.get(key)
  if (format === undefined) {
    format = new Intl.DateTimeFormat(locale, options)
    formats.set(key, format)
  }
  return format
}

/** How long ago, or how soon: `3 minutes ago`. */
export function formatDistance(at: Date, now: Date, locale?: string): string {
  const seconds = (at.getTime() - now.getTime()) / 1000
  const format = new Intl.RelativeTimeFormat(locale, { numeric: 'auto' })
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit)
  }
  return format.format(Math.trunc(seconds), 'second')
}

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const
