import { type PaymentFilter, type TextReading } from '../../filter/payment-filter.ts'
import {
  amountColumns,
  type FilterField,
  filterFields,
  readingColumns,
  type SortKey,
  type ValueKind,
} from '../../filter/search-fields.ts'
import type { SortOrder } from '../../filter/search-input.ts'
import {
  ALL,
  accountIs,
  conditionsOf,
  joined,
  keysetBounds,
  named,
  noneOf,
  oneOf,
  orderBy,
  type PageQuery,
  type Statement,
  text,
} from '../payment-query.ts'
import { pageRows } from './page-rows.ts'
import { directionOf, keysOf } from './shape-query.ts'

/**
 * Reads the next rows in the direction of the walk: of a backward walk the nearest first.
 *
 * The keys are walked first and the wide rows fetched afterwards by primary key. Keyset bounds are row values, which an index
 * answers at any depth.
 */
export function plainStatement(query: PageQuery, columns: readonly string[]): Statement {
  const { filter, position, rows } = query
  const keys = keysOf(query)
  const direction = directionOf(query)
  const source = sourceOf(filter)
  const walks = keysetBounds(keys, direction, filter, position).flatMap((bound) =>
    source.branches.map((branch) => walk({ from: source.from, conditions: [...branch, bound], keys, direction, rows })),
  )
  const page = walks.length === 1 ? joined(walks, '') : merge(walks, keys, direction, rows)
  const cut = joined([page], '', 'select *, false as cut from (\n', '\n) walked')
  return pageRows([...source.tables, named('page', cut)], query, columns)
}

interface Source {
  readonly tables: readonly Statement[]
  readonly from: string
  /** Disjoint sets of conditions; each is walked by itself. */
  readonly branches: readonly (readonly Statement[])[]
}

/**
 * Where keys are walked: all payments of the account, or the few that an identifier names, which are looked up first so that no order
 * is ever walked in search of them.
 */
function sourceOf(filter: PaymentFilter): Source {
  const account = accountIs(filter.accountId)
  const point = filterFields.filter((field) => isPoint(field, filter))
  const lookups = conditionsOf(filter, point)
  if (lookups.length > 0) {
    const lookup = joined([account, ...lookups], ' and ', `select ${keyColumns.join(', ')} from payments\nwhere `)
    const rest = conditionsOf(
      filter,
      filterFields.filter((field) => !point.includes(field)),
    )
    return { tables: [named('named', lookup, 'materialized ')], from: 'named', branches: [rest] }
  }
  return { tables: [], from: 'payments', branches: splitBranches(filter).map((branch) => [account, ...branch]) }
}

/** The conditions of all filters, once for each column of those that are walked column by column. */
function splitBranches(filter: PaymentFilter): Statement[][] {
  const splits = filterFields.map((field) => [field, splitOf(field, filter)] as const)
  const whole = conditionsOf(
    filter,
    splits.flatMap(([field, split]) => (split === undefined ? [field] : [])),
  )
  return splits
    .flatMap(([, split]) => split ?? [])
    .reduce(
      (branches, split) => branches.flatMap((branch) => disjoint(split).map((part) => [...branch, ...part])),
      [whole],
    )
}

/** Columns any of which is to hold any of the values. */
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

/** Payer is W; payee is W but payer is not: together they are all, and none is in two. */
function disjoint({ columns, value, values }: Split): Statement[][] {
  return columns.map((column, at) => [
    oneOf(column, value, values),
    ...columns.slice(0, at).map((earlier) => noneOf(earlier, value, values)),
  ])
}

/** Whether the filter names few payments, which are looked up first. */
function isPoint(field: FilterField, { q }: PaymentFilter): boolean {
  return field.kind === 'text' ? q?.some(isWallet) === false : field.kind === 'list' && field.point === true
}

function isWallet({ as }: TextReading): boolean {
  return as === 'walletAddress'
}

interface Walk {
  readonly from: string
  readonly conditions: readonly Statement[]
  readonly keys: readonly SortKey[]
  readonly direction: SortOrder
  readonly rows: number
}

function walk({ from, conditions, keys, direction, rows }: Walk): Statement {
  const asked = conditions.filter((condition) => condition !== ALL)
  return joined(
    [
      text(`select ${[...keys.map((key) => key.column), 'id'].join(', ')} from ${from}`),
      ...(asked.length === 0 ? [] : [joined(asked, ' and ', 'where ')]),
      // without "nulls first": what an index gives in its own order, and unknown keys are a walk of their own
      text(
        orderBy(
          keys.map((key) => ({ ...key, nullable: false })),
          direction,
        ),
      ),
      { sql: 'limit ?', bindings: [rows] },
    ],
    '\n',
  )
}

function merge(walks: readonly Statement[], keys: readonly SortKey[], direction: SortOrder, rows: number): Statement {
  const union = joined(walks, ')\nunion all\n(', 'select * from ((', ')) as walks\n')
  return joined([union, text(`${orderBy(keys, direction)}\n`), { sql: 'limit ?', bindings: [rows] }], '')
}

/** What the walk over looked-up payments needs of them: every column of the field table. */
const keyColumns = [
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
