import { type Address, addressToBytes } from '../../src/domain/address.ts'
import { hexToBytes } from '../../src/domain/hex.ts'
import { codeOfType, rankOfStatus } from '../../src/domain/payment.ts'
import { amountBasis, type CurrencyMatch, type PaymentFilter } from '../../src/search/filter/payment-filter.ts'
import type { SortBy, SortOrder } from '../../src/search/filter/search-input.ts'
import type { PagePosition } from '../../src/search/page/search-cursor.ts'

/**
 * Plain SQL: `select … from payments where … order by … limit`, as someone writes it who knows PostgreSQL and these indexes, but reads
 * no statistics of the data and leaves the plan to the planner. The benchmark compares the service with it for speed, the tests for
 * what both find.
 *
 * - The order says no `nulls first` and no `nulls last`, so that an index gives it in both directions.
 * - A later page is a row comparison: `(timestamp, id) < ($1, $2)`.
 * - Unknown amounts come last descending and first ascending, an order that no index has. Known and unknown amounts are therefore a
 *   select each, and the second one reads only as many rows as the first one leaves of the page.
 * - `payer in (…) or payee in (…)` is two selects, since each column has its own index.
 */

/** Which rows of an order to read. */
export interface PlainQuery {
  readonly filter: PaymentFilter
  readonly sortBy: SortBy
  readonly sortOrder: SortOrder
  readonly position?: PagePosition | undefined
  readonly limit: number
}

/** SQL with a `?` for each binding. */
interface Sql {
  readonly sql: string
  readonly bindings: readonly Value[]
}

type Value = string | number | Buffer | null

/** A run of rows in the order of an index. */
interface Run {
  /** What orders them, without the id. */
  readonly keys: readonly string[]
  /** What a row of the run fulfils beside the filter. */
  readonly condition?: Sql | undefined
}

const AMOUNT_COLUMNS = { amount: 'amount', invoiceAmount: 'invoice_amount', amountInUsd: 'amount_in_usd' } as const

/** The statement of a page, nearest row first. A row begins with `columns`; its sort keys may follow. */
export function plainStatement(query: PlainQuery, columns: readonly string[]): Sql {
  const keys = keysOf(query)
  const names = [...new Set([...columns, ...keys, 'id'])].join(', ')
  const [nearer, farther] = runsOf(query, keys).map((run) => selectRun(query, run, names))
  if (nearer === undefined || farther === undefined) return nearer as Sql
  const [key] = keys
  const direction = directionOf(query)
  return {
    sql: `with nearer as materialized (
${nearer.sql}
), farther as (
${farther.sql}
)
select * from (
  select * from nearer
  union all
  select * from (select * from farther limit ${query.limit} - (select count(*) from nearer)) rest
) page order by ${key} ${direction} nulls ${direction === 'asc' ? 'first' : 'last'}, id ${direction}`,
    bindings: [...nearer.bindings, ...farther.bindings],
  }
}

function keysOf({ filter, sortBy }: PlainQuery): readonly string[] {
  return { date: ['timestamp'], status: ['status', 'timestamp'], amount: [amountColumn(filter)] }[sortBy]
}

/** The direction in which rows are read: a page before its position is read backwards. */
function directionOf({ sortOrder, position }: PlainQuery): SortOrder {
  if (position?.direction !== 'backward') return sortOrder
  return sortOrder === 'asc' ? 'desc' : 'asc'
}

/** One run, or, where amounts can be unknown, the two that a page may have rows of, nearest first. */
function runsOf(query: PlainQuery, keys: readonly string[]): Run[] {
  const { filter, sortBy, position } = query
  const [key] = keys
  const isNullable = sortBy === 'amount' && key !== AMOUNT_COLUMNS.amount
  // a range of amounts leaves no unknown ones
  const hasRange = filter.minAmount !== undefined || filter.maxAmount !== undefined
  if (!isNullable || hasRange) return [{ keys, condition: position && beyond(keys, query, position) }]
  const atUnknown = position !== undefined && position.keys[0] === null
  const isKnown = { sql: `${key} is not null`, bindings: [] }
  const isUnknown = { sql: `${key} is null`, bindings: [] }
  const known: Run = { keys, condition: position && !atUnknown ? beyond(keys, query, position) : isKnown }
  const unknown: Run = { keys: [], condition: atUnknown ? allOf([isUnknown, beyond([], query, position)]) : isUnknown }
  if (directionOf(query) === 'desc') return atUnknown ? [unknown] : [known, unknown]
  return position === undefined || atUnknown ? [unknown, known] : [known]
}

/** Rows behind a position, as one comparison of rows. */
function beyond(keys: readonly string[], query: PlainQuery, position: PagePosition): Sql {
  const operator = `${directionOf(query) === 'asc' ? '>' : '<'}${position.inclusive ? '=' : ''}`
  const types = keys.map((key) => ({ timestamp: 'timestamptz', status: 'smallint' })[key] ?? 'numeric')
  return {
    sql: `(${[...keys, 'id'].join(', ')}) ${operator} (${[...types, 'uuid'].map((type) => `?::${type}`).join(', ')})`,
    bindings: [...position.keys.slice(0, keys.length), position.id],
  }
}

/** The first rows of a run; of several branches each gives a page, and these are merged. */
function selectRun(query: PlainQuery, { keys, condition }: Run, names: string): Sql {
  const direction = directionOf(query)
  const page = `order by ${[...keys, 'id'].map((key) => `${key} ${direction}`).join(', ')} limit ${query.limit}`
  const selects = branchesOf(query.filter).map((branch) => {
    const { sql, bindings } = allOf([...branch, ...given(condition, (each) => each)])
    return { sql: `select ${names} from payments where ${sql}\n${page}`, bindings }
  })
  const [only] = selects
  if (selects.length === 1) return only as Sql
  return {
    sql: `select * from ((${selects.map(({ sql }) => sql).join(')\nunion all\n(')})) merged ${page}`,
    bindings: selects.flatMap(({ bindings }) => bindings),
  }
}

/** What the filter asks of a row, one condition a filter. */
export function plainConditions(filter: PaymentFilter): Sql[] {
  const { walletAddress } = filter
  const isOfWallet = given(walletAddress, (values) => anyOf(['payer', 'payee'], 'bytea', values.map(addressToBytes)))
  return [...conditionsOf(filter), ...isOfWallet]
}

/** The conditions as sets that no row fulfils two of: one of the payers and one of the payees where a wallet is either. */
function branchesOf(filter: PaymentFilter): Sql[][] {
  const { walletAddress, ...others } = filter
  const conditions = conditionsOf(others)
  if (walletAddress === undefined) return [conditions]
  const wallets = walletAddress.map(addressToBytes)
  const isNoPayer = { sql: `(payer is null or payer not in (${places('bytea', wallets)}))`, bindings: wallets }
  return [
    [...conditions, anyOf(['payer'], 'bytea', wallets)],
    [...conditions, anyOf(['payee'], 'bytea', wallets), isNoPayer],
  ]
}

/** The conditions of all filters but of those that make branches. */
function conditionsOf(filter: PaymentFilter): Sql[] {
  const { fromDate, toDate, minAmount, maxAmount, status, type, payer, payee } = filter
  const { txHash, requestId, paymentReference, reference, network } = filter
  const amount = amountColumn(filter)
  const iso = (ms: number) => new Date(ms).toISOString()
  const addresses = (values: readonly Address[]) => values.map(addressToBytes)
  return [
    { sql: 'account_id = ?', bindings: [filter.accountId] },
    ...given(fromDate, (value) => ({ sql: 'timestamp >= ?::timestamptz', bindings: [iso(value)] })),
    ...given(toDate, (value) => ({ sql: 'timestamp <= ?::timestamptz', bindings: [iso(value)] })),
    ...given(minAmount, (value) => ({ sql: `${amount} >= ?::numeric`, bindings: [value] })),
    ...given(maxAmount, (value) => ({ sql: `${amount} <= ?::numeric`, bindings: [value] })),
    ...given(filter.currency, currencyIs),
    ...given(filter.paymentCurrency, currencyIs),
    ...given(filter.invoiceCurrency, currencyIs),
    ...given(status, (values) => anyOf(['status'], 'smallint', values.map(rankOfStatus))),
    ...given(type, (values) => anyOf(['type'], 'smallint', values.map(codeOfType))),
    ...given(payer, (values) => anyOf(['payer'], 'bytea', addresses(values))),
    ...given(payee, (values) => anyOf(['payee'], 'bytea', addresses(values))),
    ...given(txHash, (values) => anyOf(['tx_hash', 'source_tx_hash'], 'bytea', values.map(hexToBytes))),
    ...given(requestId, (values) => anyOf(['request_id'], 'bytea', values.map(hexToBytes))),
    ...given(paymentReference, (values) => anyOf(['payment_reference'], 'bytea', values.map(hexToBytes))),
    ...given(reference, (values) => anyOf(['reference'], 'text', values)),
    ...given(network, (values) => anyOf(['network', 'source_network'], 'text', values)),
  ]
}

function given<T>(value: T | undefined, make: (value: T) => Sql): Sql[] {
  return value === undefined ? [] : [make(value)]
}

function anyOf(columns: readonly string[], type: string, values: readonly Value[]): Sql {
  return {
    sql: `(${columns.map((column) => `${column} in (${places(type, values)})`).join(' or ')})`,
    bindings: columns.flatMap(() => values),
  }
}

function places(type: string, values: readonly Value[]): string {
  return values.map(() => `?::${type}`).join(', ')
}

function currencyIs(matches: readonly CurrencyMatch[]): Sql {
  return joined(matches.map(currencyMatches), ' or ')
}

/** The symbol of a payment's currency is asked for as well, since an index begins with it. */
function currencyMatches({ of, symbol, id }: CurrencyMatch): Sql {
  if (of === 'invoice')
    return id === undefined ? invoicedInToken(symbol) : { sql: 'invoice_currency = ?', bindings: [id] }
  const ofSymbol = { sql: 'currency_symbol = ?', bindings: [symbol] }
  return id === undefined ? ofSymbol : allOf([ofSymbol, { sql: 'currency = ?', bindings: [id] }])
}

/** `SYMBOL-CHAIN` of any chain: a range of the index (`.` follows `-`), and exactly those of it. */
function invoicedInToken(symbol: string): Sql {
  return {
    sql: `(invoice_currency >= ? and invoice_currency < ? and regexp_replace(invoice_currency, '-[^-]*$', '') = ?)`,
    bindings: [`${symbol}-`, `${symbol}.`, symbol],
  }
}

function amountColumn(filter: PaymentFilter): string {
  return AMOUNT_COLUMNS[amountBasis(filter)]
}

function allOf(conditions: readonly Sql[]): Sql {
  return joined(conditions, ' and ')
}

function joined(conditions: readonly Sql[], by: ' and ' | ' or '): Sql {
  return {
    sql: `(${conditions.map(({ sql }) => sql).join(by)})`,
    bindings: conditions.flatMap(({ bindings }) => bindings),
  }
}
