import type { WalkPart, WalkShape } from '../../plan/search-plan.ts'
import {
  ALL,
  accountIs,
  conditionsOf,
  joined,
  keysetBounds,
  orderBy,
  type PageQuery,
  type Statement,
  text,
} from '../payment-query.ts'
import { branchConditions, branchTable } from './branches.ts'
import { pageRows, pageTable } from './page-rows.ts'
import { columnsOf, directionOf, fieldsOf, keysOf, roundLimit } from './shape-query.ts'

/** Whether the page is two walks, of known keys and of unknown ones, of which the first may be all that is needed. */
export function isTwofold({ parts }: WalkShape, query: PageQuery): boolean {
  return parts.some((part) => boundsOf(part, query).length > 1)
}

/**
 * The page by walks in its order: keyset bounds are row values, and rows are joined only once the page is known.
 *
 * @param isFirst - only of the keys that stand first; what is found is the page if it fills it
 */
export function walkStatement(
  { parts, overlap }: WalkShape,
  query: PageQuery,
  columns: readonly string[],
  isFirst = false,
): Statement {
  const limit = roundLimit(query.rows)
  const first = directionOf(query) === 'asc' ? 0 : -1
  const walks = parts.flatMap((part) => {
    const bounds = boundsOf(part, query)
    const asked = isFirst ? [bounds.at(first) ?? ALL] : bounds
    return asked.map((bound) => walkOf(part, bound, query, limit))
  })
  return pageRows([pageTable(walks, query, { limit, overlap })], query, columns)
}

/** Where the walks of a part begin: an order with unknown keys is two walks, that of the unknown ones first. */
export function boundsOf(part: WalkPart, query: PageQuery): Statement[] {
  const keys = keysOf(query).slice(part.fixedKeys)
  const { position } = query
  const isAfter = part.after && position !== undefined
  const tail = isAfter ? { ...position, keys: position.keys.slice(part.fixedKeys) } : undefined
  const bounds = keysetBounds(keys, directionOf(query), query.filter, tail)
  return part.unknownOnly === true ? bounds.slice(0, 1) : bounds
}

function walkOf(part: WalkPart, bound: Statement, query: PageQuery, limit: number): Statement {
  const source =
    part.entries === undefined ? openWalk(part, bound, query, limit) : boundedWalk(part, bound, query, limit)
  return branchTable(part, source, query, limit)
}

/** As many entries as it takes. The offset keeps the planner from another index, whose entries it would have to sort. */
function openWalk(part: WalkPart, bound: Statement, query: PageQuery, limit: number): Statement {
  const keys = [...keysOf(query).map(({ column }) => column), 'id']
  const asked = conditionsOf(query.filter, fieldsOf(part.residual))
  const needed = [...new Set([...keys, ...columnsOf(part.residual, query)])].join(', ')
  const walked = joined(
    [text(`select ${needed} from payments`), whereOf(part, [bound], query), orderOf(part, query)],
    '\n',
  )
  const selected = `select ${keys.join(', ')}, false as cut from (\n`
  const fence = asked.length === 0 ? '' : ' offset 0'
  return joined([joined([walked], '', selected, `${fence}\n) walked`), whereAll(asked), text(` limit ${limit}`)], '')
}

function whereAll(conditions: readonly Statement[]): Statement {
  return conditions.length === 0 ? text('') : joined(conditions, ' and ', '\nwhere ')
}

/** The rows of a branch that has nothing else to ask, by their keys, in the order of the answer and without an end. */
export function branchRows(part: WalkPart, bound: Statement, query: PageQuery): Statement {
  const keys = [...keysOf(query).map(({ column }) => column), 'id'].join(', ')
  return joined([text(`select ${keys} from payments`), whereOf(part, [bound], query), orderOf(part, query)], '\n')
}

/** No more entries than the branch says; the last of them is returned whether it matches or not, and marked. */
function boundedWalk(part: WalkPart, bound: Statement, query: PageQuery, limit: number): Statement {
  const keys = [...keysOf(query).map(({ column }) => column), 'id']
  const needed = [...new Set([...keys, ...columnsOf(part.residual, query)])].join(', ')
  const order = orderOf(part, query)
  const walked = joined(
    [
      joined([order], '', `select ${needed}, row_number() over (`, ') as nth from payments'),
      whereOf(part, [bound], query),
      order,
    ],
    '\n',
    '',
    ' limit d.entries',
  )
  const asked = conditionsOf(query.filter, fieldsOf(part.residual))
  const last = text('nth = d.entries')
  const kept = asked.length === 0 ? text('') : joined([last, joined(asked, ' and ', '(', ')')], ' or ', '\nwhere ')
  return joined(
    [
      joined([walked], '', `select ${keys.join(', ')}, nth = d.entries as cut from (\n`, '\n) walked'),
      kept,
      text(` limit ${limit}`),
    ],
    '',
  )
}

function whereOf(part: WalkPart, further: readonly Statement[], { filter }: PageQuery): Statement {
  const within = conditionsOf(filter, fieldsOf(part.within))
  const asked = [accountIs(filter.accountId), ...branchConditions(part), ...within, ...further]
  return joined(
    asked.filter((condition) => condition !== ALL),
    ' and ',
    'where ',
  )
}

/** Without "nulls first": what an index gives in its own order, and unknown keys are a walk of their own. */
function orderOf({ fixedKeys }: WalkPart, query: PageQuery): Statement {
  const keys = keysOf(query).slice(fixedKeys)
  return text(
    orderBy(
      keys.map((key) => ({ ...key, nullable: false })),
      directionOf(query),
    ),
  )
}
