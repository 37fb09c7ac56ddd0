import { type Address, addressFromDigits, addressToBytes } from '../domain/address.ts'
import { symbolOfCurrency } from '../domain/currency.ts'
import { trimNumeric } from '../domain/decimal.ts'
import { type Hex, hexToBytes } from '../domain/hex.ts'
import {
  bitsOfMarks,
  codeOfType,
  type ExchangeRate,
  marksOfBits,
  type Payment,
  type PaymentFee,
  type PaymentGas,
  type PaymentRefund,
  rankOfStatus,
  type StatusChange,
  statusOfRank,
  typeOfCode,
} from '../domain/payment.ts'
import type { Metadata } from '../domain/payment-request.ts'
import { parseTimestamp } from '../postgres/parse-timestamp.ts'
import type { TextRow } from '../postgres/wire-batch.ts'

/** A row of `payments` as the database returns it, but for `changed_at`, which no writer chooses. Amounts are numerics as text, bytes are Buffers, JSON is parsed. */
export interface PaymentRow {
  readonly account_id: number
  readonly id: string
  readonly status: number
  readonly type: number | null
  readonly final: boolean
  readonly imported: boolean
  /** Whether detection saw it on chain, in `block_number`. An imported `block_number` proves nothing. */
  readonly detected: boolean
  /** Whether it counts nowhere; see `supersede-imports.ts`. */
  readonly superseded: boolean
  readonly event_index: number | null
  readonly block_number: bigint | null
  /** Of the event, counted from 0 in its block. Null unless detection saw it. */
  readonly log_index: number | null
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
  /** By {@link bitsOfMarks}. */
  readonly marks: number
  /** Null without a pair. */
  readonly metadata: Metadata | null
  /** Hash of the imported line that the row was written from. Null for all other rows, and for all that were seen on chain. */
  readonly line_hash: Buffer | null
  /** `updatedAt` of the line that an imported row was written from: only a later line replaces it. */
  readonly line_updated_at: Date | null
}

/** The place in a row of each column that a payment is made of. */
const at = {
  id: 0,
  status: 1,
  type: 2,
  final: 3,
  event_index: 4,
  block_number: 5,
  confirmations: 6,
  timestamp: 7,
  updated_at: 8,
  changed_at: 9,
  network: 10,
  source_network: 11,
  chain_id: 12,
  currency: 13,
  invoice_currency: 14,
  amount: 15,
  amount_in_usd: 16,
  invoice_amount: 17,
  refunded_amount: 18,
  tx_hash: 19,
  source_tx_hash: 20,
  payer: 21,
  payee: 22,
  initiator: 23,
  token_address: 24,
  request_id: 25,
  payment_reference: 26,
  reference: 27,
  fees: 28,
  exchange_rates: 29,
  gas: 30,
  refunds: 31,
  status_history: 32,
  superseded: 33,
  marks: 34,
  metadata: 35,
} as const satisfies Partial<Record<keyof PaymentRow | 'changed_at', number>>

/** The columns that {@link paymentOfRow} reads, in this order. Other columns of a row come after them. */
export const readPaymentColumns = Object.keys(at) as readonly (keyof typeof at)[]

/** All columns of {@link PaymentRow}, in the order of COPY. */
export const paymentColumns = [
  'account_id',
  'imported',
  'detected',
  'currency_symbol',
  'line_hash',
  'line_updated_at',
  'log_index',
  ...readPaymentColumns.filter(
    (column): column is Exclude<typeof column, 'changed_at' | 'request_id'> =>
      column !== 'changed_at' && column !== 'request_id',
  ),
  'request_id',
] as const satisfies readonly (keyof PaymentRow)[]

/** The columns whose values do not come from the chain. */
export const ownColumns = [
  'account_id',
  'id',
  'status',
  'final',
  'imported',
  'detected',
  'superseded',
  'confirmations',
  'updated_at',
  'refunded_amount',
  'refunds',
  'status_history',
  'line_hash',
  'line_updated_at',
  'metadata',
] as const satisfies readonly (keyof PaymentRow)[]

/** The columns whose values come from the chain. An unknown value is null. */
export type PaymentFacts = Omit<PaymentRow, (typeof ownColumns)[number]>

/** The fields of a payment that come from the chain. */
type ChainFields = Omit<
  Payment,
  | 'id'
  | 'status'
  | 'superseded'
  | 'confirmations'
  | 'updatedAt'
  | 'changedAt'
  | 'refundedAmount'
  | 'refunds'
  | 'statusHistory'
  | 'metadata'
> & { readonly logIndex?: number }

/** The columns of a payment's fields that come from the chain. */
export function factsOfPayment(payment: ChainFields): PaymentFacts {
  return {
    type: orNull(payment.type, codeOfType),
    event_index: payment.eventIndex ?? null,
    block_number: payment.blockNumber ?? null,
    log_index: payment.logIndex ?? null,
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
    marks: bitsOfMarks(payment.marks),
  }
}

/**
 * The row of a payment.
 *
 * @param origin - the columns that are not part of it
 */
export function rowOfPayment(
  payment: Payment,
  origin: Pick<PaymentRow, 'account_id' | 'final' | 'imported' | 'detected' | 'line_hash' | 'line_updated_at'>,
): PaymentRow {
  return {
    ...origin,
    ...factsOfPayment(payment),
    id: payment.id,
    status: rankOfStatus(payment.status),
    superseded: payment.superseded ?? false,
    confirmations: payment.confirmations ?? null,
    updated_at: payment.updatedAt,
    refunded_amount: payment.refundedAmount,
    refunds: payment.refunds,
    status_history: payment.statusHistory,
    metadata: payment.metadata ?? null,
  }
}

/** Newest blocks by CAIP-2. */
export type Heads = ReadonlyMap<string, bigint>

/** No block is known, so only final payments have confirmations. */
export const NO_HEADS: Heads = new Map()

/**
 * The payment of a row, straight from the texts that the server sends, because most of them go out unchanged.
 *
 * @param row - begins with {@link readPaymentColumns}
 * @param heads - of the followed chains; the confirmations of a payment that is not final are counted up to them
 */
export function paymentOfRow(row: TextRow, heads: Heads): Payment {
  const chainId = known(row[at.chain_id], same)
  const blockNumber = known(row[at.block_number], BigInt)
  const confirmations = known(row[at.confirmations], Number)
  return {
    id: row[at.id] as string,
    status: statusOfRank(Number(row[at.status])),
    type: known(row[at.type], (code) => typeOfCode(Number(code))),
    timestamp: parseTimestamp(row[at.timestamp] as string),
    updatedAt: parseTimestamp(row[at.updated_at] as string),
    changedAt: parseTimestamp(row[at.changed_at] as string),
    amount: trimNumeric(row[at.amount] as string),
    currency: row[at.currency] as string,
    amountInUsd: known(row[at.amount_in_usd], trimNumeric),
    invoiceAmount: known(row[at.invoice_amount], trimNumeric),
    invoiceCurrency: known(row[at.invoice_currency], same),
    network: row[at.network] as string,
    chainId,
    txHash: known(row[at.tx_hash], toHex),
    blockNumber,
    eventIndex: known(row[at.event_index], Number),
    sourceNetwork: known(row[at.source_network], same),
    sourceTxHash: known(row[at.source_tx_hash], toHex),
    payer: known(row[at.payer], toAddress),
    payee: known(row[at.payee], toAddress),
    initiator: known(row[at.initiator], toAddress),
    tokenAddress: known(row[at.token_address], toAddress),
    requestId: known(row[at.request_id], digitsOf),
    paymentReference: known(row[at.payment_reference], toHex),
    reference: known(row[at.reference], same),
    fees: parsed(row[at.fees]) as PaymentFee[],
    exchangeRates: parsed(row[at.exchange_rates]) as ExchangeRate[],
    gas: known(row[at.gas], parsed) as PaymentGas | undefined,
    refunds: parsed(row[at.refunds]) as PaymentRefund[],
    refundedAmount: trimNumeric(row[at.refunded_amount] as string),
    statusHistory: parsed(row[at.status_history]) as StatusChange[],
    superseded: row[at.superseded] === 't' || undefined,
    marks: marksOfBits(Number(row[at.marks])),
    metadata: known(row[at.metadata], parsed) as Metadata | undefined,
    confirmations: isCountedUp(row) ? countUp(blockNumber, chainId, heads) : confirmations,
  } satisfies Readonly<Record<keyof Payment, unknown>>
}

/** Whether the confirmations of a row are counted at read, and not stored. */
export function isCountedUp(row: TextRow): boolean {
  return row[at.final] === 'f' && row[at.superseded] !== 't'
}

/** Counts both blocks. Unknown on a chain that is not followed. */
function countUp(block: bigint | undefined, chainId: string | undefined, heads: Heads): number | undefined {
  const head = chainId === undefined ? undefined : heads.get(chainId)
  if (head === undefined || block === undefined) return undefined
  // The head is read before the row, so the row's block can be newer.
  return head < block ? 1 : Number(head - block + 1n)
}

/** The value of a column; undefined for null. */
function known<T>(text: TextRow[number] | undefined, read: (text: string) => T): T | undefined {
  return text === null || text === undefined ? undefined : read(text)
}

function same(text: string): string {
  return text
}

/** The server writes bytes as `\x` and two digits for each. */
function digitsOf(bytes: string): string {
  return bytes.slice(2)
}

function toHex(bytes: string): Hex {
  return `0x${digitsOf(bytes)}`
}

function toAddress(bytes: string): Address {
  return addressFromDigits(digitsOf(bytes))
}

/** Most JSON columns are empty lists, which need no parser. */
function parsed(text: TextRow[number] | undefined): unknown {
  return text === '[]' ? [] : JSON.parse(text as string)
}

function orNull<T, R>(value: T | undefined, map: (value: T) => R): R | null {
  return value === undefined ? null : map(value)
}
