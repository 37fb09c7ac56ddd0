import { bind, commonTable, EMPTY, join, raw, type Statement, sql, unionAll } from '../../../postgres/statement.ts'
import { directionOf, keysOf, type PageQuery } from '../../page/page-query.ts'
import { orderOfAnswer } from '../keyset.ts'

/** What every shape is given: which page, and which columns of its rows. */
export interface PageRequest {
  readonly query: PageQuery
  /** Columns of `payments`. */
  readonly columns: readonly string[]
}

/**
 * Joins the wide rows to a page whose keys are known, by primary key.
 *
 * After the requested columns each row has `page_cut`, `last_change` and `statistics_seq`, all of one snapshot. A page without rows
 * is one row whose payment columns are null.
 *
 * @param tables - common tables; the one named `page` holds the sort keys, `id` and `cut`: whether rows may be missing before this one
 * @param cut - an expression: whether rows may be missing anywhere on the page
 * @example
 * with page as (…)
 * select p.id, p.amount, …
 * from (select … as last_change, … as seq, false as cut) account
 * left join (select * from page order by timestamp desc, id desc limit 21) page on true
 * left join payments p on p.account_id = 7 and p.id = page.id
 * order by page.timestamp desc, page.id desc
 */
export function pageRows(
  tables: readonly Statement[],
  { query, columns }: PageRequest,
  cut: Statement = raw('false'),
): Statement {
  const { filter, rows } = query
  const accountId = bind(filter.accountId)
  const order = (table?: string) => orderOfAnswer(keysOf(query), directionOf(query), table)
  return sql`with ${join(tables, ',\n')}
select ${raw(columns.map((column) => `p.${column}`).join(', '))}, coalesce(page.cut, false) or account.cut as page_cut,
  account.last_change, account.seq as statistics_seq
from (select (select last_change from account_changes where account_id = ${accountId}) as last_change,
  (select max(seq) from payment_statistics where account_id = ${accountId}) as seq,
  ${cut} as cut) account
left join (select * from page ${order()} limit ${bind(rows)}) page on true
left join payments p on p.account_id = ${accountId} and p.id = page.id
${order('page.')}`
}

/**
 * The common table `page`: the first rows of all sources in the order of the answer.
 *
 * @param mayOverlap - whether two sources may have the same payment, which then counts once
 * @example page as (select timestamp, id, cut from ((…) union all (…)) found order by timestamp desc, id desc limit 21)
 */
export function pageTable(sources: readonly Statement[], query: PageQuery, mayOverlap: boolean): Statement {
  const keys = keysOf(query)
  const names = raw(keyColumnsOf(query).join(', '))
  const cut = mayOverlap ? sql`bool_or(cut) as cut` : sql`cut`
  const grouped = mayOverlap ? sql`\ngroup by ${names}` : EMPTY
  const body = sql`select ${names}, ${cut} from (
${unionAll(sources)}
) found${grouped}
${orderOfAnswer(keys, directionOf(query))} limit ${raw(rowLimit(query))}`
  return commonTable('page', body)
}

/** The columns that place a payment in the order: `timestamp, id`. */
export function keyColumnsOf(query: PageQuery): string[] {
  return [...keysOf(query).map(({ column }) => column), 'id']
}

/**
 * The row limit in the text of a shape. It is no binding, because PostgreSQL plans for the limit that it sees; so that the texts stay few,
 * it is rounded up.
 */
export function rowLimit({ rows }: PageQuery): number {
  return LIMITS.find((limit) => limit >= rows) ?? rows
}

const LIMITS = [11, 21, 51, 101, 1_001, 10_001]
