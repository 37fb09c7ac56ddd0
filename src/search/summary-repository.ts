import type { Knex } from 'knex'
import { runPrepared } from '../db/prepared.ts'
import type { PaymentFilter } from './payment-filter.ts'
import { matchCondition, type Statement } from './payment-query-repository.ts'

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

/** The value of a grouping; a day in ISO 8601 stands for itself and for the week or month that it begins. */
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

/**
 * Groups all that match first, and of that the few rows by the top ones. The columns that are read stand in the indexes of the filters,
 * so that the wide rows are left alone.
 */
function summaryStatement({ filter, groupBy, timeZone, top, rows }: SummaryQuery): Statement {
  const groupings = groupBy.map((name, at) => groupingOf(name, at, timeZone))
  const condition = matchCondition(filter)
  const keys = groupings.map(({ key }) => `${key.sql}, `).join('')
  const cells = `select ${keys}count(*) as n, count(amount_in_usd) as priced, coalesce(sum(amount_in_usd), 0) as usd
  from payments where account_id = ? and ${condition.sql}${groupedBy(groupings.map((_, at) => at + 1))}`
  const tops = groupings.filter(({ isParty }) => isParty)
  const outer = groupings.flatMap(({ columns }) => columns)
  return {
    sql: `with cells as materialized (
  ${cells}
)${tops.map(({ topCte }) => `,\n${topCte}`).join('')}
select ${outer.map((column) => `${column},\n  `).join('')}sum(n)::text as n, sum(priced)::text as priced, trim_scale(sum(usd))::text as usd
from cells${tops.map(({ join }) => `\n${join}`).join('')}${groupedBy(outer.map((_, at) => at + 1))}
limit ?`,
    bindings: [
      ...groupings.flatMap(({ key }) => key.bindings),
      filter.accountId,
      ...condition.bindings,
      ...tops.map(() => top),
      rows,
    ],
  }
}

interface Grouping {
  readonly key: Statement
  readonly isParty: boolean
  /** The columns of the answer that are of this grouping. */
  readonly columns: readonly string[]
  readonly topCte: string
  readonly join: string
}

function groupingOf(name: GroupName, at: number, timeZone: string): Grouping {
  const isParty = parties.has(name)
  const source = keyOf(name, timeZone)
  return {
    key: { ...source, sql: `${source.sql} as key${at}` },
    isParty,
    columns: isParty
      ? [
          `top${at}.key${at}`,
          `cells.key${at} is not null and top${at}.key${at} is null as is_rest${at}`,
          `top${at}.place as place${at}`,
        ]
      : [`cells.key${at}`],
    topCte: `top${at} as (
  select key${at}, (row_number() over (order by sum(usd) desc, sum(n) desc, key${at}))::integer as place
  from cells where key${at} is not null group by key${at} order by place limit ?
)`,
    join: `left join top${at} on top${at}.key${at} = cells.key${at}`,
  }
}

function keyOf(name: GroupName, timeZone: string): Statement {
  switch (name) {
    case 'day':
    case 'week':
    case 'month':
      return { sql: `date_trunc('${name}', timestamp at time zone ?::text)::date::text`, bindings: [timeZone] }
    case 'status':
    case 'network':
    case 'currency':
    case 'payer':
    case 'payee':
      return { sql: name, bindings: [] }
  }
}

function groupedBy(places: readonly number[]): string {
  return places.length === 0 ? '' : `\ngroup by ${places.join(', ')}`
}
