import type { Knex } from 'knex'
import { rankOfStatus } from '../../domain/payment.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { allOf, commonTable, join, raw, readRows, type Statement, TRUE, timeText } from '../../postgres/statement.ts'
import { type PaymentFilter, statusesLeft } from '../filter/payment-filter.ts'
import type { Boundary, PeriodName } from '../query/split-into-periods.ts'
import { accountIs, storedCondition } from './filter-conditions.ts'
import { gasStandsElsewhere } from './gas-once.ts'
import { type Periods, readPeriods } from './read-periods.ts'

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
  'metadata',
] as const
export type GroupName = (typeof groupNames)[number]

/** What can be added up in its own currencies. */
export const measures = ['AMOUNTS', 'INVOICE_AMOUNTS', 'FEES', 'GAS', 'REFUNDS', 'NET'] as const
export type Measure = (typeof measures)[number]

/** What is to be counted and summed. */
export interface SummaryQuery {
  readonly filter: PaymentFilter
  /** At most two, no name twice. */
  readonly groupBy: readonly GroupName[]
  /** The key of the grouping `metadata`. */
  readonly metadataKey?: string | undefined
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
  /** How many of them are in the sum of US dollars, with a known value or without. */
  readonly summed: string
  /** How many of these have a known amount in US dollars. */
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
 * runtime's time zones, in the same snapshot.
 */
export async function readSummary(knex: Knex, query: SummaryQuery, signal: AbortSignal): Promise<SummaryRows> {
  const names = query.groupBy.filter((name) => isPeriod(name))
  const read = async (on: Knex) => {
    const periods = await readPeriods(on, { filter: query.filter, names }, signal)
    const rows = await readRows<Record<string, unknown>>(on, summaryStatement(query, periods), signal)
    return rowsOf(rows, query, periods)
  }
  const ofSnapshot = { isolationLevel: 'repeatable read', readOnly: true } as const
  return names.length === 0 ? read(knex) : inTransaction(knex, signal, read, ofSnapshot)
}

function rowsOf(rows: readonly Record<string, unknown>[], { groupBy }: SummaryQuery, periods: Periods): SummaryRows {
  const valueOf = (name: GroupName, value: SummaryKey['value']) => {
    const boundaries = isPeriod(name) ? periods[name] : undefined
    return boundaries === undefined ? value : (boundaries[Number(value) - 1]?.firstDate as number)
  }
  const read = rows.map((row) => ({
    keys: groupBy.map((name, at) => ({
      value: valueOf(name, row[`key${at}`] as SummaryKey['value']),
      isRest: row[`is_rest${at}`] === true,
      place: (row[`place${at}`] ?? null) as number | null,
    })),
    count: row['n'] as string,
    summed: row['summed'] as string,
    priced: row['priced'] as string,
    usd: row['usd'] as string,
    measure: row['measure'] as Measure | null,
    currency: row['own_currency'] as string,
    amount: row['own'] as string,
  }))
  return {
    groups: read.filter(({ measure }) => measure === null),
    sums: read.flatMap(({ measure, ...row }) => (measure === null ? [] : [{ ...row, measure }])),
  }
}

const parties: ReadonlySet<GroupName> = new Set(['payer', 'payee'])

function isPeriod(name: GroupName): name is PeriodName {
  return name === 'day' || name === 'week' || name === 'month'
}

/**
 * Groups the matches first and then regroups the few groups by the top ones. It reads only columns that the indexes of the filters have,
 * not the wide rows.
 *
 * @example
 * with cells as materialized (
 *   select payee as key0, count(*) as n, count(*) filter (where status <> 5) as summed, … as priced, … as usd
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
  const groupings = groupBy.map((name, at) => groupingOf(name, at, query, isPeriod(name) ? periods[name] : undefined))
  const keys = groupings.map(({ key, at }) => `${key} as key${at}`)
  const cells = groupCells(keys, query, asked.includes('AMOUNTS'))
  const others = asked.filter((measure) => measure !== 'AMOUNTS')
  const coarseKeys = groupings.map(({ coarseKey, at }) => `${coarseKey} as key${at}`)
  const tables = [
    ...groupings.flatMap(({ before }) => before),
    commonTable('cells', cells, 'materialized'),
    ...groupings.flatMap(({ after }) => after),
    ...others.map((measure) =>
      commonTable(cellsOf(measure), measuredCells(measure, coarseKeys, query), 'materialized'),
    ),
  ]
  const regrouped = [undefined, ...asked].map((measure) => raw('(?)', [regroup(measure, groupings, query)]))
  return raw('with ?\n?', [join(tables, ',\n'), join(regrouped, '\nunion all\n')])
}

function matches({ filter }: SummaryQuery): Statement {
  return allOf([accountIs(filter.accountId), storedCondition(filter), counts(filter)])
}

/** Superseded payments count nowhere. They are few, and all indexes have the id, so that the wide rows are not read. */
function counts({ accountId }: PaymentFilter): Statement {
  return raw('id <> all (array(select s.id from payments s where s.account_id = ? and s.superseded))', [accountId])
}

/** Sums are of money that moved: payments that are FAILED are summed only where they alone are asked for. Columns have no table name. */
function isSummed({ filter }: SummaryQuery): string {
  const { status } = statusesLeft(filter)
  const isFailed = (name: string) => name === 'FAILED'
  if (status !== undefined && (status.every(isFailed) || !status.some(isFailed))) return 'true'
  return `status <> ${rankOfStatus('FAILED')}`
}

/** The cells of the groups. All matches are counted. With `own`, by payment currency as well, with the sums of AMOUNTS. */
function groupCells(keys: readonly string[], query: SummaryQuery, own: boolean): Statement {
  const only = `filter (where ${isSummed(query)})`
  const sums = `count(*) as n, count(*) ${only} as summed, count(amount_in_usd) ${only} as priced,
  coalesce(sum(amount_in_usd) ${only}, 0) as usd`
  const columns = own ? [...keys, 'currency as own_currency', sums, `sum(amount) ${only} as own`] : [...keys, sums]
  const grouped = groupedBy(keys.length + (own ? 1 : 0))
  return raw(`select ${list(columns)}\nfrom payments? where ?${grouped}`, [keyedEntries(query), matches(query)])
}

/** Regroups the cells of a measure, or those of the groups. */
function regroup(measure: Measure | undefined, groupings: readonly Grouping[], { rows }: SummaryQuery): Statement {
  const columns = groupings.flatMap((grouping) => grouping.columns)
  const own =
    measure === undefined
      ? 'null::text as own_currency, null::text as own, null::text as measure'
      : `own_currency, trim_scale(sum(own))::text as own, '${measure}'::text as measure`
  // Without a grouping there is one row also of no cells.
  const counted = measure === undefined ? 'n' : 'summed'
  const totals = `coalesce(sum(${counted}), 0)::text as n, coalesce(sum(summed), 0)::text as summed, coalesce(sum(priced), 0)::text as priced,
  trim_scale(coalesce(sum(usd), 0))::text as usd`
  const keys = columns.length + (measure === undefined ? 0 : 1)
  const joins = groupings.map(({ joinedTo }) => joinedTo).join('')
  return raw(
    `select ${list([...columns, own, totals])}
from ${cellsOf(measure)} as cells${joins}${groupedBy(keys)}${measure === 'AMOUNTS' ? '\nhaving sum(summed) > 0' : ''}
limit ?`,
    [rows],
  )
}

/** The table of a measure's cells. Amounts have one with the groups: every payment has an amount, so one scan gives both. */
function cellsOf(measure: Measure | undefined): string {
  return measure === undefined || measure === 'AMOUNTS' ? 'cells' : `cells_${measure.toLowerCase()}`
}

/** Where a measure's amounts stand. */
interface Measured {
  readonly from: string
  readonly currency: string
  readonly amount: string
  readonly usd: string
  readonly count: string
}

/** Lines of JSON. They get names that no column of a payment has, since filters and keys name columns only. */
function linesOf(select: string): Measured {
  const from = `payments cross join lateral (\n  ${select}) as lines`
  return { from, currency: 'line_currency', amount: 'line_amount', usd: 'line_usd', count: 'count(*)' }
}

/** All fields of a line are read at once. */
const LINE = 'line(currency text, amount numeric, "amountInUsd" numeric)'
const LINE_FIELDS = 'line.currency as line_currency, line.amount as line_amount, line."amountInUsd" as line_usd'

/** Fees, gas and refunds are in columns of JSON that no index has: every row is read whole. */
const measured: Readonly<Record<Exclude<Measure, 'AMOUNTS'>, Measured>> = {
  INVOICE_AMOUNTS: {
    from: '(select * from payments where invoice_currency is not null and invoice_amount is not null) as payments',
    currency: 'invoice_currency',
    amount: 'invoice_amount',
    usd: 'amount_in_usd',
    count: 'count(*)',
  },
  FEES: linesOf(`select ${LINE_FIELDS} from jsonb_to_recordset(fees) as ${LINE}`),
  GAS: linesOf(`select ${LINE_FIELDS} from jsonb_to_record(gas) as ${LINE} where gas is not null`),
  REFUNDS: linesOf(`select ${LINE_FIELDS} from jsonb_to_recordset(refunds) as ${LINE}`),
  NET: {
    ...linesOf(`select payments.currency as line_currency, payments.amount as line_amount,
    case when jsonb_array_length(refunds) = 0 then payments.amount_in_usd end as line_usd, true as line_is_payment
  union all select line.currency, -line.amount, null, false from jsonb_to_recordset(refunds) as ${LINE}`),
    count: 'count(*) filter (where line_is_payment)',
  },
}

function measuredCells(measure: Exclude<Measure, 'AMOUNTS'>, keys: readonly string[], query: SummaryQuery): Statement {
  const { from, currency, amount, usd, count } = measured[measure]
  const condition = isSummed(query)
  const isCounted = raw(`${condition} and superseded is not true`)
  const once = measure === 'GAS' ? raw('not ?', [gasStandsElsewhere(query.filter, isCounted)]) : TRUE
  const sums = `${currency} as own_currency, ${count} as summed, count(${usd}) as priced,
  coalesce(sum(${usd}), 0) as usd, sum(${amount}) as own`
  return raw(`select ${list([...keys, sums])}\nfrom ${from}? where ? and ${condition}${groupedBy(keys.length + 1)}`, [
    keyedEntries(query),
    allOf([matches(query), once]),
  ])
}

/** Joins the values of the grouping's key, from an index and not from the wide rows. In bytewise order `>` follows `=`. */
function keyedEntries({ filter, metadataKey: key }: SummaryQuery): Statement {
  if (key === undefined) return raw(' ')
  return raw(
    `
left join (
  select id as keyed_id, substr(pair, char_length(:from::text) + 1) as keyed_value from payment_metadata
  where account_id = :accountId and pair >= :from::text and pair < :to::text
) as keyed on keyed_id = payments.id`,
    { accountId: filter.accountId, from: `${key}=`, to: `${key}>` },
  )
}

interface Grouping {
  readonly at: number
  /** The expression that payments are grouped by. */
  readonly key: string
  /** Where it is known who is among the top ones: the same, but for all other parties one key that is nobody's. */
  readonly coarseKey: string
  /** Common tables that the key needs. */
  readonly before: readonly Statement[]
  /** Common tables made of the groups. */
  readonly after: readonly Statement[]
  /** The join of the groups with those tables, on a line of its own. */
  readonly joinedTo: string
  /** The columns of the result that belong to this grouping. */
  readonly columns: readonly string[]
}

function groupingOf(
  name: GroupName,
  at: number,
  query: SummaryQuery,
  periods: readonly Boundary[] | undefined,
): Grouping {
  if (parties.has(name)) return partyGrouping(name, at, query)
  if (periods !== undefined) return periodGrouping(at, periods)
  const columns: Partial<Record<GroupName, string>> = { invoiceCurrency: 'invoice_currency', metadata: 'keyed_value' }
  return plainGrouping(at, columns[name] ?? name)
}

/** Groups by an expression alone. */
function plainGrouping(at: number, key: string): Grouping {
  return { at, key, coarseKey: key, before: [], after: [], joinedTo: '', columns: [`cells.key${at}`] }
}

function partyGrouping(name: GroupName, at: number, { groupBy, sums, top }: SummaryQuery): Grouping {
  const key = `key${at}`
  const table = `top${at}`
  // With nothing else to group by, each party already has one cell. The top ones are kept while all are scanned, so nothing is sorted whole.
  const ofEach =
    groupBy.length === 1 && !sums.includes('AMOUNTS')
      ? `select ${key}, usd, n
    from cells where ${key} is not null`
      : `select ${key}, sum(usd) as usd, sum(n) as n
    from cells where ${key} is not null group by ${key}`
  const places = raw(
    `select ${key}, (row_number() over (order by usd desc, n desc, ${key}))::integer as place
  from (${ofEach}
    order by usd desc, n desc, ${key} limit ?) as best`,
    [top],
  )
  return {
    ...plainGrouping(at, name),
    coarseKey: `case when ${name} is null or ${name} in (select ${key} from ${table}) then ${name} else ''::bytea end`,
    after: [commonTable(table, places)],
    joinedTo: `\nleft join ${table} on ${table}.${key} = cells.${key}`,
    columns: [
      `${table}.${key}`,
      `cells.${key} is not null and ${table}.${key} is null as is_rest${at}`,
      `${table}.place as place${at}`,
    ],
  }
}

/** Groups by period: `width_bucket` finds the place of a time among the beginnings of all periods, counted from 1; before the first it is 0. */
function periodGrouping(at: number, periods: readonly Boundary[]): Grouping {
  const key = `width_bucket(timestamp, (select at from begins${at}))`
  const times = periods.map(({ atMs }) => timeText(atMs))
  const begins = raw('select ?::timestamptz[] as at', [times])
  return { ...plainGrouping(at, key), before: [commonTable(`begins${at}`, begins, 'materialized')] }
}

function list(columns: readonly string[]): string {
  return columns.join(',\n')
}

/** `\ngroup by 1, 2`; empty without columns. */
function groupedBy(count: number): string {
  if (count === 0) return ''
  return `\ngroup by ${Array.from({ length: count }, (_, at) => at + 1).join(', ')}`
}
