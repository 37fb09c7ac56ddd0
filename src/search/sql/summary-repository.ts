import type { Knex } from 'knex'
import { runPrepared } from '../../postgres/prepared.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import { accountIs, joined, matchCondition, named, type Statement, text } from './payment-query.ts'

/** What payments can be grouped by. */
export const groupNames = ['day', 'week', 'month', 'status', 'network', 'currency', 'payer', 'payee'] as const
export type GroupName = (typeof groupNames)[number]

/** What is to be counted and summed. */
export interface SummaryQuery {
  readonly filter: PaymentFilter
  /** At most two, each once. */
  readonly groupBy: readonly GroupName[]
  /** A name of the IANA database that is known to be one. */
  readonly timeZone: string
  /** How many payers or payees stand by themselves. */
  readonly top: number
  /** The most rows to read. */
  readonly rows: number
}

/** One group. `keys` go with `groupBy`; numbers are text, since they may be large. */
export interface SummaryRow {
  readonly keys: readonly SummaryKey[]
  readonly count: string
  readonly priced: string
  readonly usd: string
}

/** The value of a grouping; a day, counted from 1970 on, stands for itself and for the week or month that it begins. */
export interface SummaryKey {
  /** Null where it is unknown, and where it is the rest. */
  readonly value: string | number | Buffer | null
  /** Whether it is all that have no place among the top ones. */
  readonly isRest: boolean
  /** Among the top ones, from 1; of other groupings null. */
  readonly place: number | null
}

/** Reads the groups that a query comes to, in no order. */
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
 * Groups all that match first, and of that the few rows by the top ones. The columns that are read stand in the indexes of the filters, so
 * that the wide rows are left alone.
 */
function summaryStatement(query: SummaryQuery): Statement {
  const { filter, groupBy, rows } = query
  const groupings = groupBy.map((name, at) => groupingOf(name, at, query))
  const keys = groupings.map(({ key, at }) => joined([key], '', '', ` as key${at}`))
  const cells = joined(
    [
      list([...keys, text('count(*) as n, count(amount_in_usd) as priced, coalesce(sum(amount_in_usd), 0) as usd')]),
      joined([accountIs(filter.accountId), matchCondition(filter)], ' and ', 'from payments where '),
      ...groupedBy(keys.length),
    ],
    '\n',
    'select ',
  )
  const columns = groupings.flatMap((grouping) => grouping.columns)
  const sums = text('sum(n)::text as n, sum(priced)::text as priced, trim_scale(sum(usd))::text as usd')
  return joined(
    [
      list(
        [
          ...groupings.flatMap(({ before }) => before),
          named('cells', cells, 'materialized '),
          ...groupings.flatMap(({ behind }) => behind),
        ],
        'with ',
      ),
      list([...columns, sums], 'select '),
      text('from cells'),
      ...groupings.flatMap(({ join }) => join),
      ...groupedBy(columns.length),
      { sql: 'limit ?', bindings: [rows] },
    ],
    '\n',
  )
}

interface Grouping {
  readonly at: number
  /** What a payment is grouped by. */
  readonly key: Statement
  /** Tables that the key is made with, and that are made of the groups. */
  readonly before: readonly Statement[]
  readonly behind: readonly Statement[]
  readonly join: readonly Statement[]
  /** The columns of the answer that are of this grouping. */
  readonly columns: readonly Statement[]
}

function groupingOf(name: GroupName, at: number, query: SummaryQuery): Grouping {
  if (parties.has(name)) return partyGrouping(name, at, query)
  if (periods.has(name)) return periodGrouping(name, at, query)
  return { at, key: text(name), before: [], behind: [], join: [], columns: [text(`cells.key${at}`)] }
}

function partyGrouping(name: GroupName, at: number, { groupBy, top }: SummaryQuery): Grouping {
  // Grouped by nothing else, each stands in the groups once; and the top ones are kept while all are gone through, not sorted.
  const ofEach = `select key${at}, ${groupBy.length === 1 ? 'usd, n' : 'sum(usd) as usd, sum(n) as n'}
    from cells where key${at} is not null${groupBy.length === 1 ? '' : ` group by key${at}`}`
  const places: Statement = {
    sql: `select key${at}, (row_number() over (order by usd desc, n desc, key${at}))::integer as place
  from (${ofEach}
    order by usd desc, n desc, key${at} limit ?) as best`,
    bindings: [top],
  }
  return {
    at,
    key: text(name),
    before: [],
    behind: [named(`top${at}`, places)],
    join: [text(`left join top${at} on top${at}.key${at} = cells.key${at}`)],
    columns: [
      text(`top${at}.key${at}`),
      text(`cells.key${at} is not null and top${at}.key${at} is null as is_rest${at}`),
      text(`top${at}.place as place${at}`),
    ],
  }
}

/**
 * Groups by where a time stands among the beginnings of all periods, which takes a third of what it takes to turn each time into one of the
 * zone. The statistics tell between which times there are payments. Where a period begins in an hour that the zone leaves out, it
 * begins with the next; where the zone goes back to its beginning, by as much before the one that the database takes.
 *
 * One payment of the year 1 would make 740,000 days, and each summary take seconds: where times lie so far apart, each is turned.
 */
function periodGrouping(name: GroupName, at: number, { filter, timeZone }: SummaryQuery): Grouping {
  const [from, to] = [filter.fromDate, filter.toDate].map((ms) =>
    ms === undefined ? null : new Date(ms).toISOString(),
  )
  const begins: Statement = {
    sql: `select array_agg(least(later, later - ((later - ${INSTANT}) at time zone ?::text + ${INSTANT} - local)) order by local) as at
  from (
    select greatest(min(first_at), ?::timestamptz) at time zone ?::text as first, least(max(last_at), ?::timestamptz) at time zone ?::text as last
    from payment_statistics where account_id = ?
  ) as range, generate_series(date_trunc('${name}', first), last, interval '1 ${name}') as local,
  lateral (select local at time zone ?::text as later) as begin
  where last - first < interval '${MOST_DAYS} days'`,
    bindings: [timeZone, from ?? null, timeZone, to ?? null, timeZone, filter.accountId, timeZone],
  }
  const ofTime: Statement = {
    sql: `date_trunc('${name}', timestamp at time zone ?::text)::date - date '1970-01-01'`,
    bindings: [timeZone],
  }
  return {
    at,
    key: joined([text(`width_bucket(timestamp, (select at from begins${at}))`), ofTime], ', ', 'coalesce(', ')'),
    before: [named(`begins${at}`, begins, 'materialized ')],
    behind: [],
    join: [],
    columns: [
      {
        sql: `coalesce(((select at from begins${at})[cells.key${at}] at time zone ?::text)::date - date '1970-01-01', cells.key${at}) as key${at}`,
        bindings: [timeZone],
      },
    ],
  }
}

/** More than a century, whose days are reckoned in some 50 ms. */
const MOST_DAYS = 40_000

/** What the clock shows just before a time tells whether it has shown that time before. */
const INSTANT = "interval '1 microsecond'"

function list(parts: readonly Statement[], before = ''): Statement {
  return joined(parts, ',\n', before)
}

function groupedBy(count: number): Statement[] {
  return count === 0 ? [] : [text(`group by ${Array.from({ length: count }, (_, at) => at + 1).join(', ')}`)]
}
