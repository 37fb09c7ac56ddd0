import { allOf, EMPTY, raw, type Statement, sql, TRUE, where } from '../../../postgres/statement.ts'
import { directionOf, keysOf, type PageQuery } from '../../page/page-query.ts'
import type { WalkPart, WalkShape } from '../../plan/search-plan.ts'
import { accountIs, columnsOf, conditionsOfNamed } from '../filter-conditions.ts'
import { keyRanges, orderOfIndex } from '../keyset.ts'
import { branchConditions, forEachBranch } from './branches.ts'
import { keyColumnsOf, type PageRequest, pageRows, pageTable, rowLimit } from './page-rows.ts'

/**
 * The page by walks in the order of the answer: of each branch the next rows after the position, and of all those the first.
 *
 * @param firstRangeOnly - reads only the range of keys that comes first (unknown amounts ascending, known ones descending). Its rows are
 *   the page if they fill it
 * @example page as (
 *   select timestamp, id, cut from (
 *     select k.timestamp, k.id, k.cut from unnest(?::smallint[]) as d(status)
 *     cross join lateral (…a walk of one branch…) k
 *   ) found order by timestamp desc, id desc limit 21)
 */
export function walkStatement(
  { parts, mayOverlap }: WalkShape,
  request: PageRequest,
  { firstRangeOnly = false }: { readonly firstRangeOnly?: boolean } = {},
): Statement {
  const { query } = request
  const first = directionOf(query) === 'asc' ? 0 : -1
  const walks = parts.flatMap((part) => {
    const ranges = rangesOf(part, query)
    const asked = firstRangeOnly ? [ranges.at(first) ?? TRUE] : ranges
    return asked.map((range) => forEachBranch(part, walkOfBranch(part, range, query), query))
  })
  return pageRows([pageTable(walks, query, mayOverlap)], request)
}

/** Whether the walk reads known and unknown keys as two ranges, of which the first may already fill the page. */
export function hasTwoRanges({ parts }: WalkShape, query: PageQuery): boolean {
  return parts.some((part) => rangesOf(part, query).length > 1)
}

/** The ranges of keys that a part has to read: those after the position, or all where the whole part lies after it. */
export function rangesOf(part: WalkPart, query: PageQuery): Statement[] {
  const keys = keysOf(query).slice(part.fixedKeys)
  const { position } = query
  const isBounded = part.startsAtPosition && position !== undefined
  const start = isBounded ? { ...position, keys: position.keys.slice(part.fixedKeys) } : undefined
  const ranges = keyRanges(keys, directionOf(query), query.filter, start)
  return part.unknownOnly === true ? ranges.slice(0, 1) : ranges
}

function walkOfBranch(part: WalkPart, range: Statement, query: PageQuery): Statement {
  return part.entryLimits === undefined ? unboundedWalk(part, range, query) : boundedWalk(part, range, query)
}

/**
 * Reads as many entries of the index as the page needs.
 *
 * `offset 0` keeps PostgreSQL from merging the two selects: it might then take another index, whose entries it would have to sort.
 *
 * @example
 * select timestamp, id, false as cut from (
 *   select timestamp, id, network from payments
 *   where account_id = ? and status = d.status and (timestamp, id) < (?, ?)
 *   order by timestamp desc, id desc offset 0
 * ) walked
 * where network = ? limit 21
 */
function unboundedWalk(part: WalkPart, range: Statement, query: PageQuery): Statement {
  const residual = conditionsOfNamed(query.filter, part.residual)
  const fence = residual.length === 0 ? EMPTY : sql` offset 0`
  return sql`select ${raw(keyColumnsOf(query).join(', '))}, false as cut from (
select ${raw(neededColumns(part, query))} from payments${whereOf(part, range, query)}
${orderOf(part, query)}${fence}
) walked${where(residual)} limit ${raw(rowLimit(query))}`
}

/**
 * Reads at most `d.entries` entries of the index. The last of them is returned whether it matches or not, marked `cut`: what follows it
 * is not known, so the page is whole only if it ends before.
 *
 * @example
 * select timestamp, id, nth = d.entries as cut from (
 *   select timestamp, id, network, row_number() over (order by timestamp desc, id desc) as nth from payments
 *   where account_id = ? and status = d.status
 *   order by timestamp desc, id desc limit d.entries
 * ) walked
 * where nth = d.entries or (network = ?) limit 21
 */
function boundedWalk(part: WalkPart, range: Statement, query: PageQuery): Statement {
  const order = orderOf(part, query)
  const residual = conditionsOfNamed(query.filter, part.residual)
  const kept = residual.length === 0 ? TRUE : sql`nth = d.entries or (${allOf(residual)})`
  return sql`select ${raw(keyColumnsOf(query).join(', '))}, nth = d.entries as cut from (
select ${raw(neededColumns(part, query))}, row_number() over (${order}) as nth from payments${whereOf(part, range, query)}
${order} limit d.entries
) walked${where([kept])} limit ${raw(rowLimit(query))}`
}

/**
 * The keys of a branch that asks nothing but what its index answers, in the order of the answer and without a limit.
 *
 * @example
 * select timestamp, id from payments
 * where account_id = ? and payee = d.payee and status = d.status and (timestamp, id) < (?, ?)
 * order by timestamp desc, id desc
 */
export function keysOfBranch(part: WalkPart, range: Statement, query: PageQuery): Statement {
  return sql`select ${raw(keyColumnsOf(query).join(', '))} from payments${whereOf(part, range, query)}
${orderOf(part, query)}`
}

/** The sort keys, the id, and the columns that the residual filters look at. */
function neededColumns({ residual }: WalkPart, query: PageQuery): string {
  return [...new Set([...keyColumnsOf(query), ...columnsOf(query.filter, residual)])].join(', ')
}

/** What the index answers: account, branch, the filters along its order, the range of keys. */
function whereOf(part: WalkPart, range: Statement, { filter }: PageQuery): Statement {
  return where([
    accountIs(filter.accountId),
    ...branchConditions(part),
    ...conditionsOfNamed(filter, part.within),
    range,
  ])
}

function orderOf({ fixedKeys }: WalkPart, query: PageQuery): Statement {
  return orderOfIndex(keysOf(query).slice(fixedKeys), directionOf(query))
}
