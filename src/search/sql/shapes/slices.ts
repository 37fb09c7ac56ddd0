import { type BranchValue, branchTypes, type SlicesShape, type WalkPart } from '../../plan/search-plan.ts'
import { joined, named, orderBy, type PageQuery, type Statement, text } from '../payment-query.ts'
import { pageRows, pageTable } from './page-rows.ts'
import { directionOf, keysOf, roundLimit } from './shape-query.ts'
import { boundsOf, branchRows } from './walk.ts'

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
  const rowsOf = (part: WalkPart, nth: number, rows: number, again: boolean) => {
    // the offset keeps the planner from reading of all branches before it asks which
    const branches = again
      ? `(select * from branches_${nth} where branch in (select branch from again) offset 0)`
      : `branches_${nth}`
    const read = boundsOf(part, query).map((bound) => branchRows(part, bound, query))
    return joined(
      read,
      '',
      `select d.branch, k.timestamp, k.id from ${branches} d\ncross join lateral (\n`,
      ` limit ${rows}\n) k`,
    )
  }
  const unionOf = (statements: readonly Statement[]) => joined(statements, '\nunion all\n')
  const order = orderBy(keysOf(query), directionOf(query))
  const distinct = overlap ? 'distinct ' : ''
  const [last, isBefore] = isUp ? ['max', '<='] : ['min', '>=']
  return pageRows(
    [
      ...parts.map((part, nth) =>
        named(`branches_${nth}`, branchesOf(part, numberBefore(parts, nth)), 'materialized '),
      ),
      named('begun', unionOf(parts.map((part, nth) => rowsOf(part, nth, each, false))), 'materialized '),
      text(`again as materialized (
select branch from begun group by branch
having count(*) = ${each} and (${last}(timestamp) ${isBefore} (
  select timestamp from (select ${distinct}timestamp, id from begun) found ${order} offset ${limit - 1} limit 1) is not false)
)`),
      pageTable(
        [
          text('select timestamp, id, false as cut from begun where branch not in (select branch from again)'),
          ...parts.map((part, nth) =>
            joined([rowsOf(part, nth, limit, true)], '', 'select timestamp, id, false as cut from (\n', '\n) more'),
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

/** How many branches the parts before one have: no two branches have the same number. */
function numberBefore(parts: readonly WalkPart[], nth: number): number {
  return parts.slice(0, nth).reduce((sum, { branches }) => sum + (branches?.tuples.length ?? 0), 0)
}

/** The branches and their numbers as a table. A wallet goes to the server once, and not with each of its statuses. */
function branchesOf({ branches }: WalkPart, before: number): Statement {
  const { columns, tuples } = branches ?? { columns: [], tuples: [] }
  const coded = columns.map((name, at) => {
    const values = [...new Set(tuples.map((tuple) => tuple[at] as BranchValue))]
    const places = new Map(values.map((value, place) => [value, place + 1]))
    return { name, values, places: tuples.map((tuple) => places.get(tuple[at] as BranchValue) as number) }
  })
  const selected = coded.map(({ name }) => `(?::${branchTypes[name]}[])[d.${name}] as ${name}`)
  const arrays = coded.map(() => '?::int[]').join(', ')
  const names = [...columns, 'nth'].join(', ')
  return {
    sql: `select ${selected.join(', ')}, d.nth + ?::int as branch from unnest(${arrays}) with ordinality as d(${names})`,
    bindings: [...coded.map(({ values }) => values), before, ...coded.map(({ places }) => places)],
  }
}
