import { bind, commonTable, join, raw, type Statement, sql } from '../../../postgres/statement.ts'
import { directionOf, keysOf, type PageQuery } from '../../page/page-query.ts'
import { type BranchValue, branchTypes, type SlicesShape, type WalkPart } from '../../plan/search-plan.ts'
import { orderOfAnswer } from '../keyset.ts'
import { type PageRequest, pageRows, pageTable, rowLimit } from './page-rows.ts'
import { keysOfBranch, rangesOf } from './walk.ts'

/**
 * The page by date of very many branches, in two steps. The first reads a few rows of each branch. Sorted, these few already fill a page,
 * and the real page cannot end later than that one. So only a branch whose few rows all lie before that end may have more on the page; of
 * such branches the second step reads a whole page.
 *
 * @example
 * with branches_0 as materialized (…the branches, numbered…),
 * begun as materialized (…3 rows of each branch…),
 * again as materialized (…the numbers of branches that may have more on the page…),
 * page as (…rows begun of the other branches, and a page of each branch of `again`…)
 */
export function slicesStatement(shape: SlicesShape, request: PageRequest): Statement {
  const { parts, mayOverlap, rowsPerBranch } = shape
  const { query } = request
  const limit = rowLimit(query)
  const begun = parts.map((part, nth) => rowsOfBranches(part, query, { from: `branches_${nth}`, limit: rowsPerBranch }))
  const more = parts.map((part, nth) => {
    // the offset keeps PostgreSQL from reading rows of all branches before it asks which branches are wanted
    const from = `(select * from branches_${nth} where branch in (select branch from again) offset 0)`
    const rows = rowsOfBranches(part, query, { from, limit })
    return sql`select timestamp, id, false as cut from (\n${rows}\n) more`
  })
  return pageRows(
    [
      ...parts.map((part, nth) =>
        commonTable(`branches_${nth}`, numberedBranches(part, countBefore(parts, nth)), 'materialized'),
      ),
      commonTable('begun', join(begun, '\nunion all\n'), 'materialized'),
      commonTable('again', branchesWithMore(shape, query), 'materialized'),
      pageTable(
        [sql`select timestamp, id, false as cut from begun where branch not in (select branch from again)`, ...more],
        query,
        mayOverlap,
      ),
    ],
    request,
  )
}

/** The first rows of each branch, with the number of the branch. */
function rowsOfBranches(
  part: WalkPart,
  query: PageQuery,
  { from, limit }: { readonly from: string; readonly limit: number },
): Statement {
  const rows = join(
    rangesOf(part, query).map((range) => keysOfBranch(part, range, query)),
    '',
  )
  return sql`select d.branch, k.timestamp, k.id from ${raw(from)} d
cross join lateral (
${rows} limit ${raw(limit)}
) k`
}

/** Branches that returned as many rows as requested, all of them before the place where a page made of the begun rows ends. */
function branchesWithMore({ mayOverlap, rowsPerBranch }: SlicesShape, query: PageQuery): Statement {
  const [last, isBefore] = directionOf(query) === 'asc' ? ['max', '<='] : ['min', '>=']
  const order = orderOfAnswer(keysOf(query), directionOf(query))
  return sql`select branch from begun group by branch
having count(*) = ${raw(rowsPerBranch)} and (${raw(last)}(timestamp) ${raw(isBefore)} (
  select timestamp from (select ${raw(mayOverlap ? 'distinct ' : '')}timestamp, id from begun) found ${order} offset ${raw(rowLimit(query) - 1)} limit 1) is not false)`
}

/** The branches of the parts before one: numbers go on from part to part, so that no two branches share one. */
function countBefore(parts: readonly WalkPart[], nth: number): number {
  return parts.slice(0, nth).reduce((sum, { branches }) => sum + (branches?.tuples.length ?? 0), 0)
}

/**
 * The branches as a table, with their numbers. Each distinct value goes to the server once and tuples refer to it by its place, because a
 * wallet of 21 bytes would otherwise be sent with each of its statuses.
 *
 * @example
 * select (?::bytea[])[d.payee] as payee, (?::smallint[])[d.status] as status, d.nth + 0 as branch
 * from unnest(?::int[], ?::int[]) with ordinality as d(payee, status, nth)
 */
function numberedBranches({ branches }: WalkPart, countBefore: number): Statement {
  const { columns, tuples } = branches ?? { columns: [], tuples: [] }
  const coded = columns.map((name, at) => {
    const values = [...new Set(tuples.map((tuple) => tuple[at] as BranchValue))]
    const places = new Map(values.map((value, place) => [value, place + 1]))
    return { name, values, places: tuples.map((tuple) => places.get(tuple[at] as BranchValue) as number) }
  })
  const selected = coded.map(
    ({ name, values }) => sql`(${bind(values, `${branchTypes[name]}[]`)})[${raw(`d.${name}`)}] as ${raw(name)}`,
  )
  const places = coded.map((column) => bind(column.places, 'int[]'))
  const names = raw([...columns, 'nth'].join(', '))
  return sql`select ${join(selected, ', ')}, d.nth + ${bind(countBefore, 'int')} as branch from unnest(${join(places, ', ')}) with ordinality as d(${names})`
}
