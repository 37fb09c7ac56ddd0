import {
  type Binding,
  joined,
  named,
  orderBy,
  type PageQuery,
  type Statement,
  text,
} from '../payment-query-repository.ts'
import { branchTypes, type SlicesShape, type WalkPart } from '../search-plan.ts'
import { pageRows, pageTable } from './page-rows-repository.ts'
import { directionOf, keysOf, roundLimit } from './shape-query.ts'
import { boundsOf, branchRows } from './walk-repository.ts'

/**
 * The page by time of many branches, in two steps. First some rows of each; the page does not end behind the place where these alone
 * would fill it. So of the branches whose rows all come before that place, a page is read, and the others are known to have no more.
 */
export function slicesStatement(
  { parts, overlap, each }: SlicesShape,
  query: PageQuery,
  columns: readonly string[],
): Statement {
  const limit = roundLimit(query.rows)
  const isUp = directionOf(query) === 'asc'
  const numbered = numberBranches(parts)
  const rowsOf = (part: NumberedPart, rows: number, again: boolean) =>
    joined(
      [
        branchNumbers(part, again),
        joined(
          boundsOf(part, query).map((bound) => branchRows(part, bound, query)),
          '',
          `\ncross join lateral (\n`,
          ` limit ${rows}\n) k`,
        ),
      ],
      '',
    )
  const unionOf = (statements: readonly Statement[]) => joined(statements, '\nunion all\n')
  const order = orderBy(keysOf(query), directionOf(query))
  const distinct = overlap ? 'distinct ' : ''
  const [last, isBefore] = isUp ? ['max', '<='] : ['min', '>=']
  return pageRows(
    [
      named('begun', unionOf(numbered.map((part) => rowsOf(part, each, false))), 'materialized '),
      text(`again as materialized (
select branch from begun group by branch
having count(*) = ${each} and (${last}(timestamp) ${isBefore} (
  select timestamp from (select ${distinct}timestamp, id from begun) found ${order} offset ${limit - 1} limit 1) is not false)
)`),
      pageTable(
        [
          text('select timestamp, id, false as cut from begun where branch not in (select branch from again)'),
          ...numbered.map((part) =>
            joined([rowsOf(part, limit, true)], '', 'select timestamp, id, false as cut from (\n', '\n) more'),
          ),
        ],
        query,
        { limit, overlap },
      ),
    ],
    query,
    columns,
  )
}

/** A part whose branches have numbers that no branch of another part has. */
type NumberedPart = WalkPart & { readonly numbers: readonly number[] }

function numberBranches(parts: readonly WalkPart[]): NumberedPart[] {
  let first = 0
  return parts.map((part) => {
    const count = part.branches?.tuples.length ?? 0
    const numbers = Array.from({ length: count }, (_, nth) => first + nth)
    first += count
    return { ...part, numbers }
  })
}

/** The branches as a table `d`, all or those that are read again. */
function branchNumbers({ branches, numbers }: NumberedPart, again: boolean): Statement {
  const { columns, tuples } = branches ?? { columns: [], tuples: [] }
  const names = [...columns, 'branch'].join(', ')
  const types = [...columns.map((column) => `?::${branchTypes[column]}[]`), '?::int[]'].join(', ')
  const values = columns.map((_, at) => tuples.map((tuple) => tuple[at]) as Binding)
  const table = `unnest(${types}) as d(${names})`
  // the offset keeps the planner from reading of all branches before it asks which
  const asked = again ? `(select * from ${table} where branch in (select branch from again) offset 0) d` : table
  return { sql: `select d.branch, k.timestamp, k.id from ${asked}`, bindings: [...values, [...numbers]] }
}
