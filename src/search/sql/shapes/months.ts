import { bind, commonTable, raw, type Statement, sql, where } from '../../../postgres/statement.ts'
import { filterFields } from '../../filter/search-fields.ts'
import { directionOf, keysOf } from '../../page/page-query.ts'
import type { MonthsShape } from '../../plan/search-plan.ts'
import { accountIs, conditionsOf } from '../filter-conditions.ts'
import { keyRanges, orderOfIndex, orderTerms } from '../keyset.ts'
import { equalsBranch } from './branches.ts'
import { type PageRequest, pageRows, rowLimit } from './page-rows.ts'

/**
 * The page by date of a range of US dollars: month after month in the order of the answer, each read by its range of amounts and sorted.
 * PostgreSQL stops at the month that fills the page.
 *
 * @example page as (
 *   select k.timestamp, k.id, false as cut
 *   from (select month, nth from unnest(?::timestamptz[]) with ordinality as m(month, nth) order by nth) d
 *   cross join lateral (
 *     select timestamp, id from payments
 *     where account_id = ? and date_bin('30 days', timestamp, …) = d.month and amount_in_usd >= ?
 *     order by timestamp desc, id desc limit 21
 *   ) k
 *   order by d.nth, k.timestamp desc, k.id desc limit 21)
 */
export function monthsStatement({ months }: MonthsShape, request: PageRequest): Statement {
  const { query } = request
  const { filter, position } = query
  const [keys, direction] = [keysOf(query), directionOf(query)]
  const starts = months.map((ms) => new Date(ms).toISOString())
  const limit = raw(rowLimit(query))
  const asked = where([
    accountIs(filter.accountId),
    equalsBranch('month'),
    ...conditionsOf(filter, filterFields),
    ...keyRanges(keys, direction, filter, position),
  ])
  const page = sql`select k.timestamp, k.id, false as cut
from (select month, nth from unnest(${bind(starts, 'timestamptz[]')}) with ordinality as m(month, nth) order by nth) d
cross join lateral (
select timestamp, id from payments${asked}
${orderOfIndex(keys, direction)} limit ${limit}
) k
order by d.nth, ${raw(orderTerms(keys, direction, 'k.'))} limit ${limit}`
  return pageRows([commonTable('page', page)], request)
}
