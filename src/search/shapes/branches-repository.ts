import { type Binding, joined, type Statement, text } from '../payment-query-repository.ts'
import type { SortKey } from '../search-fields.ts'
import { type BranchColumn, branchTypes, type Part, type WalkPart } from '../search-plan.ts'

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
export function branchTable(
  part: Part & Partial<Pick<WalkPart, 'entries'>>,
  select: Statement,
  keys: readonly SortKey[],
) {
  const { branches, entries } = part
  const columns = (branches?.columns ?? []).map((column, at) => ({
    name: column as string,
    type: branchTypes[column] as string,
    values: (branches?.tuples ?? []).map((tuple) => tuple[at]) as Binding,
  }))
  if (entries !== undefined) columns.push({ name: 'entries', type: 'int', values: [...entries] })
  if (columns.length === 0) return select
  const selected = [...keys.map(({ column }) => column), 'id', 'cut'].map((name) => `k.${name}`).join(', ')
  const arrays = columns.map(({ type }) => `?::${type}[]`).join(', ')
  return joined(
    [
      {
        sql: `select ${selected} from unnest(${arrays}) as d(${columns.map(({ name }) => name).join(', ')})\ncross join lateral (\n`,
        bindings: columns.map(({ values }) => values),
      },
      select,
      text('\n) k'),
    ],
    '',
  )
}
