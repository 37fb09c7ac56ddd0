import { type BranchColumn, branchTypes, type Part, type WalkPart } from '../../plan/search-plan.ts'
import { type Binding, joined, orderBy, type PageQuery, type Statement, text } from '../payment-query.ts'
import { directionOf, keysOf } from './shape-query.ts'

/** Where months begin; the index of months has the same expression. */
const MONTH = `date_bin('30 days', timestamp, '2000-01-01 00:00:00+00'::timestamptz)`

/** The conditions that a branch puts on the rows: its values stand in the table `d`. */
export function branchConditions({ branches, fromElsewhere }: Part): Statement[] {
  const equal = (branches?.columns ?? []).map((column) => text(`${expressionOf(column)} = d.${column}`))
  return fromElsewhere === true ? [...equal, text('source_network <> network')] : equal
}

function expressionOf(column: BranchColumn): string {
  return column === 'month' ? MONTH : column
}

/** Runs a select once for each branch. Values go as one array a column, so that the text is the same for any number of them. */
export function branchTable(part: WalkPart, select: Statement, query: PageQuery, limit: number): Statement {
  const { branches, entries, inOrder = false } = part
  const columns = (branches?.columns ?? []).map((column, at) => ({
    name: column as string,
    type: branchTypes[column] as string,
    values: (branches?.tuples ?? []).map((tuple) => tuple[at]) as Binding,
  }))
  if (entries !== undefined) columns.push({ name: 'entries', type: 'int', values: [...entries] })
  if (columns.length === 0) return select
  const names = columns.map(({ name }) => name).join(', ')
  const selected = [...keysOf(query).map(({ column }) => column), 'id', 'cut'].map((name) => `k.${name}`).join(', ')
  const arrays = `unnest(${columns.map(({ type }) => `?::${type}[]`).join(', ')})`
  const table = inOrder
    ? `(select * from ${arrays} with ordinality as b(${names}, nth) order by nth) d`
    : `${arrays} as d(${names})`
  const tail = keysOf(query).slice(part.fixedKeys)
  const inBranch = orderBy(tail, directionOf(query), 'k.').replace('order by ', 'order by d.nth, ')
  return joined(
    [
      {
        sql: `select ${selected} from ${table}\ncross join lateral (\n`,
        bindings: columns.map(({ values }) => values),
      },
      select,
      text(inOrder ? `\n) k\n${inBranch} limit ${limit}` : '\n) k'),
    ],
    '',
  )
}
