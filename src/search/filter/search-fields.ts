import {
  type CurrencyMatch,
  type NameSources,
  resolveCurrency,
  resolveInvoiceCurrency,
  resolveNetwork,
  resolvePaymentCurrency,
} from '../../chains/resolve-names.ts'
import { type Address, addressToDigits } from '../../domain/address.ts'
import { codeOfType, type Payment, paymentStatuses, paymentTypes, rankOfStatus } from '../../domain/payment.ts'
import {
  requireAddress,
  requireMerchantReference,
  requirePaymentReference,
  requireRequestId,
  requireShortTexts,
  requireTxHash,
} from '../../domain/require-input.ts'
import type { TextReading } from './read-free-text.ts'

/** What can be filtered and sorted by, as data. Every column name in the SQL of searches comes from here. */

/** The PostgreSQL type that values are compared as. */
export type ColumnType = 'bytea' | 'text' | 'uuid' | 'smallint' | 'numeric' | 'timestamptz'

/** How values of a kind are bound in SQL. */
export interface ValueKind<V extends string = string> {
  readonly type: ColumnType
  bind(value: V): string | number
}

/** How values of a kind are read from what was sent. Each throws the reason of the kind, such as INVALID_ADDRESS. */
type ReadValue<V extends string> =
  | { readonly read: 'text'; parse(field: string, text: string): V }
  /** A name, looked up in configuration, built-in tables and the account's payments. It may mean several values, or none. */
  | { readonly read: 'name'; resolve(sources: NameSources, field: string, text: string): Promise<readonly V[]> }
  /** A name of an enum, read from its number where the message is. */
  | { readonly read: 'enum'; readonly words: readonly V[] }

/** A list of values of one kind. */
interface ListFilter<V extends string = string> {
  readonly kind: 'list'
  readonly value: ValueKind<V> & ReadValue<V>
  /** A payment matches when any of these columns holds any of the values. */
  readonly columns: readonly string[]
  /** Checks all values together. */
  readonly checkAll?: (field: string, texts: readonly string[]) => void
}

/** Filters that can be turned round. */
type Excludable = 'status' | 'type' | 'network' | 'currency' | 'payer' | 'payee'

/** What a filter is. Currencies have SQL of their own; an amount is in the currency that they choose. */
type Filter =
  | ListFilter
  | { readonly kind: 'currency'; readonly read: 'name'; readonly resolve: typeof resolveCurrency }
  | { readonly kind: 'date'; readonly operator: '>=' | '<='; readonly column: 'timestamp' | 'changed_at' }
  | { readonly kind: 'amount'; readonly operator: '>=' | '<='; readonly column: 'basis' }
  /** Leaves out what another filter would choose. What is unknown stays. */
  | { readonly kind: 'exclusion'; readonly of: Excludable }
  /** Pairs `key=value`: any value of a key, of all keys. */
  | { readonly kind: 'pairs'; readonly column: 'metadata' }
  /** Texts that begin with one. */
  | { readonly kind: 'prefix'; readonly column: 'reference' }
  /** The free text. */
  | { readonly kind: 'text' }
  /** The time zone of bare dates. It chooses no payments by itself. */
  | { readonly kind: 'zone' }

const address = { type: 'bytea', read: 'text', parse: requireAddress, bind: addressBytes } as const
const txHash = { type: 'bytea', read: 'text', parse: requireTxHash, bind: hexBytes } as const
const requestId = { type: 'bytea', read: 'text', parse: requireRequestId, bind: hexBytes } as const
const paymentReference = { type: 'bytea', read: 'text', parse: requirePaymentReference, bind: hexBytes } as const
const merchantReference = { type: 'text', read: 'text', parse: requireMerchantReference, bind: same } as const
/** Canonical chain names. */
const network = { type: 'text', read: 'name', resolve: resolveNetwork, bind: same } as const
const status = { type: 'smallint', read: 'enum', words: paymentStatuses, bind: rankOfStatus } as const
const type = { type: 'smallint', read: 'enum', words: paymentTypes, bind: codeOfType } as const

/**
 * All filters by their names in the API. Each is declared here and in the four requests of `proto/` that have filters, and nowhere else: the
 * types of what is sent and of what is searched for follow from this table, parsing and SQL loop over it, and `payment-filter-input.ts`
 * compiles only while the requests have exactly these filters.
 */
const filters = {
  fromDate: { kind: 'date', operator: '>=', column: 'timestamp' },
  toDate: { kind: 'date', operator: '<=', column: 'timestamp' },
  changedFrom: { kind: 'date', operator: '>=', column: 'changed_at' },
  changedTo: { kind: 'date', operator: '<=', column: 'changed_at' },
  minAmount: { kind: 'amount', operator: '>=', column: 'basis' },
  maxAmount: { kind: 'amount', operator: '<=', column: 'basis' },
  currency: { kind: 'currency', read: 'name', resolve: resolveCurrency },
  paymentCurrency: { kind: 'currency', read: 'name', resolve: resolvePaymentCurrency },
  invoiceCurrency: { kind: 'currency', read: 'name', resolve: resolveInvoiceCurrency },
  status: { kind: 'list', value: status, columns: ['status'] },
  type: { kind: 'list', value: type, columns: ['type'] },
  payer: { kind: 'list', value: address, columns: ['payer'] },
  payee: { kind: 'list', value: address, columns: ['payee'] },
  walletAddress: { kind: 'list', value: address, columns: ['payer', 'payee'] },
  txHash: { kind: 'list', value: txHash, columns: ['tx_hash', 'source_tx_hash', 'refunds'] },
  requestId: { kind: 'list', value: requestId, columns: ['request_id'] },
  paymentReference: { kind: 'list', value: paymentReference, columns: ['payment_reference'] },
  reference: { kind: 'list', value: merchantReference, columns: ['reference'], checkAll: requireShortTexts },
  network: { kind: 'list', value: network, columns: ['network', 'source_network'] },
  sourceNetwork: { kind: 'list', value: network, columns: ['source_network'] },
  destinationNetwork: { kind: 'list', value: network, columns: ['network'] },
  referencePrefix: { kind: 'prefix', column: 'reference' },
  metadata: { kind: 'pairs', column: 'metadata' },
  'exclude.status': { kind: 'exclusion', of: 'status' },
  'exclude.type': { kind: 'exclusion', of: 'type' },
  'exclude.network': { kind: 'exclusion', of: 'network' },
  'exclude.currency': { kind: 'exclusion', of: 'currency' },
  'exclude.payer': { kind: 'exclusion', of: 'payer' },
  'exclude.payee': { kind: 'exclusion', of: 'payee' },
  q: { kind: 'text' },
  timeZone: { kind: 'zone' },
} as const satisfies Readonly<Record<string, Filter>>

type Filters = typeof filters

/** The name of a filter. */
export type FilterName = keyof Filters

/** The words of the filters that are sent as numbers of an enum. */
export type FilterWords = {
  readonly [N in FilterName as Turned<Filters[N]> extends { readonly value: { readonly read: 'enum' } }
    ? N
    : never]: ValueIn<Turned<Filters[N]>>
}

/** The filter that an exclusion negates; any other one itself. */
type Turned<F> = F extends { readonly of: infer N extends Excludable } ? Filters[N] : F

/** A filter with its name; optional parts are undefined where a filter has none. */
export type FilterField = {
  [N in FilterName]: { readonly name: N } & Filters[N] & Pick<ListFilter, 'checkAll'>
}[FilterName]

/** All filters, in the order of the table. */
export const filterFields = Object.entries(filters).map(([name, filter]) => ({
  name,
  ...filter,
})) as readonly FilterField[]

/** The filter that an exclusion negates. */
export function turnedField({ of }: Extract<FilterField, { readonly kind: 'exclusion' }>) {
  return { name: of, ...filters[of] } as Extract<FilterField, { readonly name: Excludable }>
}

/** What a filter is sent as, once numbers of enums are read. */
type SentAs<F> = F extends { readonly kind: 'list' | 'currency' | 'pairs' } ? readonly ValueIn<F>[] : string

/** What a filter is parsed into; plain JSON, because cursors carry it. Dates are milliseconds since 1970, amounts canonical decimal strings. */
type ParsedAs<F> = F extends { readonly kind: 'date' }
  ? number
  : F extends { readonly kind: 'currency' }
    ? readonly CurrencyMatch[]
    : F extends { readonly kind: 'text' }
      ? readonly TextReading[]
      : F extends { readonly kind: 'pairs' }
        ? readonly string[]
        : F extends { readonly value: { bind(value: infer V): unknown } }
          ? readonly V[]
          : string

type ValueIn<F> = F extends { readonly value: { readonly words: readonly (infer V)[] } } ? V : string

/** The filters as they came over the wire: strings not yet parsed. Undefined, or an empty list, was not sent. */
export type FilterInput = { readonly [N in FilterName]?: SentAs<Turned<Filters[N]>> | undefined }

/** The filters, parsed, by their names in the API. */
export type FilterValues = { readonly [N in FilterName]?: ParsedAs<Turned<Filters[N]>> | undefined }

/** The amount that ranges and the order by amount refer to. */
export type AmountBasis = 'amount' | 'invoiceAmount' | 'amountInUsd'

/** For each meaning of a free text: its values, and the columns in which they are looked up. */
export const readingColumns: Readonly<Record<TextReading['as'], Pick<ListFilter, 'columns'> & { value: ValueKind }>> = {
  id: { value: { type: 'uuid', bind: same }, columns: ['id'] },
  walletAddress: filters.walletAddress,
  txHash: filters.txHash,
  requestId: filters.requestId,
  paymentReference: filters.paymentReference,
  reference: filters.reference,
}

export type SortBy = 'date' | 'amount' | 'status' | 'changed'

/** The sort keys of the three amounts. */
export const amountColumns: Readonly<Record<AmountBasis, SortKey>> = {
  amount: keyOf('amount', 'numeric', ({ amount }) => amount),
  invoiceAmount: keyOf('invoice_amount', 'numeric', ({ invoiceAmount }) => invoiceAmount ?? null, true),
  amountInUsd: keyOf('amount_in_usd', 'numeric', ({ amountInUsd }) => amountInUsd ?? null, true),
}

/** One key of an order. A key that can be null is the only one of its order, apart from the id. */
export interface SortKey {
  readonly column: string
  readonly type: ColumnType
  readonly nullable: boolean
  /** The key of a payment as it is bound in SQL; null where it is unknown. */
  readonly valueOf: (payment: Payment) => string | number | null
}

function keyOf(column: string, type: ColumnType, valueOf: SortKey['valueOf'], nullable = false): SortKey {
  return { column, type, nullable, valueOf }
}

const timestampKey = keyOf('timestamp', 'timestamptz', ({ timestamp }) => timestamp.toISOString())
const changedKey = keyOf('changed_at', 'timestamptz', ({ changedAt }) => changedAt?.toISOString() ?? null)
const statusKey = keyOf('status', 'smallint', ({ status }) => rankOfStatus(status))

/** The keys of an order. The id always follows them; all have the direction of the order. */
export function sortKeysOf(sortBy: SortBy, basis: AmountBasis): readonly SortKey[] {
  switch (sortBy) {
    case 'date':
      return [timestampKey]
    case 'status':
      return [statusKey, timestampKey]
    case 'amount':
      return [amountColumns[basis]]
    case 'changed':
      return [changedKey]
  }
}

function same(text: string): string {
  return text
}

/** Bytes in the text form of PostgreSQL, which its statistics have too. */
function addressBytes(address: Address): string {
  return `\\x${addressToDigits(address)}`
}

function hexBytes(hex: string): string {
  return `\\x${hex.startsWith('0x') ? hex.slice(2) : hex}`
}
