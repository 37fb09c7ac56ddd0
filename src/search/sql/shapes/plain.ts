import { bind, commonTable, join, raw, type Statement, sql, where } from '../../../postgres/statement.ts'
import type { PaymentFilter } from '../../filter/payment-filter.ts'
import type { TextReading } from '../../filter/read-free-text.ts'
import {
  amountColumns,
  type FilterField,
  filterFields,
  readingColumns,
  type ValueKind,
} from '../../filter/search-fields.ts'
import { directionOf, keysOf, type PageQuery } from '../../page/page-query.ts'
import { accountIs, conditionsOf, noneOf, oneOf } from '../filter-conditions.ts'
import { keyRanges, orderOfAnswer, orderOfIndex } from '../keyset.ts'
import { keyColumnsOf, type PageRequest, pageRows } from './page-rows.ts'

/**
 * The page with all conditions in one statement. It needs no statistics and is always whole, whatever it costs.
 *
 * Identifiers (a transaction, a request, a reference) name few payments: these are looked up first, and everything else is asked of them
 * alone, so that no order is walked in search of them. A wallet is walked twice, as payer and as payee, since no index has both.
 *
 * @example
 * with named as materialized (select id, … from payments where account_id = ? and reference = ?),
 * page as (
 *   select *, false as cut from (
 *     select timestamp, id from named where status = ? order by timestamp desc, id desc limit ?
 *   ) walked)
 */
export function plainStatement(request: PageRequest): Statement {
  const { query } = request
  const { filter, position } = query
  const source = sourceOf(filter)
  const walks = keyRanges(keysOf(query), directionOf(query), filter, position).flatMap((range) =>
    source.branches.map((branch) => walk(source.from, [...branch, range], query)),
  )
  const page = walks.length === 1 ? join(walks, '') : merge(walks, query)
  const marked = sql`select *, false as cut from (\n${page}\n) walked`
  return pageRows([...source.tables, commonTable('page', marked)], request)
}

interface Source {
  readonly tables: readonly Statement[]
  readonly from: string
  /** Sets of conditions that no payment meets two of; each is walked by itself. */
  readonly branches: readonly (readonly Statement[])[]
}

function sourceOf(filter: PaymentFilter): Source {
  const account = accountIs(filter.accountId)
  const identifiers = filterFields.filter((field) => isIdentifier(field, filter))
  const lookups = conditionsOf(filter, identifiers)
  if (lookups.length > 0) {
    const named = sql`select ${raw(LOOKED_UP_COLUMNS.join(', '))} from payments${where([account, ...lookups])}`
    const others = filterFields.filter((field) => !identifiers.includes(field))
    return {
      tables: [commonTable('named', named, 'materialized')],
      from: 'named',
      branches: [conditionsOf(filter, others)],
    }
  }
  return { tables: [], from: 'payments', branches: splitBranches(filter).map((branch) => [account, ...branch]) }
}

/** The conditions of all filters, once for each column that a filter is split by. */
function splitBranches(filter: PaymentFilter): Statement[][] {
  const splits = filterFields.map((field) => [field, splitOf(field, filter)] as const)
  const unsplit = conditionsOf(
    filter,
    splits.flatMap(([field, split]) => (split === undefined ? [field] : [])),
  )
  return splits
    .flatMap(([, split]) => split ?? [])
    .reduce(
      (branches, split) => branches.flatMap((branch) => disjoint(split).map((part) => [...branch, ...part])),
      [unsplit],
    )
}

/** A filter by which a payment matches when any of the columns holds any of the values. */
interface Split {
  readonly columns: readonly string[]
  readonly value: ValueKind
  readonly values: readonly string[]
}

function splitOf(field: FilterField, filter: PaymentFilter): Split | undefined {
  if (field.kind === 'text') {
    const wallet = filter.q?.find(isWallet)
    return wallet && { ...readingColumns.walletAddress, values: [wallet.value] }
  }
  if (field.kind !== 'list' || field.split !== true) return undefined
  const values = filter[field.name]
  return values && { ...field, values }
}

/** The payer is W; the payee is W and the payer is not. Together that is every payment of W, and none is in both. */
function disjoint({ columns, value, values }: Split): Statement[][] {
  return columns.map((column, at) => [
    oneOf(column, value, values),
    ...columns.slice(0, at).map((earlier) => noneOf(earlier, value, values)),
  ])
}

function isIdentifier(field: FilterField, { q }: PaymentFilter): boolean {
  return field.kind === 'text' ? q?.some(isWallet) === false : field.kind === 'list' && field.isIdentifier === true
}

function isWallet({ as }: TextReading): boolean {
  return as === 'walletAddress'
}

function walk(from: string, conditions: readonly Statement[], query: PageQuery): Statement {
  return sql`select ${raw(keyColumnsOf(query).join(', '))} from ${raw(from)}${where(conditions)}
${orderOfIndex(keysOf(query), directionOf(query))}
limit ${bind(query.rows)}`
}

function merge(walks: readonly Statement[], query: PageQuery): Statement {
  return sql`select * from ((${join(walks, ')\nunion all\n(')})) as walks
${orderOfAnswer(keysOf(query), directionOf(query))}
limit ${bind(query.rows)}`
}

/** What the walk over looked-up payments may ask of them: every column that filters and orders know. */
const LOOKED_UP_COLUMNS = [
  ...new Set([
    'id',
    ...filterFields.flatMap((field) => (field.kind === 'list' ? field.columns : [])),
    ...Object.values(amountColumns).map((key) => key.column),
    'timestamp',
    'currency',
    'currency_symbol',
    'invoice_currency',
  ]),
]
