import type { Knex } from 'knex'
import { DEFAULT_TIME_ZONE, daysOfZone, type ZoneDays } from '../../domain/time-zone.ts'
import { runPrepared } from '../../postgres/prepared.ts'
import { bind, commonTable, EMPTY, join, raw, type Statement, sql, timeText } from '../../postgres/statement.ts'
import { MAX_GROUPS, requireFewGroups } from '../../postgres/summary-limits.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import {
  type Boundary,
  countPeriods,
  type PeriodName,
  periodsBetween,
  periodsTouching,
} from '../totals/split-into-periods.ts'
import { accountIs, matchCondition } from './filter-conditions.ts'

/** What payments can be grouped by. */
export const groupNames = [
  'day',
  'week',
  'month',
  'status',
  'network',
  'currency',
  'payer',
  'payee',
  'type',
  'invoiceCurrency',
] as const
export type GroupName = (typeof groupNames)[number]

/** What can be added up in its own currencies. */
export const measures = ['AMOUNTS', 'INVOICE_AMOUNTS', 'FEES', 'GAS'] as const
export type Measure = (typeof measures)[number]

/** What is to be counted and summed. */
export interface SummaryQuery {
  readonly filter: PaymentFilter
  /** At most two, no name twice. */
  readonly groupBy: readonly GroupName[]
  /** How many payers or payees get a group of their own. */
  readonly top: number
  /** No name twice. */
  readonly sums: readonly Measure[]
  /** Rows to read at most: groups, and as many sums of each measure. */
  readonly rows: number
}

/** The sum of a measure in one currency and group. */
export interface MeasuredRow extends SummaryRow {
  readonly measure: Measure
  /** Currency id, or ISO 4217 code. */
  readonly currency: string
  readonly amount: string
}

/** What is read of a summary, in no order. */
export interface SummaryRows {
  readonly groups: readonly SummaryRow[]
  readonly sums: readonly MeasuredRow[]
}

/** One group. `keys` go with `groupBy`. Counts and sums are text, since they may exceed a double. */
export interface SummaryRow {
  readonly keys: readonly SummaryKey[]
  readonly count: string
  /** How many of them have a known amount in US dollars. */
  readonly priced: string
  readonly usd: string
}

/** The value of one grouping. A day, week or month is the midnight in UTC of its first date, in milliseconds since 1970. */
export interface SummaryKey {
  /** Null where the value is unknown, and for the rest. */
  readonly value: string | number | Buffer | null
  /** Whether the group holds everybody who is not among the top ones. */
  readonly isRest: boolean
  /** The place among the top ones, from 1; null in other groupings. */
  readonly place: number | null
}

/**
 * Reads the groups and sums of a summary in one statement, so that they are of one moment. Where periods begin is computed before, by the
 * runtime's time zones; if payments have come meanwhile at times of other periods, it is computed and read again.
 */
export async function readSummary(knex: Knex, query: SummaryQuery, signal: AbortSignal): Promise<SummaryRows> {
  let periods = await readPeriods(knex, query, signal)
  for (;;) {
    const rows = await runPrepared<Record<string, unknown>>(knex, summaryStatement(query, periods), signal)
    const found = rowsOf(rows, query, periods)
    if (found !== undefined) return found
    periods = await readPeriodsExactly(knex, query, signal)
  }
}

/** @returns undefined where a time belongs to none of the periods */
function rowsOf(
  rows: readonly Record<string, unknown>[],
  { groupBy }: SummaryQuery,
  periods: Periods,
): SummaryRows | undefined {
  const valueOf = (name: GroupName, value: SummaryKey['value']) => {
    const boundaries = periods[name]
    return boundaries === undefined ? value : boundaries[Number(value) - 1]?.firstDate
  }
  const read = rows.map((row) => ({
    keys: groupBy.map((name, at) => ({
      value: valueOf(name, row[`key${at}`] as SummaryKey['value']) as SummaryKey['value'],
      isRest: row[`is_rest${at}`] === true,
      place: (row[`place${at}`] ?? null) as number | null,
    })),
    count: row['n'] as string,
    priced: row['priced'] as string,
    usd: row['usd'] as string,
    measure: row['measure'] as Measure | null,
    currency: row['own_currency'] as string,
    amount: row['own'] as string,
  }))
  if (read.some(({ keys }) => keys.some(({ value }) => value === undefined))) return undefined
  return {
    groups: read.filter(({ measure }) => measure === null),
    sums: read.flatMap(({ measure, ...row }) => (measure === null ? [] : [{ ...row, measure }])),
  }
}

/** Where the periods of each grouping by period begin. */
type Periods = { readonly [N in GroupName]?: readonly Boundary[] | undefined }

const periodNames = ['day', 'week', 'month'] as const satisfies readonly GroupName[]

/** Beyond this, the days that have payments are looked up: one payment of the year 1 would make 740,000 days. */
const MAX_PERIODS = MAX_GROUPS

/** The periods between the times that the statistics tell. */
async function readPeriods(knex: Knex, query: SummaryQuery, signal: AbortSignal): Promise<Periods> {
  const { filter, groupBy } = query
  const asked = periodNames.filter((name) => groupBy.includes(name))
  if (asked.length === 0) return {}
  const statement = sql`select extract(epoch from min(first_at))::float8 * 1000 as first, extract(epoch from max(last_at))::float8 * 1000 as last
from payment_statistics where ${accountIs(filter.accountId)} and n > 0`
  const [range] = await runPrepared<{ first: number | null; last: number | null }>(knex, statement, signal)
  if (range === undefined || range.first === null || range.last === null) return splitBy(query, () => [])
  const [firstMs, lastMs] = [
    Math.max(range.first, filter.fromDate ?? range.first),
    Math.min(range.last, filter.toDate ?? range.last),
  ]
  if (asked.some((name) => countPeriods(name, firstMs, lastMs) > MAX_PERIODS))
    return readPeriodsExactly(knex, query, signal)
  return splitBy(query, (days, name) => periodsBetween(days, name, firstMs, lastMs))
}

/** The periods of the days on which payments match. */
async function readPeriodsExactly(knex: Knex, query: SummaryQuery, signal: AbortSignal): Promise<Periods> {
  // A day of a zone is one of at most three days of UTC, so with more of these there are too many groups.
  const statement = sql`select distinct extract(epoch from date_bin('1 day', timestamp, '1970-01-01T00:00:00Z'))::float8 * 1000 as day
from payments where ${matches(query)} limit ${bind(3 * MAX_GROUPS + 1)}`
  const rows = await runPrepared<{ day: number }>(knex, statement, signal)
  if (rows.length > 3 * MAX_GROUPS) requireFewGroups(rows)
  const utcDays = rows.map(({ day }) => day).toSorted((one, other) => one - other)
  return splitBy(query, (days, name) => periodsTouching(days, name, utcDays))
}

function splitBy(
  { filter, groupBy }: SummaryQuery,
  split: (days: ZoneDays, name: PeriodName) => readonly Boundary[],
): Periods {
  const days = daysOfZone(filter.timeZone ?? DEFAULT_TIME_ZONE)
  const asked = periodNames.filter((name) => groupBy.includes(name))
  return Object.fromEntries(asked.map((name) => [name, split(days, name)]))
}

const parties: ReadonlySet<GroupName> = new Set(['payer', 'payee'])

/**
 * Groups the matches first and then regroups the few groups by the top ones. It reads only columns that the indexes of the filters have,
 * not the wide rows.
 *
 * @example
 * with cells as materialized (
 *   select payee as key0, count(*) as n, count(amount_in_usd) as priced, coalesce(sum(amount_in_usd), 0) as usd
 *   from payments where account_id = ? and … group by 1),
 * top0 as (select key0, … as place from … limit ?)
 * select top0.key0, … as is_rest0, top0.place as place0, sum(n)::text as n, …
 * from cells left join top0 on top0.key0 = cells.key0 group by 1, 2, 3 limit ?
 *
 * Each measure is a part of a union: cells by the same keys and by its currency, joined with the same tables. Its cells are made when the top
 * ones are known, with one cell for all other parties: by party there would be almost as many cells as payments.
 */
function summaryStatement(query: SummaryQuery, periods: Periods): Statement {
  const { groupBy, sums: asked } = query
  const groupings = groupBy.map((name, at) => groupingOf(name, at, query, periods[name]))
  const keys = groupings.map(({ key, at }) => sql`${key} as ${raw(`key${at}`)}`)
  const sums = raw('count(*) as n, count(amount_in_usd) as priced, coalesce(sum(amount_in_usd), 0) as usd')
  const cells = asked.includes('AMOUNTS')
    ? measuredCells('AMOUNTS', keys, query)
    : sql`select ${list([...keys, sums])}
from payments where ${matches(query)}${groupedBy(keys.length)}`
  const others = asked.filter((measure) => measure !== 'AMOUNTS')
  const coarseKeys = groupings.map(({ coarseKey, at }) => sql`${coarseKey} as ${raw(`key${at}`)}`)
  const tables = [
    ...groupings.flatMap(({ before }) => before),
    commonTable('cells', cells, 'materialized'),
    ...groupings.flatMap(({ after }) => after),
    ...others.map((measure) =>
      commonTable(cellsOf(measure), measuredCells(measure, coarseKeys, query), 'materialized'),
    ),
  ]
  const regrouped = [undefined, ...asked].map((measure) => sql`(${regroup(measure, groupings, query)})`)
  return sql`with ${list(tables)}
${join(regrouped, '\nunion all\n')}`
}

function matches({ filter }: SummaryQuery): Statement {
  return sql`${accountIs(filter.accountId)} and ${matchCondition(filter)} and ${counts(filter)}`
}

/** Superseded payments count nowhere. They are few, and all indexes have the id, so that the wide rows are not read. */
function counts({ accountId }: PaymentFilter): Statement {
  return sql`id <> all (array(select s.id from payments s where s.account_id = ${bind(accountId)} and s.superseded))`
}

/** Regroups the cells of a measure, or those of the groups. */
function regroup(measure: Measure | undefined, groupings: readonly Grouping[], { rows }: SummaryQuery): Statement {
  const columns = groupings.flatMap((grouping) => grouping.columns)
  const own =
    measure === undefined
      ? raw('null::text as own_currency, null::text as own, null::text as measure')
      : raw(`own_currency, trim_scale(sum(own))::text as own, '${measure}'::text as measure`)
  // Without a grouping there is one row also of no cells.
  const totals = raw(`coalesce(sum(n), 0)::text as n, coalesce(sum(priced), 0)::text as priced,
  trim_scale(coalesce(sum(usd), 0))::text as usd`)
  const keys = columns.length + (measure === undefined ? 0 : 1)
  return sql`select ${list([...columns, own, totals])}
from ${raw(cellsOf(measure))} as cells${join(
    groupings.map(({ joinedTo }) => joinedTo),
    '',
  )}${groupedBy(keys)}
limit ${bind(rows)}`
}

/** The table of a measure's cells. Amounts have one with the groups: every payment has an amount, so one scan gives both. */
function cellsOf(measure: Measure | undefined): string {
  return measure === undefined || measure === 'AMOUNTS' ? 'cells' : `cells_${measure.toLowerCase()}`
}

/** All fields of a line are read at once. They get names that no column of a payment has, since filters and keys name columns only. */
function linesOf(records: string): string {
  const fields = 'line.currency as line_currency, line.amount as line_amount, line."amountInUsd" as line_usd'
  return `payments cross join lateral (
  select ${fields} from ${records} as line(currency text, amount numeric, "amountInUsd" numeric)) as lines`
}

const ofLine = { currency: 'line_currency', amount: 'line_amount', usd: 'line_usd' } as const

/** Where a measure's amounts stand. Fees and gas are in columns of JSON that no index has: every row is read whole. */
const measured: Readonly<Record<Measure, { from: string; currency: string; amount: string; usd: string; if: string }>> =
  {
    AMOUNTS: { from: 'payments', currency: 'currency', amount: 'amount', usd: 'amount_in_usd', if: 'true' },
    INVOICE_AMOUNTS: {
      from: 'payments',
      currency: 'invoice_currency',
      amount: 'invoice_amount',
      usd: 'amount_in_usd',
      if: 'invoice_currency is not null and invoice_amount is not null',
    },
    FEES: { from: linesOf('jsonb_to_recordset(fees)'), ...ofLine, if: 'true' },
    GAS: { from: linesOf('jsonb_to_record(gas)'), ...ofLine, if: 'gas is not null' },
  }

function measuredCells(measure: Measure, keys: readonly Statement[], query: SummaryQuery): Statement {
  const { from, currency, amount, usd, if: condition } = measured[measure]
  const sums = raw(`${currency} as own_currency, count(*) as n, count(${usd}) as priced,
  coalesce(sum(${usd}), 0) as usd, sum(${amount}) as own`)
  return sql`select ${list([...keys, sums])}
from ${raw(from)} where ${raw(condition)} and ${matches(query)}${groupedBy(keys.length + 1)}`
}

interface Grouping {
  readonly at: number
  /** The expression that payments are grouped by. */
  readonly key: Statement
  /** Where it is known who is among the top ones: the same, but for all other parties one key that is nobody's. */
  readonly coarseKey: Statement
  /** Common tables that the key needs. */
  readonly before: readonly Statement[]
  /** Common tables made of the groups. */
  readonly after: readonly Statement[]
  /** The join of the groups with those tables, on a line of its own. */
  readonly joinedTo: Statement
  /** The columns of the result that belong to this grouping. */
  readonly columns: readonly Statement[]
}

function groupingOf(
  name: GroupName,
  at: number,
  query: SummaryQuery,
  periods: readonly Boundary[] | undefined,
): Grouping {
  if (parties.has(name)) return partyGrouping(name, at, query)
  if (periods !== undefined) return periodGrouping(at, periods)
  const key = raw(name === 'invoiceCurrency' ? 'invoice_currency' : name)
  return {
    at,
    key,
    coarseKey: key,
    before: [],
    after: [],
    joinedTo: EMPTY,
    columns: [raw(`cells.key${at}`)],
  }
}

function partyGrouping(name: GroupName, at: number, { groupBy, sums, top }: SummaryQuery): Grouping {
  const key = raw(`key${at}`)
  const table = raw(`top${at}`)
  // With nothing else to group by, each party already has one cell. The top ones are kept while all are scanned, so nothing is sorted whole.
  const ofEach =
    groupBy.length === 1 && !sums.includes('AMOUNTS')
      ? sql`select ${key}, usd, n
    from cells where ${key} is not null`
      : sql`select ${key}, sum(usd) as usd, sum(n) as n
    from cells where ${key} is not null group by ${key}`
  const places = sql`select ${key}, (row_number() over (order by usd desc, n desc, ${key}))::integer as place
  from (${ofEach}
    order by usd desc, n desc, ${key} limit ${bind(top)}) as best`
  return {
    at,
    key: raw(name),
    coarseKey: sql`case when ${raw(name)} is null or ${raw(name)} in (select ${key} from ${table}) then ${raw(name)} else ''::bytea end`,
    before: [],
    after: [commonTable(`top${at}`, places)],
    joinedTo: sql`\nleft join ${table} on ${table}.${key} = cells.${key}`,
    columns: [
      sql`${table}.${key}`,
      sql`cells.${key} is not null and ${table}.${key} is null as ${raw(`is_rest${at}`)}`,
      sql`${table}.place as ${raw(`place${at}`)}`,
    ],
  }
}

/** Groups by period: `width_bucket` finds the place of a time among the beginnings of all periods, counted from 1; before the first it is 0. */
function periodGrouping(at: number, periods: readonly Boundary[]): Grouping {
  const beginnings = raw(`begins${at}`)
  const key = sql`width_bucket(timestamp, (select at from ${beginnings}))`
  const times = bind(
    periods.map(({ atMs }) => timeText(atMs)),
    'timestamptz[]',
  )
  return {
    at,
    key,
    coarseKey: key,
    before: [commonTable(`begins${at}`, sql`select ${times} as at`, 'materialized')],
    after: [],
    joinedTo: EMPTY,
    columns: [raw(`cells.key${at}`)],
  }
}

function list(pieces: readonly Statement[]): Statement {
  return join(pieces, ',\n')
}

/** `\ngroup by 1, 2`; empty without columns. */
function groupedBy(count: number): Statement {
  if (count === 0) return EMPTY
  return raw(`\ngroup by ${Array.from({ length: count }, (_, at) => at + 1).join(', ')}`)
}
