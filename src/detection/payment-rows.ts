import { addressToBytes } from '../domain/address.ts'
import { formatDecimal, parseDecimal } from '../domain/decimal.ts'
import { hexToBytes } from '../domain/hex.ts'
import {
  codeOfType,
  type ExchangeRate,
  type PaymentFee,
  type PaymentGas,
  type PaymentRefund,
  type StatusChange,
} from '../domain/payment.ts'
import type { DetectedPayment } from './detected.ts'

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
}

/** The chain that is written for. */
export interface WrittenChain {
  /** CAIP-2. */
  readonly chainId: string
  /** Canonical name. */
  readonly network: string
}

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
>

/** Turns a detected payment into its columns. */
export function factsOf(payment: DetectedPayment, chain: WrittenChain): PaymentFacts {
  const txHash = hexToBytes(payment.txHash)
  return {
    type: codeOfType(payment.type),
    event_index: payment.eventIndex,
    block_number: BigInt(payment.blockNumber),
    timestamp: payment.timestamp,
    network: chain.network,
    source_network: chain.network,
    chain_id: chain.chainId,
    currency: payment.currency,
    currency_symbol: payment.currencySymbol,
    invoice_currency: payment.invoiceCurrency,
    amount: payment.amount,
    amount_in_usd: payment.amountInUsd ?? null,
    invoice_amount: payment.invoiceAmount,
    tx_hash: txHash,
    source_tx_hash: txHash,
    payer: payment.payer === undefined ? null : addressToBytes(payment.payer),
    payee: addressToBytes(payment.payee),
    initiator: addressToBytes(payment.initiator),
    token_address: payment.tokenAddress === undefined ? null : addressToBytes(payment.tokenAddress),
    request_id: hexToBytes(payment.requestId),
    payment_reference: hexToBytes(payment.paymentReference),
    reference: payment.reference ?? null,
    fees: payment.fees,
    exchange_rates: payment.exchangeRates,
    gas: payment.gas ?? null,
  }
}

/** Where a payment's event is, as one text; undefined while a row does not say. */
export function eventKeyOf(row: Pick<PaymentRow, 'tx_hash' | 'event_index' | 'network'>): string | undefined {
  if (row.tx_hash === null || row.event_index === null) return undefined
  return `${row.tx_hash.toString('hex')} ${row.event_index} ${row.network}`
}

/**
 * Brings what the chain tells into a stored row. A detected row of that block says it already, and stays as it is even if a
 * price has become unknown since; of an imported one the chain's facts win where there are any.
 *
 * @returns the given row when nothing changes
 */
export function mergeFacts(row: PaymentRow, facts: PaymentFacts): PaymentRow {
  if (!row.imported && row.block_number === facts.block_number) return row
  const known = Object.entries(facts).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  )
  const merged = { ...row, ...(Object.fromEntries(known) as Partial<PaymentFacts>) }
  const changed = known.some(([name, value]) => !isSameValue(row[name as keyof PaymentRow], value))
  return changed ? merged : row
}

/** Whether two values of a column are the same to the database. */
function isSameValue(a: unknown, b: unknown): boolean {
  return canonicalValue(a) === canonicalValue(b)
}

function canonicalValue(value: unknown): string {
  if (Buffer.isBuffer(value)) return value.toString('hex')
  if (value instanceof Date) return String(value.getTime())
  if (typeof value === 'object' && value !== null) return JSON.stringify(sortKeys(value))
  const decimal = typeof value === 'string' ? parseDecimal(value) : undefined
  return decimal === undefined ? String(value) : formatDecimal(decimal)
}

/** JSON columns come back with their keys in another order. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, sortKeys(inner)]))
}

/** The row as it is sent: JSON columns as text. */
export function toInsert(row: PaymentRow): Record<string, unknown> {
  return {
    ...row,
    fees: JSON.stringify(row.fees),
    exchange_rates: JSON.stringify(row.exchange_rates),
    gas: row.gas === null ? null : JSON.stringify(row.gas),
    refunds: JSON.stringify(row.refunds),
    status_history: JSON.stringify(row.status_history),
  }
}
