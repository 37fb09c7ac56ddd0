import { type Address, addressFromBytes } from '../domain/address.ts'
import { bytesToHex } from '../domain/hex.ts'
import {
  type ExchangeRate,
  type Payment,
  type PaymentFee,
  type PaymentGas,
  type PaymentRefund,
  type StatusChange,
  statusOfRank,
  typeOfCode,
} from '../domain/payment.ts'

/** A row of `payments` as it is read, without what only the writer needs. */
export interface PaymentRow {
  readonly id: string
  readonly status: number
  readonly type: number | null
  readonly final: boolean
  readonly event_index: number | null
  readonly block_number: bigint | null
  readonly confirmations: number | null
  readonly timestamp: Date
  readonly updated_at: Date
  readonly network: string
  readonly source_network: string | null
  readonly chain_id: string | null
  readonly currency: string
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
}

/** The columns of {@link PaymentRow}. */
export const paymentColumns = [
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
] as const satisfies readonly (keyof PaymentRow)[]

/**
 * The payment of a row.
 *
 * @param headBlock - the newest block of the payment's chain, where it is followed: a payment that is not final counts its confirmations
 * up to it
 */
export function paymentOfRow(row: PaymentRow, headBlock: bigint | undefined): Payment {
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

/** The property when the column is known, else nothing: what is unknown is absent. */
function known<K extends keyof Payment, C>(
  name: K,
  column: C | null,
  read: (value: C) => NonNullable<Payment[K]>,
): { [P in K]?: NonNullable<Payment[K]> } {
  return column === null ? {} : ({ [name]: read(column) } as { [P in K]?: NonNullable<Payment[K]> })
}
