import type { Knex } from 'knex'
import { DEFAULT_TIME_ZONE, daysOfZone, type ZoneDays } from '../../domain/time-zone.ts'
import { allOf, raw, readRows } from '../../postgres/statement.ts'
import { MAX_GROUPS, requireFewGroups } from '../../postgres/summary-limits.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import {
  type Boundary,
  countPeriods,
  type PeriodName,
  periodsBetween,
  periodsTouching,
} from '../query/split-into-periods.ts'
import { accountIs, storedCondition } from './filter-conditions.ts'

/** Where the periods begin that payments are grouped by; none where they are grouped by no period. */
export type Periods = { readonly [N in PeriodName]?: readonly Boundary[] | undefined }

/** Which periods are asked for. */
interface PeriodQuery {
  readonly filter: PaymentFilter
  readonly names: readonly PeriodName[]
}

/** Beyond this, the days that have payments are looked up: one payment of the year 1 would make 740,000 days. */
const MAX_PERIODS = MAX_GROUPS

/** The periods between the times that the statistics tell. */
export async function readPeriods(knex: Knex, query: PeriodQuery, signal: AbortSignal): Promise<Periods> {
  const { filter, names } = query
  if (names.length === 0) return {}
  const statement = raw(
    `select ${milliseconds('min(first_at)')} as first, ${milliseconds('max(last_at)')} as last
from payment_statistics where account_id = ? and n > 0`,
    [filter.accountId],
  )
  const [range] = await readRows<{ first: string | null; last: string | null }>(knex, statement, signal)
  if (range === undefined || range.first === null || range.last === null) return splitBy(query, () => [])
  const firstMs = Math.max(Number(range.first), filter.fromDate ?? Number.NEGATIVE_INFINITY)
  const lastMs = Math.min(Number(range.last), filter.toDate ?? Number.POSITIVE_INFINITY)
  const isLong = names.some((name) => countPeriods(name, firstMs, lastMs) > MAX_PERIODS)
  if (isLong) return readPeriodsExactly(knex, query, signal)
  return splitBy(query, (days, name) => periodsBetween(days, name, firstMs, lastMs))
}

/** The periods of the days on which payments match. @throws WaybillError TOO_MANY_GROUPS */
async function readPeriodsExactly(knex: Knex, query: PeriodQuery, signal: AbortSignal): Promise<Periods> {
  const { filter } = query
  // A day of a zone touches at most three days of UTC, so with more days than this there are too many groups.
  const statement = raw(
    `select distinct ${milliseconds("date_bin('1 day', timestamp, '1970-01-01T00:00:00Z')")} as day
from payments where ? limit ?`,
    [allOf([accountIs(filter.accountId), storedCondition(filter)]), 3 * MAX_GROUPS + 1],
  )
  const rows = await readRows<{ day: string }>(knex, statement, signal)
  if (rows.length > 3 * MAX_GROUPS) requireFewGroups(rows)
  const utcDays = rows.map(({ day }) => Number(day)).toSorted((one, other) => one - other)
  return splitBy(query, (days, name) => periodsTouching(days, name, utcDays))
}

/** A time in milliseconds since 1970, as the digits of a whole number: those of a double depend on the database's settings. */
function milliseconds(time: string): string {
  return `(extract(epoch from ${time}) * 1000)::bigint::text`
}

function splitBy(
  { filter, names }: PeriodQuery,
  split: (days: ZoneDays, name: PeriodName) => readonly Boundary[],
): Periods {
  const days = daysOfZone(filter.timeZone ?? DEFAULT_TIME_ZONE)
  return Object.fromEntries(names.map((name) => [name, split(days, name)]))
}
