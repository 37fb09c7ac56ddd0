import type { ZoneDays } from '../../domain/time-zone.ts'

export type PeriodName = 'day' | 'week' | 'month'

/** Where a period begins. */
export interface Boundary {
  /** Milliseconds since 1970. */
  readonly atMs: number
  /** The midnight in UTC of the period's first date; undefined where no period is wanted up to the next boundary. */
  readonly firstDate: number | undefined
}

const DAY_MS = 86_400_000

/**
 * The periods of a zone from the one of `firstMs` to that of `lastMs`, in order. The last boundary is their end. A date that the zone skips has a
 * period of no time.
 */
export function periodsBetween(days: ZoneDays, period: PeriodName, firstMs: number, lastMs: number): Boundary[] {
  const boundaries: Boundary[] = []
  let date = firstDateOf(period, days.dateOf(firstMs))
  let atMs = days.startFrom(date)
  while (atMs <= lastMs) {
    boundaries.push({ atMs, firstDate: date })
    date = nextDateOf(period, date)
    atMs = days.startFrom(date)
  }
  return [...boundaries, { atMs, firstDate: undefined }]
}

/** The periods that some days of UTC may touch, in order, with a boundary at the end of each. @param utcDays - their midnights, ascending */
export function periodsTouching(days: ZoneDays, period: PeriodName, utcDays: readonly number[]): Boundary[] {
  const dates = new Set(
    utcDays.flatMap((day) => [day - DAY_MS, day, day + DAY_MS].map((date) => firstDateOf(period, date))),
  )
  return [...dates]
    .toSorted((one, other) => one - other)
    .flatMap((date) => [
      { atMs: days.startFrom(date), firstDate: date },
      { atMs: days.startFrom(nextDateOf(period, date)), firstDate: undefined },
    ])
}

/** How many periods a stretch of time has, about. */
export function countPeriods(period: PeriodName, firstMs: number, lastMs: number): number {
  return (lastMs - firstMs) / (DAY_MS * { day: 1, week: 7, month: 30 }[period])
}

/** The Monday of a date's week, or the first of its month. */
function firstDateOf(period: PeriodName, date: number): number {
  const at = new Date(date)
  if (period === 'week') return date - ((at.getUTCDay() + 6) % 7) * DAY_MS
  return period === 'month' ? at.setUTCDate(1) : date
}

function nextDateOf(period: PeriodName, date: number): number {
  if (period === 'month') return new Date(date).setUTCMonth(new Date(date).getUTCMonth() + 1)
  return date + DAY_MS * (period === 'week' ? 7 : 1)
}
