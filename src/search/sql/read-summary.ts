import type { Knex } from 'knex'
import { runPrepared } from '../../postgres/prepared.ts'
import { bind, bindTime, commonTable, EMPTY, join, raw, type Statement, sql } from '../../postgres/statement.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import { accountIs, matchCondition } from './filter-conditions.ts'

/** What payments can be grouped by. */
export const groupNames = ['day', 'week', 'month', 'status', 'network', 'currency', 'payer', 'payee'] as const
export type GroupName = (typeof groupNames)[number]

/** What is to be counted and summed. */
export interface SummaryQuery {
  readonly filter: PaymentFilter
  /** At most two, no name twice. */
  readonly groupBy: readonly GroupName[]
  /** A name of the IANA database, already checked. */
  readonly timeZone: string
  /** How many payers or payees get a group of their own. */
  readonly top: number
  /** Rows to read at most. */
  readonly rows: number
}

/** One group. `keys` go with `groupBy`. Counts and sums are text, since they may exceed a double. */
export interface SummaryRow {
  readonly keys: readonly SummaryKey[]
  readonly count: string
  /** Payments whose amount in US dollars is known. */
  readonly priced: string
  readonly usd: string
}

/** The value of one grouping. A day, week or month is the number of its first day, counted from 1970-01-01. */
export interface SummaryKey {
  /** Null where the value is unknown, and for the rest. */
  readonly value: string | number | Buffer | null
  /** Whether the group holds everybody who is not among the top ones. */
  readonly isRest: boolean
  /** The place among the top ones, from 1; null in other groupings. */
  readonly place: number | null
}

/** Reads the groups of a summary, in no order. */
export async function readSummary(knex: Knex, query: SummaryQuery, signal: AbortSignal): Promise<SummaryRow[]> {
  const rows = await runPrepared<Record<string, unknown>>(knex, summaryStatement(query), signal)
  return rows.map((row) => ({
    keys: query.groupBy.map((_, at) => ({
      value: row[`key${at}`] as SummaryKey['value'],
      isRest: row[`is_rest${at}`] === true,
      place: (row[`place${at}`] ?? null) as number | null,
    })),
    count: row['n'] as string,
    priced: row['priced'] as string,
    usd: row['usd'] as string,
  }))
}

const parties: ReadonlySet<GroupName> = new Set(['payer', 'payee'])
const periods: ReadonlySet<GroupName> = new Set(['day', 'week', 'month'])

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
 */
function summaryStatement(query: SummaryQuery): Statement {
  const { filter, groupBy, rows } = query
  const groupings = groupBy.map((name, at) => groupingOf(name, at, query))
  const keys = groupings.map(({ key, at }) => sql`${key} as ${raw(`key${at}`)}`)
  const sums = sql`count(*) as n, count(amount_in_usd) as priced, coalesce(sum(amount_in_usd), 0) as usd`
  const cells = sql`select ${list([...keys, sums])}
from payments where ${accountIs(filter.accountId)} and ${matchCondition(filter)}${groupedBy(keys.length)}`
  const columns = groupings.flatMap((grouping) => grouping.columns)
  const totals = sql`sum(n)::text as n, sum(priced)::text as priced, trim_scale(sum(usd))::text as usd`
  const tables = [
    ...groupings.flatMap(({ before }) => before),
    commonTable('cells', cells, 'materialized'),
    ...groupings.flatMap(({ after }) => after),
  ]
  const joins = groupings.map(({ joinedTo }) => joinedTo)
  return sql`with ${list(tables)}
select ${list([...columns, totals])}
from cells${join(joins, '')}${groupedBy(columns.length)}
limit ${bind(rows)}`
}

interface Grouping {
  readonly at: number
  /** The expression that payments are grouped by. */
  readonly key: Statement
  /** Common tables that the key needs. */
  readonly before: readonly Statement[]
  /** Common tables made of the groups. */
  readonly after: readonly Statement[]
  /** The join of the groups with those tables, on a line of its own. */
  readonly joinedTo: Statement
  /** The columns of the result that belong to this grouping. */
  readonly columns: readonly Statement[]
}

function groupingOf(name: GroupName, at: number, query: SummaryQuery): Grouping {
  if (parties.has(name)) return partyGrouping(name, at, query)
  if (periods.has(name)) return periodGrouping(name, at, query)
  return { at, key: raw(name), before: [], after: [], joinedTo: EMPTY, columns: [raw(`cells.key${at}`)] }
}

function partyGrouping(name: GroupName, at: number, { groupBy, top }: SummaryQuery): Grouping {
  const key = raw(`key${at}`)
  const table = raw(`top${at}`)
  // With no other grouping each party already has one group. The top ones are kept while all are scanned, so nothing is sorted whole.
  const ofEach =
    groupBy.length === 1
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

/**
 * Groups by period: `width_bucket` finds the place of a time among the beginnings of all periods, at a third of the cost of converting each
 * time to the zone. The statistics tell between which times there are payments.
 *
 * Where a period would begin in an hour that the zone's clocks skip, it begins with the next hour. Where the clocks show its beginning
 * twice, PostgreSQL takes the later one, and the period begins with the earlier.
 *
 * One payment of the year 1 would make 740,000 days and take seconds: over more than {@link MAX_DAYS} days each time is converted.
 */
function periodGrouping(name: GroupName, at: number, { filter, timeZone }: SummaryQuery): Grouping {
  const zone = bind(timeZone, 'text')
  const [from, to] = [bindTime(filter.fromDate), bindTime(filter.toDate)]
  const period = raw(name)
  const begins = raw(`begins${at}`)
  const key = raw(`key${at}`)
  const beginnings = sql`select array_agg(least(later, later - ((later - ${INSTANT}) at time zone ${zone} + ${INSTANT} - local)) order by local) as at
  from (
    select greatest(min(first_at), ${from}) at time zone ${zone} as first, least(max(last_at), ${to}) at time zone ${zone} as last
    from payment_statistics where ${accountIs(filter.accountId)}
  ) as range, generate_series(date_trunc('${period}', first), last, interval '1 ${period}') as local,
  lateral (select local at time zone ${zone} as later) as begin
  where last - first < interval '${raw(MAX_DAYS)} days'`
  const converted = sql`date_trunc('${period}', timestamp at time zone ${zone})::date - date '1970-01-01'`
  return {
    at,
    key: sql`coalesce(width_bucket(timestamp, (select at from ${begins})), ${converted})`,
    before: [commonTable(`begins${at}`, beginnings, 'materialized')],
    after: [],
    joinedTo: EMPTY,
    columns: [
      sql`coalesce(((select at from ${begins})[cells.${key}] at time zone ${zone})::date - date '1970-01-01', cells.${key}) as ${key}`,
    ],
  }
}

/** More than a century; its days are computed in some 50 ms. */
const MAX_DAYS = 40_000

/** The clock just before a time tells whether it has shown that time before. */
const INSTANT = raw("interval '1 microsecond'")

function list(pieces: readonly Statement[]): Statement {
  return join(pieces, ',\n')
}

/** `\ngroup by 1, 2`; empty without columns. */
function groupedBy(count: number): Statement {
  if (count === 0) return EMPTY
  return raw(`\ngroup by ${Array.from({ length: count }, (_, at) => at + 1).join(', ')}`)
}
