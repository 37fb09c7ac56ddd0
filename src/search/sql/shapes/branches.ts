import { type Binding, bind, EMPTY, join, raw, type Statement, sql } from '../../../postgres/statement.ts'
import { directionOf, keysOf, type PageQuery } from '../../page/page-query.ts'
import { type BranchColumn, branchTypes, type Part, type WalkPart } from '../../plan/search-plan.ts'
import { orderTerms } from '../keyset.ts'
import { keyColumnsOf, rowLimit } from './page-rows.ts'

/**
 * Branches: the tuples of values that the leading columns of an index are compared with, such as (payer, status). They go to the server as
 * one array a column and are the table `d` of the statement, so that its text is the same for one branch or a hundred.
 */

/** A month of 30 days, written as in the index by month. */
const MONTH = `date_bin('30 days', timestamp, '2000-01-01 00:00:00+00'::timestamptz)`

/** What a branch asks of a row: `payer = d.payer and status = d.status`. */
export function branchConditions({ branches, fromElsewhere }: Part): Statement[] {
  const equal = (branches?.columns ?? []).map(equalsBranch)
  return fromElsewhere === true ? [...equal, sql`source_network <> network`] : equal
}

/** `payer = d.payer`; of a month the expression that its index has. */
export function equalsBranch(column: BranchColumn): Statement {
  return raw(`${column === 'month' ? MONTH : column} = d.${column}`)
}

/** A column of the table `d`. */
export interface BranchArray {
  readonly name: string
  readonly type: string
  readonly values: Binding
}

/** The values of each branch column. */
export function branchArrays({ branches }: Part): BranchArray[] {
  return (branches?.columns ?? []).map((name, at) => ({
    name,
    type: branchTypes[name],
    values: (branches?.tuples ?? []).map((tuple) => tuple[at]) as Binding,
  }))
}

/** `unnest(?::bytea[], ?::smallint[])` */
export function unnest(arrays: readonly BranchArray[]): Statement {
  return sql`unnest(${join(
    arrays.map(({ type, values }) => bind(values, `${type}[]`)),
    ', ',
  )})`
}

/** `payer, status` */
export function namesOf(arrays: readonly BranchArray[]): Statement {
  return raw(arrays.map(({ name }) => name).join(', '))
}

/**
 * Runs a select once for each branch of a walk; the select alone where the part has no branches.
 *
 * @example
 * select k.timestamp, k.id, k.cut from unnest(?::bytea[], ?::smallint[]) as d(payer, status)
 * cross join lateral (…) k
 */
export function forEachBranch(part: WalkPart, select: Statement, query: PageQuery): Statement {
  const { entryLimits, inOrder } = part
  const limits = entryLimits && { name: 'entries', type: 'int', values: [...entryLimits] }
  const arrays = [...branchArrays(part), ...(limits === undefined ? [] : [limits])]
  if (arrays.length === 0) return select
  const selected = [...keyColumnsOf(query), 'cut'].map((name) => `k.${name}`).join(', ')
  return sql`select ${raw(selected)} from ${inOrder === true ? orderedBranches(arrays) : sql`${unnest(arrays)} as d(${namesOf(arrays)})`}
cross join lateral (
${select}
) k${inOrder === true ? branchByBranch(part, query) : EMPTY}`
}

/** The branches in the order in which they are given. */
function orderedBranches(arrays: readonly BranchArray[]): Statement {
  return sql`(select * from ${unnest(arrays)} with ordinality as b(${namesOf(arrays)}, nth) order by nth) d`
}

/** With the branches in this order, PostgreSQL stops at the branch that fills the page. */
function branchByBranch({ fixedKeys }: WalkPart, query: PageQuery): Statement {
  const within = orderTerms(keysOf(query).slice(fixedKeys), directionOf(query), 'k.')
  return raw(`\norder by d.nth, ${within} limit ${rowLimit(query)}`)
}
