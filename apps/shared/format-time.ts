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
export function formatTime(at: Date, zone = viewerZone()): string {
  return formatOnce(Intl.DateTimeFormat, undefined, {
    timeZone: zone,
    dateStyle: 'medium',
    timeStyle: 'medium',
    hourCycle: 'h23',
  }).format(at)
}

/** Day alone: `23 Nov 2026`. */
export function formatDay(at: Date, zone = viewerZone()): string {
  return formatOnce(Intl.DateTimeFormat, undefined, { timeZone: zone, dateStyle: 'medium' }).format(at)
}

/** The day of a moment in a zone: `2026-11-23`. */
export function dayIn(at: Date, zone = viewerZone()): string {
  return formatOnce(Intl.DateTimeFormat, 'en-CA', {
    timeZone: zone,
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
  }).format(at)
}

/** The same moment in UTC: `2026-11-23 13:05:09 UTC`. */
export function formatUtc(at: Date): string {
  return `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
}

/** How long ago, or how soon: `3 minutes ago`. */
export function formatDistance(at: Date, now: Date, locale?: string): string {
  const seconds = (at.getTime() - now.getTime()) / 1000
  const format = formatOnce(Intl.RelativeTimeFormat, locale, { numeric: 'auto' })
  for (const [unit, size] of units) {
    if (Math.abs(seconds) >= size) return format.format(Math.trunc(seconds / size), unit)
  }
  return format.format(Math.trunc(seconds), 'second')
}

/** How long something takes: `20 sec`, `5 min`, `2 hr`; seconds below two minutes, and then the largest unit that is not yet two of the next. */
export function formatSpan(seconds: number, locale?: string, unitDisplay: 'short' | 'long' = 'short'): string {
  const [unit, size] = units.find(([, size]) => seconds >= 2 * size) ?? (['second', 1] as const)
  const options = { style: 'unit', unit, unitDisplay, maximumFractionDigits: 0 } as const
  return formatOnce(Intl.NumberFormat, locale, options).format(Math.round(seconds / size))
}

const units = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const

const formats = new Map<string, unknown>()

let chosen: string | undefined

/** Numbers and times take the form of this locale; without one, the browser's. */
export function setLocale(locale: string): void {
  chosen = locale
}

/** A format of Intl. To make one takes longer than to use it a hundred times. */
export function formatOnce<Options, Format>(
  Kind: new (locale: string | undefined, options: Options) => Format,
  locale: string | undefined,
  options: Options,
): Format {
  const form = locale ?? chosen
  const key = JSON.stringify([Kind.name, form, options])
  if (!formats.has(key)) formats.set(key, new Kind(form, options))
  return formats.get(key) as Format
}
