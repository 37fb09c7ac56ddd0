import { commonTable, EMPTY, raw, type Statement, sql, unionAll, where } from '../../../postgres/statement.ts'
import { amountBasis, type PaymentFilter } from '../../filter/payment-filter.ts'
import { amountColumns } from '../../filter/search-fields.ts'
import type { PageQuery } from '../../page/page-query.ts'
import type { GatherShape, Part } from '../../plan/search-plan.ts'
import { accountIs, columnsOf, conditionsOfNamed } from '../filter-conditions.ts'
import { afterPosition } from '../keyset.ts'
import { branchArrays, branchConditions, namesOf, unnest } from './branches.ts'
import { keyColumnsOf, type PageRequest, pageRows, pageTable } from './page-rows.ts'

/**
 * The page by reading everything that the parts hold, up to a limit, and then filtering and sorting it. Where more than the limit is there,
 * the whole page is marked `cut`.
 *
 * @example
 * with gathered as materialized (
 *   select timestamp, id, network from payments
 *   where account_id = ? and amount_in_usd >= ? order by amount_in_usd, id limit 301),
 * page as (
 *   select timestamp, id, cut from (select *, false as cut from gathered where network = ?) found
 *   order by timestamp desc, id desc limit 21)
 */
export function gatherStatement({ parts, mayOverlap, maxEntries }: GatherShape, request: PageRequest): Statement {
  const { query } = request
  const residual = [...new Set(parts.flatMap((part) => part.residual))]
  const needed = [...new Set([...keyColumnsOf(query), ...columnsOf(query.filter, residual)])]
  const gathered = parts.map((part) => entriesOfPart(part, needed, query, maxEntries))
  const asked = where([...conditionsOfNamed(query.filter, residual), afterPosition(query)])
  const isTooMany = maxEntries === undefined ? undefined : sql`(select count(*) > ${raw(maxEntries)} from gathered)`
  return pageRows(
    [
      commonTable('gathered', unionAll(gathered), 'materialized'),
      pageTable([sql`select *, false as cut from gathered${asked}`], query, mayOverlap),
    ],
    request,
    isTooMany,
  )
}

/**
 * One entry more than the limit tells whether there are more.
 *
 * The order names the index: without one PostgreSQL would take any index of the branches, since it plans without the values and cannot know
 * how little a range leaves. The `offset` keeps it from joining the other way round, which would read all payments of the account.
 */
function entriesOfPart(
  part: Part,
  needed: readonly string[],
  { filter }: PageQuery,
  maxEntries: number | undefined,
): Statement {
  const limit = maxEntries === undefined ? EMPTY : sql` limit ${raw(maxEntries + 1)}`
  const asked = where([
    accountIs(filter.accountId),
    ...branchConditions(part),
    ...conditionsOfNamed(filter, part.within),
  ])
  const order = part.order === 'none' ? EMPTY : sql`\norder by ${raw(orderColumn(part.order, filter))}, id`
  const entries = sql`select ${raw(needed.join(', '))} from payments${asked}${order}`
  const arrays = branchArrays(part)
  if (part.branches === undefined) return sql`${entries}${limit}`
  return sql`select k.* from ${unnest(arrays)} as d(${namesOf(arrays)})
cross join lateral (
${entries}${maxEntries === undefined ? sql` offset 0` : limit}
) k${limit}`
}

function orderColumn(order: 'time' | 'amount', filter: PaymentFilter): string {
  return order === 'time' ? 'timestamp' : amountColumns[amountBasis(filter)].column
}
