import { amountBasis, type CurrencyMatch, type PaymentFilter, type TextReading } from '../filter/payment-filter.ts'
import {
  amountColumns,
  type ColumnType,
  type FilterField,
  filterFields,
  readingColumns,
  type SortKey,
  type ValueKind,
} from '../filter/search-fields.ts'
import type { SortBy, SortOrder } from '../filter/search-input.ts'
import type { PagePosition } from '../page/search-cursor.ts'

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

/** Counts the matches, but no more than `cap`. */
export function countStatement(filter: PaymentFilter, cap: number): Statement {
  const matches = joined([matchStatement(filter), { sql: 'limit ?', bindings: [cap] }], ' ')
  return joined([matches], '', 'select count(*) as count from (', ') as matches')
}

function matchStatement(filter: PaymentFilter): Statement {
  return joined(
    [accountIs(filter.accountId), ...conditionsOf(filter, filterFields)],
    ' and ',
    'select 1 from payments where ',
  )
}

/** What a row of the account has to be to match, as one condition on columns that stand without a table. */
export function matchCondition(filter: PaymentFilter): Statement {
  return joined([ALL, ...conditionsOf(filter, filterFields)], ' and ')
}

export function conditionsOf(filter: PaymentFilter, fields: readonly FilterField[]): Statement[] {
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
export function oneOf(column: string, { type, bind }: ValueKind, values: readonly string[]): Statement {
  return isOneOf(column, type, values.map(bind))
}

function isOneOf(column: string, type: ColumnType, values: readonly (string | number | Buffer)[]): Statement {
  const [only] = values
  if (values.length === 1 && only !== undefined) return { sql: `${column} = ?::${type}`, bindings: [only] }
  return { sql: `${column} = any(?::${type}[])`, bindings: [values] }
}

export function noneOf(column: string, { type, bind }: ValueKind, values: readonly string[]): Statement {
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
export function keysetBounds(
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

export function orderBy(keys: readonly SortKey[], direction: SortOrder, prefix = ''): string {
  const nulls = direction === 'asc' ? ' nulls first' : ' nulls last'
  const terms = keys.map((key) => `${prefix}${key.column} ${direction}${key.nullable ? nulls : ''}`)
  return `order by ${[...terms, `${prefix}id ${direction}`].join(', ')}`
}

export const ALL: Statement = { sql: 'true', bindings: [] }

export function accountIs(accountId: number): Statement {
  return { sql: 'account_id = ?', bindings: [accountId] }
}

export function named(name: string, { sql, bindings }: Statement, how = ''): Statement {
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

export function joined(parts: readonly Statement[], separator: string, before = '', after = ''): Statement {
  return {
    sql: before + parts.map((part) => part.sql).join(separator) + after,
    bindings: parts.flatMap((part) => part.bindings),
  }
}

export function text(sql: string): Statement {
  return { sql, bindings: [] }
}

export function opposite(order: SortOrder): SortOrder {
  return order === 'asc' ? 'desc' : 'asc'
}
