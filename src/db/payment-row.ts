import { type Address, addressFromBytes, addressToBytes } from '../domain/address.ts'
import { symbolOfCurrency } from '../domain/currency.ts'
import { bytesToHex, hexToBytes } from '../domain/hex.ts'
import {
  codeOfType,
  type ExchangeRate,
  type Payment,
  type PaymentFee,
  type PaymentGas,
  type PaymentRefund,
  type StatusChange,
  statusOfRank,
  typeOfCode,
} from '../domain/payment.ts'

/** A row of `payments`, as the database gives it. Amounts are numerics as text, bytes Buffers, JSON parsed. */
export interface PaymentRow {
  readonly account_id: number
  readonly id: string
  readonly status: number
  readonly type: number | null
  readonly final: boolean
  readonly imported: boolean
  /** Whether it was seen on chain, in `block_number`; an import may say of itself what it likes. */
  readonly detected: boolean
  readonly event_index: number | null
  readonly block_number: bigint | null
  readonly confirmations: number | null
  readonly timestamp: Date
  readonly updated_at: Date
  readonly network: string
  readonly source_network: string | null
  readonly chain_id: string | null
  readonly currency: string
  readonly currency_symbol: string
  readonly invoice_currency: string | null
  readonly amount: string
  readonly amount_in_usd: string | null
  readonly invoice_amount: string | null
  readonly refunded_amount: string
  readonly tx_hash: Buffer | null
  readonly source_tx_hash: Buffer | null
  readonly payer: Buffer | null
  readonly payee: Buffer | null
  readonly initiator: Buffer | null
  readonly token_address: Buffer | null
  readonly request_id: Buffer | null
  readonly payment_reference: Buffer | null
  readonly reference: string | null
  readonly fees: readonly PaymentFee[]
  readonly exchange_rates: readonly ExchangeRate[]
  readonly gas: PaymentGas | null
  readonly refunds: readonly PaymentRefund[]
  readonly status_history: readonly StatusChange[]
  /** What the line is known by that an import wrote the row from; null of others, and of all that were seen on chain. */
  readonly line_hash: Buffer | null
}

/** What only those who write rows need. */
type WriterColumn = 'account_id' | 'imported' | 'detected' | 'currency_symbol' | 'line_hash'

/** A row as it is read. */
export type ReadPaymentRow = Omit<PaymentRow, WriterColumn>

/** The columns of {@link ReadPaymentRow}, in the order of the schema. */
export const readPaymentColumns = [
  'id',
  'status',
  'type',
  'final',
  'event_index',
  'block_number',
  'confirmations',
  'timestamp',
  'updated_at',
  'network',
  'source_network',
  'chain_id',
  'currency',
  'invoice_currency',
  'amount',
  'amount_in_usd',
  'invoice_amount',
  'refunded_amount',
  'tx_hash',
  'source_tx_hash',
  'payer',
  'payee',
  'initiator',
  'token_address',
  'request_id',
  'payment_reference',
  'reference',
  'fees',
  'exchange_rates',
  'gas',
  'refunds',
  'status_history',
] as const satisfies readonly (keyof ReadPaymentRow)[]

/** All columns. */
export const paymentColumns = [
  'account_id',
  'imported',
  'detected',
  'currency_symbol',
  'line_hash',
  ...readPaymentColumns,
] as const satisfies readonly (keyof PaymentRow)[]

/** The columns that the chain tells; what is unknown is null. */
export type PaymentFacts = Omit<
  PaymentRow,
  | 'account_id'
  | 'id'
  | 'status'
  | 'final'
  | 'imported'
  | 'detected'
  | 'confirmations'
  | 'updated_at'
  | 'refunded_amount'
  | 'refunds'
  | 'status_history'
  | 'line_hash'
>

/** The part of a payment that the chain tells. */
type ToldPayment = Omit<
  Payment,
  'id' | 'status' | 'confirmations' | 'updatedAt' | 'refundedAmount' | 'refunds' | 'statusHistory'
>

/** Turns what the chain tells of a payment into its columns. */
export function factsOfPayment(payment: ToldPayment): PaymentFacts {
  return {
    type: orNull(payment.type, codeOfType),
    event_index: payment.eventIndex ?? null,
    block_number: payment.blockNumber ?? null,
    timestamp: payment.timestamp,
    network: payment.network,
    source_network: payment.sourceNetwork ?? null,
    chain_id: payment.chainId ?? null,
    currency: payment.currency,
    currency_symbol: symbolOfCurrency(payment.currency),
    invoice_currency: payment.invoiceCurrency ?? null,
    amount: payment.amount,
    amount_in_usd: payment.amountInUsd ?? null,
    invoice_amount: payment.invoiceAmount ?? null,
    tx_hash: orNull(payment.txHash, hexToBytes),
    source_tx_hash: orNull(payment.sourceTxHash, hexToBytes),
    payer: orNull(payment.payer, addressToBytes),
    payee: orNull(payment.payee, addressToBytes),
    initiator: orNull(payment.initiator, addressToBytes),
    token_address: orNull(payment.tokenAddress, addressToBytes),
    request_id: orNull(payment.requestId, hexToBytes),
    payment_reference: orNull(payment.paymentReference, hexToBytes),
    reference: payment.reference ?? null,
    fees: payment.fees,
    exchange_rates: payment.exchangeRates,
    gas: payment.gas ?? null,
  }
}

/** What a row says of itself beyond its payment. */
export type RowOrigin = Pick<PaymentRow, 'account_id' | 'final' | 'imported' | 'detected' | 'line_hash'>

/**
 * The payment of a row.
 *
 * @param headBlock - the newest block of the payment's chain, where it is followed: a payment that is not final counts its confirmations
 * up to it
 */
export function paymentOfRow(row: ReadPaymentRow, headBlock?: bigint): Payment {
  return {
    id: row.id,
    status: statusOfRank(row.status),
    timestamp: row.timestamp,
    updatedAt: row.updated_at,
    amount: trimDecimal(row.amount),
    currency: row.currency,
    network: row.network,
    fees: row.fees,
    exchangeRates: row.exchange_rates,
    refunds: row.refunds,
    refundedAmount: trimDecimal(row.refunded_amount),
    statusHistory: row.status_history,
    ...known('type', row.type, typeOfCode),
    ...known('amountInUsd', row.amount_in_usd, trimDecimal),
    ...known('invoiceAmount', row.invoice_amount, trimDecimal),
    ...known('invoiceCurrency', row.invoice_currency, same),
    ...known('chainId', row.chain_id, same),
    ...known('txHash', row.tx_hash, bytesToHex),
    ...known('blockNumber', row.block_number, same),
    ...known('eventIndex', row.event_index, same),
    ...known('sourceNetwork', row.source_network, same),
    ...known('sourceTxHash', row.source_tx_hash, bytesToHex),
    ...known('payer', row.payer, toAddress),
    ...known('payee', row.payee, toAddress),
    ...known('initiator', row.initiator, toAddress),
    ...known('tokenAddress', row.token_address, toAddress),
    ...known('requestId', row.request_id, (bytes) => bytes.toString('hex')),
    ...known('paymentReference', row.payment_reference, bytesToHex),
    ...known('reference', row.reference, same),
    ...known('gas', row.gas, same),
    ...known('confirmations', confirmationsOf(row, headBlock), same),
  }
}

/** Frozen once final; until then counted up to the head, both blocks included. Unknown on a chain that is not followed. */
function confirmationsOf(
  row: Pick<PaymentRow, 'final' | 'confirmations' | 'block_number'>,
  headBlock: bigint | undefined,
): number | null {
  if (row.final) return row.confirmations
  if (headBlock === undefined || row.block_number === null) return null
  // The head was read before the row, so the row's block can be newer.
  return headBlock < row.block_number ? 1 : Number(headBlock - row.block_number + 1n)
}

/** Drops the zeros that a numeric's scale leaves behind the point. */
function trimDecimal(text: string): string {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text
}

function toAddress(bytes: Buffer): Address {
  return addressFromBytes(bytes)
}

function same<T>(value: T): T {
  return value
}

function orNull<T, R>(value: T | undefined, map: (value: T) => R): R | null {
  return value === undefined ? null : map(value)
}

/** The property when the column is known, else nothing: what is unknown is absent. */
function known<K extends keyof Payment, C>(
  name: K,
  column: C | null,
  read: (value: C) => NonNullable<Payment[K]>,
): { [P in K]?: NonNullable<Payment[K]> } {
  return column === null ? {} : ({ [name]: read(column) } as { [P in K]?: NonNullable<Payment[K]> })
}
