import { type Address, addressToBytes } from '../../src/domain/address.ts'
import { hexToBytes } from '../../src/domain/hex.ts'
import { codeOfType, rankOfStatus } from '../../src/domain/payment.ts'
import { amountBasis, type CurrencyMatch, type PaymentFilter } from '../../src/search/filter/payment-filter.ts'
import type { SortBy, SortOrder } from '../../src/search/filter/search-input.ts'
import type { PagePosition } from '../../src/search/page/search-cursor.ts'
import type { PaymentStatement } from '../../src/store/payment-changes.ts'

/**
 * Search as one would write it first: `where … order by … limit`, a later page by conditions joined with `or`. What the shapes of the
 * service are compared with, for speed on the same indexes, and for what they find.
 */

/** A search without any cleverness. */
export interface PlainQuery {
  readonly filter: PaymentFilter
  readonly sortBy: SortBy
  readonly sortOrder: SortOrder
  readonly position?: PagePosition | undefined
  readonly limit: number
}

type Condition = Pick<PaymentStatement, 'sql' | 'bindings'>

const AMOUNT_COLUMNS = { amount: 'amount', invoiceAmount: 'invoice_amount', amountInUsd: 'amount_in_usd' } as const

/** The statement of a page, nearest row first. */
export function plainStatement(
  { filter, sortBy, sortOrder, position, limit }: PlainQuery,
  columns: readonly string[],
): Condition {
  const keys = { date: ['timestamp'], status: ['status', 'timestamp'], amount: [amountColumn(filter)] }[sortBy]
  const isUp = (sortOrder === 'asc') === (position?.direction !== 'backward')
  const where = [...plainConditions(filter), ...(position === undefined ? [] : [behind(keys, isUp, position)])]
  const order = [...keys, 'id'].map((key) => `${key} ${isUp ? 'asc nulls first' : 'desc nulls last'}`)
  return {
    sql: `select ${columns.join(', ')} from payments where ${where.map(({ sql }) => sql).join(' and ')}
order by ${order.join(', ')} limit ${limit}`,
    bindings: where.flatMap(({ bindings }) => bindings),
  }
}

/** What the filter asks of a row, one condition a filter. */
export function plainConditions(filter: PaymentFilter): Condition[] {
  const { fromDate, toDate, minAmount, maxAmount, status, type, payer, payee, walletAddress } = filter
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
    ...given(walletAddress, (values) => anyOf(['payer', 'payee'], 'bytea', addresses(values))),
    ...given(txHash, (values) => anyOf(['tx_hash', 'source_tx_hash'], 'bytea', values.map(hexToBytes))),
    ...given(requestId, (values) => anyOf(['request_id'], 'bytea', values.map(hexToBytes))),
    ...given(paymentReference, (values) => anyOf(['payment_reference'], 'bytea', values.map(hexToBytes))),
    ...given(reference, (values) => anyOf(['reference'], 'text', values)),
    ...given(network, (values) => anyOf(['network', 'source_network'], 'text', values)),
  ]
}

function given<T>(value: T | undefined, make: (value: T) => Condition): Condition[] {
  return value === undefined ? [] : [make(value)]
}

function anyOf(columns: readonly string[], type: string, values: readonly (string | number | Buffer)[]): Condition {
  const places = values.map(() => `?::${type}`).join(', ')
  return {
    sql: `(${columns.map((column) => `${column} in (${places})`).join(' or ')})`,
    bindings: columns.flatMap(() => values),
  }
}

function currencyIs(matches: readonly CurrencyMatch[]): Condition {
  const each = matches.map(({ of, symbol, id }): Condition => {
    if (id !== undefined) return { sql: `${of === 'payment' ? 'currency' : 'invoice_currency'} = ?`, bindings: [id] }
    if (of === 'payment') return { sql: 'currency_symbol = ?', bindings: [symbol] }
    return {
      sql: `regexp_replace(invoice_currency, '-[^-]*$', '') = ? and invoice_currency <> ?`,
      bindings: [symbol, symbol],
    }
  })
  return { sql: `(${each.map(({ sql }) => sql).join(' or ')})`, bindings: each.flatMap(({ bindings }) => bindings) }
}

function amountColumn(filter: PaymentFilter): string {
  return AMOUNT_COLUMNS[amountBasis(filter)]
}

/** Beyond the keys of the position: a later first key, or an equal one and a later next key. Unknown is below everything. */
function behind(keys: readonly string[], isUp: boolean, position: PagePosition): Condition {
  const operator = isUp ? '>' : '<'
  const ofId: Condition = { sql: `id ${operator}${position.inclusive ? '=' : ''} ?::uuid`, bindings: [position.id] }
  return keys.reduceRight<Condition>((rest, key, at) => {
    const value = position.keys[at] ?? null
    const type = { timestamp: 'timestamptz', status: 'smallint' }[key] ?? 'numeric'
    if (value === null) {
      return {
        sql: `(${isUp ? `${key} is not null or ` : ''}(${key} is null and ${rest.sql}))`,
        bindings: rest.bindings,
      }
    }
    const unknown = isUp ? '' : ` or ${key} is null`
    return {
      sql: `(${key} ${operator} ?::${type} or (${key} = ?::${type} and ${rest.sql})${unknown})`,
      bindings: [value, value, ...rest.bindings],
    }
  }, ofId)
}
