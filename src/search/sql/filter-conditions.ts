import { allOf, anyOf, bind, bindTime, join, raw, type Statement, sql, TRUE } from '../../postgres/statement.ts'
import {
  amountBasis,
  type CurrencyMatch,
  type FilterName,
  type PaymentFilter,
  type TextReading,
} from '../filter/payment-filter.ts'
import {
  amountColumns,
  type BoundField,
  type ColumnType,
  type FilterField,
  filterFields,
  readingColumns,
  type ValueKind,
} from '../filter/search-fields.ts'

/** From a filter to the conditions of a `where`. Columns come from the table in `search-fields.ts`. */

/** Every query asks for one account's rows. */
export function accountIs(accountId: number): Statement {
  return sql`account_id = ${bind(accountId)}`
}

/** All filters as one condition, `true` where none is given. Columns have no table name. */
export function matchCondition(filter: PaymentFilter): Statement {
  return join([TRUE, ...conditionsOf(filter, filterFields)], ' and ')
}

/** The conditions of some filters; a filter that was not given has none. */
export function conditionsOf(filter: PaymentFilter, fields: readonly FilterField[]): Statement[] {
  return fields.flatMap((field) => conditionOf(field, filter) ?? [])
}

/** The same, of filters by their names. */
export function conditionsOfNamed(filter: PaymentFilter, names: readonly FilterName[]): Statement[] {
  return conditionsOf(filter, fieldsNamed(names))
}

/** The columns that the conditions of some filters look at. */
export function columnsOf(filter: PaymentFilter, names: readonly FilterName[]): string[] {
  return fieldsNamed(names).flatMap((field) => {
    switch (field.kind) {
      case 'bound':
        return boundColumn(field, filter)
      case 'currency':
        return ['currency_symbol', 'currency', 'invoice_currency']
      case 'list':
        return field.columns
      case 'text':
        return ['id', 'payer', 'payee', 'tx_hash', 'source_tx_hash', 'request_id', 'payment_reference', 'reference']
    }
  })
}

/** In the order of the table, whatever the order of the names: equal sets of filters then give equal texts. */
function fieldsNamed(names: readonly FilterName[]): FilterField[] {
  return filterFields.filter(({ name }) => names.includes(name))
}

function boundColumn({ column }: BoundField, filter: PaymentFilter): string {
  return column === 'basis' ? amountColumns[amountBasis(filter)].column : column
}

function conditionOf(field: FilterField, filter: PaymentFilter): Statement | undefined {
  switch (field.kind) {
    case 'bound': {
      const value = filter[field.name]
      if (value === undefined) return undefined
      const bound = typeof value === 'number' ? bindTime(value) : bind(value, field.type)
      return sql`${raw(boundColumn(field, filter))} ${raw(field.operator)} ${bound}`
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

/** `(id = ? or reference = ?)`: one index lookup for each column that may hold the text. */
function textCondition(readings: readonly TextReading[]): Statement {
  const lookups = readings.flatMap(({ as, value }) => {
    const { columns, value: kind } = readingColumns[as]
    return columns.map((column) => oneOf(column, kind, [value]))
  })
  return anyOf(lookups)
}

/** `payer = ?::bytea`, or `payer = any(?::bytea[])` for several values. */
export function oneOf(column: string, { type, bind: toBinding }: ValueKind, values: readonly string[]): Statement {
  return isOneOf(column, type, values.map(toBinding))
}

/** A single value is compared with `=`, because only then are the entries of an index in the order of its next column. */
function isOneOf(column: string, type: ColumnType, values: readonly (string | number | Buffer)[]): Statement {
  const [only] = values
  if (values.length === 1 && only !== undefined) return sql`${raw(column)} = ${bind(only, type)}`
  return sql`${raw(column)} = any(${bind(values, `${type}[]`)})`
}

/** `(payer is null or payer <> all(?::bytea[]))` */
export function noneOf(column: string, { type, bind: toBinding }: ValueKind, values: readonly string[]): Statement {
  const name = raw(column)
  return sql`(${name} is null or ${name} <> all(${bind(values.map(toBinding), `${type}[]`)}))`
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

/** `currency_symbol = ? and currency = ?`: the symbol even where one id is meant, because the index by amount begins with it. */
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

/**
 * `SYMBOL-CHAIN` for any chain, as a range of the bytewise order, where `.` follows `-`. The name of a chain has no `-`, so a second one
 * belongs to another, longer symbol.
 */
function invoiceSymbolCondition(symbol: string): Statement {
  const prefix = bind(`${symbol}-`, 'text')
  return sql`(invoice_currency >= ${prefix} and invoice_currency < ${bind(`${symbol}.`, 'text')}
  and strpos(substr(invoice_currency, char_length(${prefix}) + 1), '-') = 0)`
}
