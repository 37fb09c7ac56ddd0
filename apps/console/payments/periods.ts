/** The periods of the chart, each named by its first day, and those between in which nothing was paid. */

export type Period = 'day' | 'week' | 'month'

const DAY_MS = 86_400_000

/** @param name - as the service names it: `2026-11-23`, the ISO week `2026-W48`, `2026-11` */
export function firstDayOf(period: Period, name: string): string {
  if (period === 'day') return name
  if (period === 'month') return `${name}-01`
  const [year, week] = name.split('-W').map(Number) as [number, number]
  // The first week of a year is the one with 4 January, and begins on Monday.
  const fourth = `${year}-01-04`
  const weekday = (new Date(`${fourth}T00:00:00Z`).getUTCDay() + 6) % 7
  return addDays(fourth, (week - 1) * 7 - weekday)
}

export function lastDayOf(period: Period, firstDay: string): string {
  return addDays(nextOf(period, firstDay), -1)
}

/** Every period from the first to the last, without gaps. @param firstDays - sorted */
export function fillPeriods(period: Period, firstDays: readonly string[]): string[] {
  const [first, last] = [firstDays[0], firstDays.at(-1)]
  if (first === undefined || last === undefined) return []
  const filled: string[] = []
  for (let day = first; day <= last; day = nextOf(period, day)) filled.push(day)
  return filled
}

function nextOf(period: Period, day: string): string {
  if (period === 'day') return addDays(day, 1)
  if (period === 'week') return addDays(day, 7)
  const [year, month] = day.split('-').map(Number) as [number, number]
  return new Date(Date.UTC(year, month, 1)).toISOString().slice(0, 10)
}

export function addDays(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10)
}

/** Days for two months, weeks for two years, months beyond. @param from - absent for all that there is */
export function choosePeriod(from: string | null, to: string | null, today: string): Period {
  if (from === null) return 'week'
  const days = (Date.parse(to ?? today) - Date.parse(from)) / DAY_MS
  if (days <= 62) return 'day'
  return days <= 730 ? 'week' : 'month'
}
