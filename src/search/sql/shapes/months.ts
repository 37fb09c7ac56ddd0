import { filterFields } from '../../filter/search-fields.ts'
import type { MonthsShape } from '../../plan/search-plan.ts'
import {
  ALL,
  accountIs,
  conditionsOf,
  joined,
  keysetBounds,
  named,
  orderBy,
  type PageQuery,
  type Statement,
  text,
} from '../payment-query.ts'
import { branchConditions } from './branches.ts'
import { pageRows } from './page-rows.ts'
import { directionOf, keysOf, roundLimit } from './shape-query.ts'

/** The page by date, of a range of US dollars, month after month: what is behind the month that fills it is not read. */
export function monthsStatement({ months }: MonthsShape, query: PageQuery, columns: readonly string[]): Statement {
  const { filter, position } = query
  const order = orderBy(keysOf(query), directionOf(query))
  const bounds = keysetBounds(keysOf(query), directionOf(query), filter, position)
  const conditions = [
    accountIs(filter.accountId),
    ...branchConditions({
      index: '',
      branches: { columns: ['month'], tuples: [] },
      order: 'amount',
      within: [],
      residual: [],
    }),
    ...conditionsOf(filter, filterFields),
    ...bounds,
  ].filter((condition) => condition !== ALL)
  const limit = roundLimit(query.rows)
  const page = joined(
    [
      {
        sql: `select k.timestamp, k.id, false as cut
from (select month, nth from unnest(?::timestamptz[]) with ordinality as m(month, nth) order by nth) d
cross join lateral (
`,
        bindings: [months.map((ms) => new Date(ms).toISOString())],
      },
      joined(conditions, ' and ', 'select timestamp, id from payments\nwhere '),
      text(
        `\n${order} limit ${limit}\n) k\norder by d.nth, ${order
          .replace('order by ', '')
          .replace('timestamp', 'k.timestamp')
          .replace(/\bid\b/, 'k.id')} limit ${limit}`,
      ),
    ],
    '',
  )
  return pageRows([named('page', page)], query, columns)
}
