import { type Address, addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { codeOfType, type Payment, type PaymentStatus, type PaymentType, rankOfStatus } from '../../domain/payment.ts'
import {
  requireAddress,
  requireMerchantReference,
  requirePaymentReference,
  requireRequestId,
  requireTxHash,
} from '../../domain/require-input.ts'
import type { AmountBasis, FilterValues, TextReading } from './payment-filter.ts'
import type { SortBy } from './search-input.ts'

/** What can be filtered and sorted by, as data. Every column name in the SQL of searches comes from here. */

/** The PostgreSQL type that values are compared as. */
export type ColumnType = 'bytea' | 'text' | 'uuid' | 'smallint' | 'numeric' | 'timestamptz'

/** How values of a kind are parsed from a request and bound in SQL. */
export interface ValueKind {
  readonly type: ColumnType
  /** Parses one value; throws the reason of the kind, such as INVALID_ADDRESS. */
  readonly parse: (field: string, text: string) => string
  readonly bind: (value: string) => string | number | Buffer
}

const status: ValueKind = { type: 'smallint', parse: same, bind: (value) => rankOfStatus(value as PaymentStatus) }

const type: ValueKind = { type: 'smallint', parse: same, bind: (value) => codeOfType(value as PaymentType) }

const address: ValueKind = {
  type: 'bytea',
  parse: requireAddress,
  bind: (value) => addressToBytes(value as Address),
}

const txHash: ValueKind = { type: 'bytea', parse: requireTxHash, bind: hexToBytes }

const requestId: ValueKind = { type: 'bytea', parse: requireRequestId, bind: hexToBytes }

const paymentReference: ValueKind = { type: 'bytea', parse: requirePaymentReference, bind: hexToBytes }

/** The merchant's own reference. */
export const merchantReference: ValueKind = {
  type: 'text',
  parse: requireMerchantReference,
  bind: (value) => value,
}

/** Canonical chain names, parsed by `resolve-names.ts`, which has the chain directory. */
const network: ValueKind = { type: 'text', parse: same, bind: (value) => value }

/** A bound of dates or amounts. */
export interface BoundField {
  readonly kind: 'bound'
  readonly name: 'fromDate' | 'toDate' | 'minAmount' | 'maxAmount'
  readonly operator: '>=' | '<='
  /** `basis`: the amount that the currency filters choose. */
  readonly column: 'timestamp' | 'basis'
  readonly type: ColumnType
}

/** The free text. */
interface TextField {
  readonly kind: 'text'
  readonly name: 'q'
}

/** Currencies of payments and of invoices. */
export interface CurrencyField {
  readonly kind: 'currency'
  readonly name: 'currency' | 'paymentCurrency' | 'invoiceCurrency'
}

/** A list of values of one kind. */
export interface ListField {
  readonly kind: 'list'
  readonly name: Exclude<keyof FilterValues, BoundField['name'] | CurrencyField['name'] | TextField['name']>
  readonly value: ValueKind
  /** A payment matches when any of these columns holds any of the values. */
  readonly columns: readonly string[]
  /** Whether a value names few payments, so that they are looked up first and other filters are asked of them alone. */
  readonly isIdentifier?: boolean
  /** Whether each column is walked by itself and the walks are merged, because no index has both columns. */
  readonly split?: boolean
}

export type FilterField = BoundField | CurrencyField | ListField | TextField

export const filterFields: readonly FilterField[] = [
  { name: 'fromDate', kind: 'bound', operator: '>=', column: 'timestamp', type: 'timestamptz' },
  { name: 'toDate', kind: 'bound', operator: '<=', column: 'timestamp', type: 'timestamptz' },
  { name: 'minAmount', kind: 'bound', operator: '>=', column: 'basis', type: 'numeric' },
  { name: 'maxAmount', kind: 'bound', operator: '<=', column: 'basis', type: 'numeric' },
  { name: 'currency', kind: 'currency' },
  { name: 'paymentCurrency', kind: 'currency' },
  { name: 'invoiceCurrency', kind: 'currency' },
  { name: 'status', kind: 'list', value: status, columns: ['status'] },
  { name: 'type', kind: 'list', value: type, columns: ['type'] },
  { name: 'payer', kind: 'list', value: address, columns: ['payer'] },
  { name: 'payee', kind: 'list', value: address, columns: ['payee'] },
  { name: 'walletAddress', kind: 'list', value: address, columns: ['payer', 'payee'], split: true },
  { name: 'txHash', kind: 'list', value: txHash, columns: ['tx_hash', 'source_tx_hash'], isIdentifier: true },
  { name: 'requestId', kind: 'list', value: requestId, columns: ['request_id'], isIdentifier: true },
  {
    name: 'paymentReference',
    kind: 'list',
    value: paymentReference,
    columns: ['payment_reference'],
    isIdentifier: true,
  },
  { name: 'reference', kind: 'list', value: merchantReference, columns: ['reference'], isIdentifier: true },
  { name: 'network', kind: 'list', value: network, columns: ['network', 'source_network'] },
  { name: 'q', kind: 'text' },
]

const paymentId: ValueKind = { type: 'uuid', parse: same, bind: (value) => value }

/** For each meaning of a free text: its values, and the columns in which they are looked up. */
export const readingColumns: Readonly<
  Record<TextReading['as'], { readonly value: ValueKind; readonly columns: readonly string[] }>
> = {
  id: { value: paymentId, columns: ['id'] },
  walletAddress: { value: address, columns: ['payer', 'payee'] },
  txHash: { value: txHash, columns: ['tx_hash', 'source_tx_hash'] },
  requestId: { value: requestId, columns: ['request_id'] },
  paymentReference: { value: paymentReference, columns: ['payment_reference'] },
  reference: { value: merchantReference, columns: ['reference'] },
}

/** The sort keys of the three amounts. */
export const amountColumns: Readonly<Record<AmountBasis, SortKey>> = {
  amount: { column: 'amount', type: 'numeric', nullable: false, valueOf: ({ amount }) => amount },
  invoiceAmount: {
    column: 'invoice_amount',
    type: 'numeric',
    nullable: true,
    valueOf: ({ invoiceAmount }) => invoiceAmount ?? null,
  },
  amountInUsd: {
    column: 'amount_in_usd',
    type: 'numeric',
    nullable: true,
    valueOf: ({ amountInUsd }) => amountInUsd ?? null,
  },
}

/** One key of an order. A key that can be null is the only one of its order, apart from the id. */
export interface SortKey {
  readonly column: string
  readonly type: ColumnType
  readonly nullable: boolean
  /** The key of a payment as it is bound in SQL; null where it is unknown. */
  readonly valueOf: (payment: Payment) => string | number | null
}

const timestampKey: SortKey = {
  column: 'timestamp',
  type: 'timestamptz',
  nullable: false,
  valueOf: ({ timestamp }) => timestamp.toISOString(),
}
const statusKey: SortKey = {
  column: 'status',
  type: 'smallint',
  nullable: false,
  valueOf: ({ status }) => rankOfStatus(status),
}

/** The keys of an order. The id always follows them; all have the direction of the order. */
export function sortKeysOf(sortBy: SortBy, basis: AmountBasis): readonly SortKey[] {
  switch (sortBy) {
    case 'date':
      return [timestampKey]
    case 'status':
      return [statusKey, timestampKey]
    case 'amount':
      return [amountColumns[basis]]
  }
}

function same(_field: string, text: string): string {
  return text
}
