import type { CurrencyMatch } from '../../chains/resolve-names.ts'
import { allOf, anyOf, raw, type Statement, timeText } from '../../postgres/statement.ts'
import { amountBasis, type PaymentFilter, pairsByKey } from '../filter/payment-filter.ts'
import type { TextReading } from '../filter/read-free-text.ts'
import {
  amountColumns,
  type ColumnType,
  type FilterField,
  type FilterName,
  filterFields,
  readingColumns,
  turnedField,
  type ValueKind,
} from '../filter/search-fields.ts'

/** From a filter to the conditions of a `where`. Columns come from the table in `search-fields.ts`. */

/** Every query asks for one account's rows. */
export function accountIs(accountId: number): Statement {
  return raw('account_id = ?', [accountId])
}

/** All filters as one condition. Columns have no table name. */
export function matchCondition(filter: PaymentFilter): Statement {
  return allOf(filterFields.flatMap((field) => conditionOf(field, filter)))
}

/** The same of stored rows, which may be many: pairs are looked up in their index. */
export function storedCondition(filter: PaymentFilter): Statement {
  const { metadata: _, ...others } = filter
  const lookup = 'id in (select id from payment_metadata where account_id = ? and ?)'
  const ofKey = (pairs: readonly string[]) => raw(lookup, [filter.accountId, isOneOf('pair', 'text', pairs)])
  return allOf([matchCondition(others), ...pairsByKey(filter).map(ofKey)])
}

/** The conditions of some filters; a filter that was not given has none. */
export function conditionsOfNamed(filter: PaymentFilter, names: readonly FilterName[]): Statement[] {
  return fieldsNamed(names).flatMap((field) => conditionOf(field, filter))
}

/** The conditions of some filters as they are checked row by row, where no index answers them: a long list is hashed, and not compared one by one. */
export function checksOfNamed(filter: PaymentFilter, names: readonly FilterName[]): Statement[] {
  return fieldsNamed(names).flatMap((field) => {
    const values = field.kind === 'list' ? (filter[field.name] ?? []) : []
    if (field.kind !== 'list' || values.length <= MAX_COMPARED) return conditionOf(field, filter)
    const list = bindingsOf(field.value, values)
    const isListed = (column: string) => raw(`(${column} in (select unnest(?::${field.value.type}[]))) is true`, [list])
    return [anyOf(field.columns.map(isListed))]
  })
}

const MAX_COMPARED = 20

/** The columns that the conditions of some filters look at. */
export function columnsOf(filter: PaymentFilter, names: readonly FilterName[]): string[] {
  return fieldsNamed(names).flatMap((field): string | readonly string[] => {
    switch (field.kind) {
      case 'date':
      case 'amount':
        return boundColumn(field, filter)
      case 'currency':
        return ['currency_symbol', 'currency', 'invoice_currency']
      case 'list':
        return field.columns
      case 'exclusion':
        return columnsOf(filter, [turnedField(field).name])
      case 'prefix':
      case 'pairs':
        return field.column
      case 'zone':
        return []
      case 'text':
        return Object.values(readingColumns).flatMap(({ columns }) => columns)
    }
  })
}

/** In the order of the table, whatever the order of the names: equal sets of filters then give equal texts. */
function fieldsNamed(names: readonly FilterName[]): FilterField[] {
  return filterFields.filter(({ name }) => names.includes(name))
}

function boundColumn({ column }: Extract<FilterField, { kind: 'date' | 'amount' }>, filter: PaymentFilter): string {
  return column === 'basis' ? amountColumns[amountBasis(filter)].column : column
}

/** None for a filter that was not given; never undefined, so that a kind of filter without a case does not compile. */
function conditionOf(field: FilterField, filter: PaymentFilter): Statement[] {
  switch (field.kind) {
    case 'date':
      return ifGiven(filter[field.name], (ms) =>
        raw(`${field.column} ${field.operator} ?::timestamptz`, [timeText(ms)]),
      )
    case 'amount': {
      const column = boundColumn(field, filter)
      return ifGiven(filter[field.name], (amount) => raw(`${column} ${field.operator} ?::numeric`, [amount]))
    }
    case 'currency':
      return ifGiven(filter[field.name], currencyCondition)
    case 'list': {
      const { columns, value } = field
      return ifGiven(filter[field.name], (given) => anyOf(columns.map((column) => oneOf(column, value, given))))
    }
    case 'exclusion': {
      const turned = turnedField(field)
      const excluded = conditionOf(turned, { ...filter, [turned.name]: filter[field.name] })
      return excluded.map((condition) => raw('(?) is not true', [condition]))
    }
    case 'prefix':
      return ifGiven(filter[field.name], (prefix) => prefixCondition(field.column, prefix))
    case 'pairs':
      return pairsByKey(filter).map(pairsCondition)
    case 'zone':
      return []
    case 'text':
      return ifGiven(filter[field.name], textCondition)
  }
}

function ifGiven<T>(value: T | undefined, conditionOf: (value: T) => Statement): Statement[] {
  return value === undefined ? [] : [conditionOf(value)]
}

/** `(id = ? or reference = ?)`: one index lookup for each column that may hold the text. */
function textCondition(readings: readonly TextReading[]): Statement {
  const lookups = readings.flatMap(({ as, value }) => {
    const { columns, value: kind } = readingColumns[as]
    return columns.map((column) => oneOf(column, kind, [value]))
  })
  return anyOf(lookups)
}

/** `(metadata->>'channel' = any(…)) is true` */
function pairsCondition(pairs: readonly string[]): Statement {
  const [key = ''] = pairs[0]?.split('=', 1) ?? []
  const values = pairs.map((pair) => pair.slice(key.length + 1))
  return raw('(metadata->>?::text = any(?::text[])) is true', [key, values])
}

/** The texts that begin with a prefix, as a range of the bytewise order, which is that of code points. */
function prefixCondition(column: string, prefix: string): Statement {
  const end = afterPrefix(prefix)
  if (end === undefined) return raw(`${column} >= ?::text`, [prefix])
  return raw(`${column} >= ?::text and ${column} < ?::text`, [prefix, end])
}

/** The first text after all that begin with a prefix; undefined where every later text does. */
export function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, (character) => character.codePointAt(0) ?? 0)
  const last = points.findLastIndex((point) => point < MAX_CODE_POINT)
  const point = points[last]
  if (point === undefined) return undefined
  // surrogates are no characters
  const next = point === 0xd7ff ? 0xe000 : point + 1
  return String.fromCodePoint(...points.slice(0, last), next)
}

const MAX_CODE_POINT = 0x10ffff

/** `payer = ?::bytea`, or `payer = any(?::bytea[])` for several values. */
function oneOf(column: string, kind: ValueKind, values: readonly string[]): Statement {
  return column === 'refunds' ? anyRefundBy(values) : isOneOf(column, kind.type, bindingsOf(kind, values))
}

function bindingsOf(kind: ValueKind, values: readonly string[]): (string | number)[] {
  return values.map((value) => kind.bind(value))
}

/** A single value is compared with `=`, because only then are the entries of an index in the order of its next column. */
function isOneOf(column: string, type: ColumnType, values: readonly (string | number)[]): Statement {
  const [only] = values
  if (values.length === 1 && only !== undefined) return raw(`${column} = ?::${type}`, [only])
  return raw(`${column} = any(?::${type}[])`, [values])
}

/** Whether an entry of `refunds` has one of these hashes, in the words of its index. */
function anyRefundBy(hashes: readonly string[]): Statement {
  const path = hashes.map((hash) => `$[*].txHash == "${hash}"`).join(' || ')
  return raw(`(refunds <> '[]' and refunds @@ ?::jsonpath)`, [path])
}

/** `(payer is null or payer <> all(?::bytea[]))` */
export function noneOf(column: string, kind: ValueKind, values: readonly string[]): Statement {
  return raw(`(${column} is null or ${column} <> all(?::${kind.type}[]))`, [bindingsOf(kind, values)])
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
export function invoiceSymbolCondition(symbol: string): Statement {
  return raw(
    `(invoice_currency >= :from::text and invoice_currency < :to::text
  and strpos(substr(invoice_currency, char_length(:from::text) + 1), '-') = 0)`,
    { from: `${symbol}-`, to: `${symbol}.` },
  )
}
