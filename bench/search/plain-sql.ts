import type { CurrencyMatch } from '../../src/chains/resolve-names.ts'
import { type Address, addressToBytes } from '../../src/domain/address.ts'
import { hexToBytes } from '../../src/domain/hex.ts'
import { codeOfType, paymentStatuses, rankOfStatus } from '../../src/domain/payment.ts'
import { amountBasis, type PaymentFilter, pairsByKey, type SortOrder } from '../../src/search/filter/payment-filter.ts'
import type { SortBy } from '../../src/search/filter/search-fields.ts'
import type { PagePosition } from '../../src/search/query/page-query.ts'

/**
 * Plain SQL: `select … from payments where … order by … limit`, as somebody writes it who knows PostgreSQL and these indexes, but has no
 * statistics of the data and leaves the plan to the planner. The benchmark compares its speed with that of the service, the tests compare
 * the results.
 *
 * - The order says no `nulls first` and no `nulls last`, so that an index gives it in both directions.
 * - A later page is a row comparison: `(timestamp, id) < ($1, $2)`.
 * - Unknown amounts come last descending and first ascending, an order that no index has. Known and unknown amounts therefore have a
 *   select each, and the second one reads only as many rows as the page still lacks.
 * - Several values are one array: `status = any($1)`.
 * - A filter of two columns is written in two ways; the benchmark takes the faster one for each class.
 *
 * The statements are frozen since 26 November 2026, with the indexes by network and by currency: whoever changes a statement or an index for the sake
 * of the service measures both again.
 */

/** Which rows of an order to read. */
export interface PlainQuery {
  readonly filter: PaymentFilter
  readonly sortBy: SortBy
  readonly sortOrder: SortOrder
  readonly position?: PagePosition | undefined
  readonly limit: number
  /** default `or` */
  readonly way?: PlainWay | undefined
}

/** How a filter of two columns is written: `payer = $1 or payee = $1`, or a select for each column, joined by `union all`. */
export type PlainWay = 'or' | 'union'

/** The ways in which a search can be written. */
export function plainWays({ walletAddress, network }: PaymentFilter): readonly PlainWay[] {
  return walletAddress === undefined && network === undefined ? ['or'] : ['or', 'union']
}

/** SQL with a `?` for each binding. */
interface Sql {
  readonly sql: string
  readonly bindings: readonly (Value | readonly Value[] | null)[]
}

type Value = string | number | Buffer

const AMOUNT_COLUMNS = { amount: 'amount', invoiceAmount: 'invoice_amount', amountInUsd: 'amount_in_usd' } as const

/** The statement of a page, nearest row first. A row begins with `columns`; its sort keys may follow. */
export function plainStatement(query: PlainQuery, columns: readonly string[]): Sql {
  const keys = keysOf(query)
  const names = [...new Set([...columns, ...keys, 'id'])].join(', ')
  const [nearer, farther] = runsOf(query).map((run) => selectRun(query, run, names))
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
  return {
    date: ['timestamp'],
    status: ['status', 'timestamp'],
    amount: [amountColumn(filter)],
    changed: ['changed_at'],
  }[sortBy]
}

/** The direction in which rows are read: a page before its position is read backwards. */
function directionOf({ sortOrder, position }: PlainQuery): SortOrder {
  if (position?.direction !== 'backward') return sortOrder
  return sortOrder === 'asc' ? 'desc' : 'asc'
}

/**
 * The conditions of a page beside its filter, for each run of rows that an index has in the order of the answer: one run, or two where
 * amounts can be unknown, the nearer one first.
 */
function runsOf(query: PlainQuery): Sql[][] {
  const { filter, sortBy, position } = query
  const keys = keysOf(query)
  const [key] = keys
  const isNullable = sortBy === 'amount' && key !== AMOUNT_COLUMNS.amount
  // a range of amounts leaves no unknown ones
  const hasRange = filter.minAmount !== undefined || filter.maxAmount !== undefined
  if (!isNullable || hasRange) return [given(position, (from) => beyond(keys, query, from))]
  const atUnknown = position !== undefined && position.keys[0] === null
  const isKnown = { sql: `${key} is not null`, bindings: [] }
  const isUnknown = { sql: `${key} is null`, bindings: [] }
  const known = [position && !atUnknown ? beyond(keys, query, position) : isKnown]
  const unknown = [isUnknown, ...(atUnknown ? [beyond([], query, position)] : [])]
  if (directionOf(query) === 'desc') return atUnknown ? [unknown] : [known, unknown]
  return position === undefined || atUnknown ? [unknown, known] : [known]
}

/** The rows after a position, as one row comparison. */
function beyond(keys: readonly string[], query: PlainQuery, position: PagePosition): Sql {
  const operator = `${directionOf(query) === 'asc' ? '>' : '<'}${position.inclusive ? '=' : ''}`
  const types = keys.map(
    (key) => ({ timestamp: 'timestamptz', changed_at: 'timestamptz', status: 'smallint' })[key] ?? 'numeric',
  )
  return {
    sql: `(${[...keys, 'id'].join(', ')}) ${operator} (${[...types, 'uuid'].map((type) => `?::${type}`).join(', ')})`,
    bindings: [...position.keys.slice(0, keys.length), position.id],
  }
}

/** The first rows of a run; of several branches each gives a page, and these are merged. */
function selectRun(query: PlainQuery, run: readonly Sql[], names: string): Sql {
  const direction = directionOf(query)
  const order = [...keysOf(query), 'id'].map((key) => `${key} ${direction}`).join(', ')
  const page = `order by ${order} limit ${query.limit}`
  const selects = branchesOf(query).map((branch) => {
    const { sql, bindings } = allOf([...branch, ...run])
    return { sql: `select ${names} from payments where ${sql}\n${page}`, bindings }
  })
  const [only] = selects
  if (selects.length === 1) return only as Sql
  return {
    sql: `select * from ((${selects.map(({ sql }) => sql).join(')\nunion all\n(')})) merged ${page}`,
    bindings: selects.flatMap(({ bindings }) => bindings),
  }
}

/** The conditions of a filter, one for each field. */
export function plainConditions(filter: PaymentFilter): Sql[] {
  const { walletAddress, network } = filter
  return [
    ...conditionsOfOneColumn(filter),
    ...given(walletAddress, (values) => anyOf(['payer', 'payee'], 'bytea', values.map(addressToBytes))),
    ...given(network, (values) => anyOf(['network', 'source_network'], 'text', values)),
  ]
}

/** The conditions of each select of a union. No row meets those of two. */
function branchesOf({ filter, way }: PlainQuery): Sql[][] {
  if (way !== 'union') return [plainConditions(filter)]
  const { walletAddress, network } = filter
  const wallets = given(walletAddress, (values) => values.map(addressToBytes)).map((values) => [
    [anyOf(['payer'], 'bytea', values)],
    [anyOf(['payee'], 'bytea', values), { sql: '(payer is null or payer <> all(?::bytea[]))', bindings: [values] }],
  ])
  const networks = given(network, (values) => [
    [anyOf(['network'], 'text', values)],
    // the first comparison follows from the others, and is what the index of sources asks for
    [
      anyOf(['source_network'], 'text', values),
      { sql: 'source_network <> network and network <> all(?::text[])', bindings: [values] },
    ],
  ])
  return [...wallets, ...networks].reduce<Sql[][]>(
    (branches, split) => branches.flatMap((branch) => split.map((part) => [...branch, ...part])),
    [conditionsOfOneColumn(filter)],
  )
}

/** The conditions of all filters but wallets and networks. */
function conditionsOfOneColumn(filter: PaymentFilter): Sql[] {
  const { fromDate, toDate, changedFrom, changedTo, minAmount, maxAmount, status, type, payer, payee } = filter
  const { txHash, requestId, paymentReference, reference } = filter
  const amount = amountColumn(filter)
  const iso = (ms: number) => new Date(ms).toISOString()
  const addresses = (values: readonly Address[]) => values.map(addressToBytes)
  return [
    { sql: 'account_id = ?', bindings: [filter.accountId] },
    ...given(fromDate, (value) => ({ sql: 'timestamp >= ?::timestamptz', bindings: [iso(value)] })),
    ...given(toDate, (value) => ({ sql: 'timestamp <= ?::timestamptz', bindings: [iso(value)] })),
    ...given(changedFrom, (value) => ({ sql: 'changed_at >= ?::timestamptz', bindings: [iso(value)] })),
    ...given(changedTo, (value) => ({ sql: 'changed_at <= ?::timestamptz', bindings: [iso(value)] })),
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
    ...given(filter.referencePrefix, (prefix) => ({
      sql: '(reference >= ? and reference < ? and starts_with(reference, ?))',
      bindings: [prefix, `${prefix}\u{10ffff}`, prefix],
    })),
    ...pairsByKey(filter).map((pairs) => {
      const { sql, bindings } = anyOf(['pair'], 'text', pairs)
      return {
        sql: `id in (select id from payment_metadata where account_id = ? and ${sql})`,
        bindings: [filter.accountId, ...bindings],
      }
    }),
    ...exclusionsOf(filter),
  ]
}

/** A status is always known, and there are five. */
function exclusionsOf(filter: PaymentFilter): Sql[] {
  const none = (column: string, type: string, values: readonly Value[]) => ({
    sql: `(${column} is null or ${column} <> all(?::${type}[]))`,
    bindings: [values],
  })
  return [
    ...given(filter['exclude.status'], (excluded) => {
      const left = paymentStatuses.filter((status) => !excluded.includes(status))
      return anyOf(['status'], 'smallint', left.map(rankOfStatus))
    }),
    ...given(filter['exclude.type'], (values) => none('type', 'smallint', values.map(codeOfType))),
    ...given(filter['exclude.network'], (values) =>
      allOf([none('network', 'text', values), none('source_network', 'text', values)]),
    ),
    ...given(filter['exclude.currency'], (matches) => {
      const { sql, bindings } = currencyIs(matches)
      return { sql: `coalesce(not (${sql}), true)`, bindings }
    }),
    ...given(filter['exclude.payer'], (values) => none('payer', 'bytea', values.map(addressToBytes))),
    ...given(filter['exclude.payee'], (values) => none('payee', 'bytea', values.map(addressToBytes))),
  ]
}

function given<T, Made>(value: T | undefined, make: (value: T) => Made): Made[] {
  return value === undefined ? [] : [make(value)]
}

/** Several values are one array, and so one parameter. One value is compared with `=`, so that an index keeps the order of its next column. */
function anyOf(columns: readonly string[], type: string, values: readonly Value[]): Sql {
  const [only] = values
  const isOne = values.length === 1 && only !== undefined
  const place = isOne ? `= ?::${type}` : `= any(?::${type}[])`
  return {
    sql: `(${columns.map((column) => `${column} ${place}`).join(' or ')})`,
    bindings: columns.map(() => (isOne ? only : values)),
  }
}

function currencyIs(matches: readonly CurrencyMatch[]): Sql {
  return joined(matches.map(currencyMatches), ' or ')
}

/** The symbol of a payment's currency is compared as well, because an index begins with it. */
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
