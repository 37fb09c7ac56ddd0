import { amountBasis, type PaymentFilter } from '../../filter/payment-filter.ts'
import { amountColumns, type SortKey } from '../../filter/search-fields.ts'
import { branchTypes, type GatherShape, type Part } from '../../plan/search-plan.ts'
import {
  accountIs,
  type Binding,
  conditionsOf,
  joined,
  named,
  type PageQuery,
  type Statement,
  text,
} from '../payment-query.ts'
import { branchConditions } from './branches.ts'
import { pageRows, pageTable } from './page-rows.ts'
import { columnsOf, directionOf, fieldsOf, keysOf, roundLimit } from './shape-query.ts'

/** The page by reading all that the parts have, if it is not too much. */
export function gatherStatement(
  { parts, overlap, most }: GatherShape,
  query: PageQuery,
  columns: readonly string[],
): Statement {
  const residual = [...new Set(parts.flatMap((part) => part.residual))]
  const needed = [...new Set([...keysOf(query).map(({ column }) => column), 'id', ...columnsOf(residual, query)])]
  const limit = roundLimit(query.rows)
  const gathered = parts.map((part) => gatherPart(part, needed, query, most))
  const asked = [...conditionsOf(query.filter, fieldsOf(residual)), ...afterPosition(query)]
  const where = asked.length === 0 ? text('') : joined(asked, ' and ', '\nwhere ')
  const cut = most === undefined ? 'false' : `(select count(*) > ${most} from gathered)`
  const source = joined([text(`select *, false as cut from gathered`), where], '')
  return pageRows(
    [
      named(
        'gathered',
        gathered.length === 1 ? joined(gathered, '') : joined(gathered, ')\nunion all\n(', '(', ')'),
        'materialized ',
      ),
      pageTable([source], query, { limit, overlap }),
    ],
    query,
    columns,
    cut,
  )
}

/**
 * Without an order the planner would take any index of the branches, whatever it has to read of it: without the values it cannot tell
 * how much a range leaves.
 */
function gatherPart(part: Part, needed: readonly string[], { filter }: PageQuery, most: number | undefined): Statement {
  const conditions = [
    accountIs(filter.accountId),
    ...branchConditions(part),
    ...conditionsOf(filter, fieldsOf(part.within)),
  ]
  const capped = most === undefined ? '' : ` limit ${most + 1}`
  const ordered = part.order === 'none' ? '' : `\norder by ${orderColumn(part.order, filter)}, id`
  const select = joined(conditions, ' and ', `select ${needed.join(', ')} from payments\nwhere `, ordered)
  const { branches } = part
  if (branches === undefined) return joined([select, text(capped)], '')
  const values = branches.columns.map((_, at) => branches.tuples.map((tuple) => tuple[at]) as Binding)
  const arrays = branches.columns.map((column) => `?::${branchTypes[column]}[]`).join(', ')
  return joined(
    [
      {
        sql: `select k.* from unnest(${arrays}) as d(${branches.columns.join(', ')})\ncross join lateral (\n`,
        bindings: values,
      },
      select,
      // the offset keeps the planner from joining the other way round, which would read all payments of the account
      text(`${capped === '' ? ' offset 0' : capped}\n) k${capped}`),
    ],
    '',
  )
}

function orderColumn(order: 'time' | 'amount', filter: PaymentFilter): string {
  return order === 'time' ? 'timestamp' : amountColumns[amountBasis(filter)].column
}

/** Rows are compared one by one here, so that what is unknown needs no walk of its own. */
function afterPosition(query: PageQuery): Statement[] {
  const { position } = query
  if (position === undefined) return []
  const keys = keysOf(query)
  const [key] = keys as readonly [SortKey]
  const ascending = directionOf(query) === 'asc'
  const operator = `${ascending ? '>' : '<'}${position.inclusive ? '=' : ''}`
  const byId: Statement = { sql: `id ${operator} ?::uuid`, bindings: [position.id] }
  if (position.keys[0] === null) {
    return [
      ascending
        ? joined([byId], '', `(${key.column} is not null or `, ')')
        : joined([byId], '', `${key.column} is null and `),
    ]
  }
  const columns = [...keys.map(({ column }) => column), 'id'].join(', ')
  const places = [...keys.map(({ type }) => `?::${type}`), '?::uuid'].join(', ')
  const beyond: Statement = { sql: `(${columns}) ${operator} (${places})`, bindings: [...position.keys, position.id] }
  return [key.nullable && !ascending ? joined([beyond], '', `(${key.column} is null or `, ')') : beyond]
}
