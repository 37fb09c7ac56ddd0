import { amountBasis, type CurrencyMatch, type PaymentFilter, type TextReading } from './payment-filter.ts'
import type { PagePosition } from './search-cursor.ts'
import {
  amountColumns,
  type ColumnType,
  type FilterField,
  filterFields,
  readingColumns,
  type SortKey,
  sortKeysOf,
  type ValueKind,
} from './search-fields.ts'
import type { SortBy, SortOrder } from './search-input.ts'

/** SQL whose values stand apart; columns come from the field table, values never enter the text. */
export interface Statement {
  readonly sql: string
  readonly bindings: readonly Binding[]
}

export type Binding = string | number | Buffer | null | readonly (string | number | Buffer)[]

/** Which rows of an order to read. */
export interface PageQuery {
  readonly filter: PaymentFilter
  readonly sortBy: SortBy
  readonly sortOrder: SortOrder
  readonly position?: PagePosition | undefined
  /** The most rows to read. */
  readonly rows: number
}

/**
 * Reads the next rows in the direction of the walk: of a backward walk the nearest first.
 *
 * The keys are walked first and the wide rows fetched afterwards by primary key. Keyset bounds are row values, which an index
 * answers at any depth.
 */
export function pageStatement(query: PageQuery, columns: readonly string[]): Statement {
  const { filter, sortBy, position, rows } = query
  const keys = sortKeysOf(sortBy, amountBasis(filter))
  const direction = position?.direction === 'backward' ? opposite(query.sortOrder) : query.sortOrder
  const source = sourceOf(filter)
  const walks = keysetBounds(keys, direction, filter, position).flatMap((bound) =>
    source.branches.map((branch) => walk({ from: source.from, conditions: [...branch, bound], keys, direction, rows })),
  )
  const page = walks.length === 1 ? joined(walks, '') : merge(walks, keys, direction, rows)
  return joined(
    [
      joined([...source.tables, named('page', page)], ',\n', 'with '),
      text(`select ${columns.map((column) => `p.${column}`).join(', ')}`),
      { sql: 'from page join payments p on p.account_id = ? and p.id = page.id', bindings: [filter.accountId] },
      text(orderBy(keys, direction, 'page.')),
    ],
    '\n',
  )
}

/** Counts the matches, but no more than `cap`. */
export function countStatement(filter: PaymentFilter, cap: number): Statement {
  const matches = joined([matchStatement(filter), { sql: 'limit ?', bindings: [cap] }], ' ')
  return joined([matches], '', 'select count(*) as count from (', ') as matches')
}

/** Asks the planner how many matches it expects. */
export function estimateStatement(filter: PaymentFilter): Statement {
  return joined([matchStatement(filter)], '', 'explain (format json) ')
}

function matchStatement(filter: PaymentFilter): Statement {
  return joined(
    [accountIs(filter.accountId), ...conditionsOf(filter, filterFields)],
    ' and ',
    'select 1 from payments where ',
  )
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

/** What a row of the account has to be to match, as one condition on columns that stand without a table. */
export function matchCondition(filter: PaymentFilter): Statement {
  return joined([ALL, ...conditionsOf(filter, filterFields)], ' and ')
}

/** Whether the filter names few payments, which are looked up first. */
function isPoint(field: FilterField, { q }: PaymentFilter): boolean {
  return field.kind === 'text' ? q?.some(isWallet) === false : field.kind === 'list' && field.point === true
}

function isWallet({ as }: TextReading): boolean {
  return as === 'walletAddress'
}

function conditionsOf(filter: PaymentFilter, fields: readonly FilterField[]): Statement[] {
  return fields.flatMap((field) => conditionOf(field, filter) ?? [])
}

function conditionOf(field: FilterField, filter: PaymentFilter): Statement | undefined {
  switch (field.kind) {
    case 'bound': {
      const value = filter[field.name]
      if (value === undefined) return undefined
      const column = field.column === 'basis' ? amountColumns[amountBasis(filter)].column : field.column
      const bound = typeof value === 'number' ? new Date(value).toISOString() : value
      return { sql: `${column} ${field.operator} ?::${field.type}`, bindings: [bound] }
    }
    case 'currency': {
      const matches = filter[field.name]
      return matches === undefined ? undefined : currencyCondition(matches)
    }
    case 'list': {
      const values = filter[field.name]
      return values === undefined ? undefined : anyOf(field.columns.map((column) => oneOf(column, field.value, values)))
    }
    case 'text':
      return filter.q === undefined ? undefined : textCondition(filter.q)
  }
}

/** Each column has an index, so that a lookup of all is one of each. */
function textCondition(readings: readonly TextReading[]): Statement {
  const meanings = readings.flatMap(({ as, value }) => {
    const { columns, value: kind } = readingColumns[as]
    return columns.map((column) => oneOf(column, kind, [value]))
  })
  return anyOf(meanings)
}

/** One value is compared with `=`, so that an index keeps its order beyond the column. */
function oneOf(column: string, { type, bind }: ValueKind, values: readonly string[]): Statement {
  return isOneOf(column, type, values.map(bind))
}

function isOneOf(column: string, type: ColumnType, values: readonly (string | number | Buffer)[]): Statement {
  const [only] = values
  if (values.length === 1 && only !== undefined) return { sql: `${column} = ?::${type}`, bindings: [only] }
  return { sql: `${column} = any(?::${type}[])`, bindings: [values] }
}

function noneOf(column: string, { type, bind }: ValueKind, values: readonly string[]): Statement {
  return { sql: `(${column} is null or ${column} <> all(?::${type}[]))`, bindings: [values.map(bind)] }
}

function currencyCondition(matches: readonly CurrencyMatch[]): Statement {
  const payment = matches.filter((match) => match.of === 'payment')
  const invoice = matches.filter((match) => match.of === 'invoice')
  const invoiceIds = invoice.flatMap((match) => match.id ?? [])
  return anyOf([
    ...(payment.length === 0 ? [] : [paymentCurrencyCondition(payment)]),
    ...(invoiceIds.length === 0 ? [] : [isOneOf('invoice_currency', 'text', invoiceIds)]),
    ...invoice.filter((match) => match.id === undefined).map((match) => invoiceSymbolCondition(match.symbol)),
  ])
}

/** The symbol is always asked for, since the index by amount begins with it. */
function paymentCurrencyCondition(matches: readonly CurrencyMatch[]): Statement {
  const symbols = [...new Set(matches.map((match) => match.symbol))]
  const wholeSymbols = matches.flatMap((match) => (match.id === undefined ? [match.symbol] : []))
  const ids = matches.flatMap((match) => match.id ?? [])
  const ofSymbols = isOneOf('currency_symbol', 'text', symbols)
  if (ids.length === 0) return ofSymbols
  const exactly = [
    ...(wholeSymbols.length === 0 ? [] : [isOneOf('currency_symbol', 'text', wholeSymbols)]),
    isOneOf('currency', 'text', ids),
  ]
  return allOf([ofSymbols, anyOf(exactly)])
}

/** `SYMBOL-CHAIN` for any chain, as a range of the bytewise order (`.` follows `-`); a chain's name has no `-`. */
function invoiceSymbolCondition(symbol: string): Statement {
  return {
    sql: `(invoice_currency >= ?::text and invoice_currency < ?::text
  and strpos(substr(invoice_currency, char_length(?::text) + 1), '-') = 0)`,
    bindings: [`${symbol}-`, `${symbol}.`, `${symbol}-`],
  }
}

/**
 * Where each walk begins. An order with unknown keys is two walks, one of them by id alone: unknown stands first ascending and last
 * descending, and no row value compares with it.
 */
function keysetBounds(
  keys: readonly SortKey[],
  direction: SortOrder,
  filter: PaymentFilter,
  position: PagePosition | undefined,
): Statement[] {
  const [key] = keys
  if (key === undefined || !key.nullable) return [position === undefined ? ALL : beyond(keys, direction, position)]
  const atUnknown = position !== undefined && position.keys[0] === null
  const hasRange = filter.minAmount !== undefined || filter.maxAmount !== undefined
  const unknown = { sql: `${key.column} is null`, bindings: [] }
  const known = { sql: `${key.column} is not null`, bindings: [] }
  const unknownIsBehind = position !== undefined && !atUnknown && direction === 'asc'
  const knownIsBehind = atUnknown && direction === 'desc'
  return [
    ...(unknownIsBehind || hasRange ? [] : [allOf([unknown, atUnknown ? beyond([], direction, position) : ALL])]),
    ...(knownIsBehind
      ? []
      : [allOf([known, position !== undefined && !atUnknown ? beyond(keys, direction, position) : ALL])]),
  ]
}

function beyond(keys: readonly SortKey[], direction: SortOrder, position: PagePosition): Statement {
  const operator = `${direction === 'asc' ? '>' : '<'}${position.inclusive ? '=' : ''}`
  const columns = [...keys.map((key) => key.column), 'id']
  const places = [...keys.map((key) => `?::${key.type}`), '?::uuid']
  return {
    sql: `(${columns.join(', ')}) ${operator} (${places.join(', ')})`,
    bindings: [...(keys.length === 0 ? [] : position.keys), position.id],
  }
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

function orderBy(keys: readonly SortKey[], direction: SortOrder, prefix = ''): string {
  const nulls = direction === 'asc' ? ' nulls first' : ' nulls last'
  const terms = keys.map((key) => `${prefix}${key.column} ${direction}${key.nullable ? nulls : ''}`)
  return `order by ${[...terms, `${prefix}id ${direction}`].join(', ')}`
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

const ALL: Statement = { sql: 'true', bindings: [] }

function accountIs(accountId: number): Statement {
  return { sql: 'account_id = ?', bindings: [accountId] }
}

function named(name: string, { sql, bindings }: Statement, how = ''): Statement {
  return { sql: `${name} as ${how}(\n${sql}\n)`, bindings }
}

function anyOf(parts: readonly Statement[]): Statement {
  const [only] = parts
  if (only === undefined) return { sql: 'false', bindings: [] }
  return parts.length === 1 ? only : joined(parts, ' or ', '(', ')')
}

function allOf(parts: readonly Statement[]): Statement {
  const asked = parts.filter((part) => part !== ALL)
  return joined(asked, ' and ')
}

function joined(parts: readonly Statement[], separator: string, before = '', after = ''): Statement {
  return {
    sql: before + parts.map((part) => part.sql).join(separator) + after,
    bindings: parts.flatMap((part) => part.bindings),
  }
}

function text(sql: string): Statement {
  return { sql, bindings: [] }
}

function opposite(order: SortOrder): SortOrder {
  return order === 'asc' ? 'desc' : 'asc'
}
