import { joined, named, orderBy, type PageQuery, type Statement, text } from '../payment-query.ts'
import { directionOf, keysOf } from './shape-query.ts'

/**
 * Fetches the rows of a page by primary key. A page without rows is one row of nulls, but for what the account's tables said in the
 * same snapshot.
 *
 * @param tables - common tables; the one named page has the keys of the order, `id` and `cut`: whether rows are missing before it
 * @param cut - an expression for whether rows are missing from the whole page
 */
export function pageRows(
  tables: readonly Statement[],
  query: PageQuery,
  columns: readonly string[],
  cut = 'false',
): Statement {
  const { filter, rows } = query
  const order = (prefix: string) => orderBy(keysOf(query), directionOf(query), prefix)
  return joined(
    [
      joined(tables, ',\n', 'with '),
      text(`select ${columns.map((column) => `p.${column}`).join(', ')}, coalesce(page.cut, false) or account.cut as page_cut,
  account.last_change, account.seq as statistics_seq`),
      {
        sql: `from (select (select last_change from account_changes where account_id = ?) as last_change,
  (select max(seq) from payment_statistics where account_id = ?) as seq,
  ${cut} as cut) account
left join (select * from page ${order('')} limit ?) page on true
left join payments p on p.account_id = ? and p.id = page.id`,
        bindings: [filter.accountId, filter.accountId, rows, filter.accountId],
      },
      text(order('page.')),
    ],
    '\n',
  )
}

/** The table named page: the first of the rows in the order of the answer. */
export function pageTable(
  sources: readonly Statement[],
  query: PageQuery,
  { limit, overlap }: { readonly limit: number; readonly overlap: boolean },
): Statement {
  const keys = keysOf(query)
  const names = [...keys.map(({ column }) => column), 'id'].join(', ')
  const order = orderBy(keys, directionOf(query))
  const [only] = sources
  const union = sources.length === 1 && only !== undefined ? only : joined(sources, ')\nunion all\n(', '(', ')')
  const selected = overlap ? `${names}, bool_or(cut) as cut` : `${names}, cut`
  const grouped = overlap ? `\ngroup by ${names}` : ''
  return named(
    'page',
    joined([union], '', `select ${selected} from (\n`, `\n) found${grouped}\n${order} limit ${limit}`),
  )
}
