import { type Address, addressFromBytes } from '../domain/address.ts'
import {
  compareDecimals,
  type Decimal,
  formatDecimal,
  readStoredDecimal,
  subtractDecimals,
  sumDecimals,
  ZERO,
} from '../domain/decimal.ts'
import { bytesToHex } from '../domain/hex.ts'
import { type PaymentRefund, rankOfStatus, statusOfRank } from '../domain/payment.ts'
import { isSameMetadata, type Metadata, rankOfSettledStatus, type SettledAmounts } from '../domain/payment-request.ts'
import { decideStanding, type LedgerPayment, type LedgerRefund, type PaymentStanding } from '../domain/standing.ts'
import { isSameValue, NOT_ALLOWED } from './payment-facts.ts'
import type { PaymentRow } from './payment-row.ts'

/** The columns of `requests` that settling reads. Amounts are numerics as text. */
export interface LedgerRequestRow {
  readonly request_id: Buffer
  readonly payee: Buffer
  readonly network: string
  readonly allowed_payers: string | null
  readonly metadata: Metadata | null
  readonly amount: string
  readonly invoice_currency: string
  /** Rank of what payments make of it. */
  readonly status: number
  readonly paid: string
  readonly pending: string
  readonly held: string
  /** Whether more is held than asked for: for the index of lists. Null until it is settled. */
  readonly overpaid: boolean | null
}

/** A row of `refunds`, as the database returns it. */
export interface RefundRow {
  readonly account_id: number
  readonly tx_hash: Buffer
  readonly event_index: number
  readonly network: string
  readonly chain_id: string
  readonly request_id: Buffer
  readonly block_number: bigint
  /** Null in rows of before the column. */
  readonly log_index: number | null
  readonly timestamp: Date
  readonly final: boolean
  readonly amount: string
  readonly currency: string
  /** Null in rows of before the column. */
  readonly recipient: Buffer | null
}

/** Requests that are settled together, and all that was paid and returned for them. */
interface Settling {
  readonly requests: readonly LedgerRequestRow[]
  readonly payments: readonly PaymentRow[]
  readonly refunds: readonly RefundRow[]
  /** Payments as they are stored, by id. */
  readonly stored: ReadonlyMap<string, PaymentRow>
  readonly now: Date
}

/** What settling changes in the row of a request. */
export interface RequestStanding extends SettledAmounts {
  readonly requestId: Buffer
}

/** Settles requests by `domain/standing.ts`. Reads and writes nothing. */
export function settleRequests({ requests, payments, refunds, stored, now }: Settling) {
  const requestOf = new Map(requests.map((request) => [request.request_id.toString('hex'), request]))
  const groups = Map.groupBy(payments, (row) => row.request_id?.toString('hex') ?? '')
  const refundsOf = Map.groupBy(refunds, (row) => row.request_id.toString('hex'))
  const withoutRequest = [...groups].flatMap(([requestId, rows]) => (requestOf.has(requestId) ? [] : rows))
  const standings: RequestStanding[] = []
  const ofRequests = [...requestOf].flatMap(([requestId, request]) => {
    const rows = groups.get(requestId) ?? []
    const known = (refundsOf.get(requestId) ?? []).map(toLedgerRefund)
    const { payments: states, ...amounts } = decideStanding({
      expected: readStoredDecimal(request.amount),
      payments: rows.filter(({ superseded }) => !superseded).map((row) => toLedgerPayment(row, request, known)),
      refunds: known,
    })
    if (!isStored(request, amounts)) standings.push({ requestId: request.request_id, ...amounts })
    return rows.map((each) => {
      const row = withMetadata(markPayer(each, request), request)
      return row.superseded ? leaveOut(row, now) : applyState(row, states.get(row.id), { stored, now })
    })
  })
  return {
    /** All payments; the given row itself where nothing changed. */
    settled: [...withoutRequest, ...ofRequests],
    /** Of the requests that changed. */
    standings,
  }
}

function isStored(
  { status, amount, paid, pending, held, overpaid }: LedgerRequestRow,
  { status: settled, paidAmount, pendingAmount, heldAmount }: SettledAmounts,
): boolean {
  const isOverpaid = compareDecimals(heldAmount, readStoredDecimal(amount)) > 0
  const isSame = (text: string, amount: Decimal) => compareDecimals(readStoredDecimal(text), amount) === 0
  return (
    status === rankOfSettledStatus(settled) &&
    (overpaid ?? false) === isOverpaid &&
    isSame(paid, paidAmount) &&
    isSame(pending, pendingAmount) &&
    isSame(held, heldAmount)
  )
}

/** Marks a payment whose payer is known, and is not one of those that may pay. */
function markPayer(row: PaymentRow, { allowed_payers }: LedgerRequestRow): PaymentRow {
  const payer = addressOf(row.payer)
  const isForeign = payer !== undefined && allowed_payers?.split(' ').includes(payer) === false
  const marks = isForeign ? row.marks | NOT_ALLOWED : row.marks & ~NOT_ALLOWED
  return marks === row.marks ? row : { ...row, marks }
}

/** Gives a payment the metadata of its request. */
function withMetadata(row: PaymentRow, { metadata }: LedgerRequestRow): PaymentRow {
  return isSameMetadata(row.metadata ?? {}, metadata ?? {}) ? row : { ...row, metadata }
}

function applyState(
  row: PaymentRow,
  state: PaymentStanding | undefined,
  { stored, now }: Pick<Settling, 'stored' | 'now'>,
): PaymentRow {
  const isNew = !stored.has(row.id)
  const isMoved = state !== undefined && (isNew || row.status !== rankOfStatus(state.status))
  if (state !== undefined && (isMoved || !hasRefunds(row, state))) {
    const { status, refunds, refundedAmount } = state
    return {
      ...row,
      status: rankOfStatus(status),
      refunds,
      refunded_amount: formatDecimal(refundedAmount),
      status_history: isMoved ? [...row.status_history, { status, at: now.toISOString() }] : row.status_history,
      updated_at: later(row.updated_at, now),
    }
  }
  return stored.get(row.id) === row ? row : { ...row, updated_at: later(row.updated_at, now) }
}

/** A superseded payment, for which nothing is decided. What a reorg removed is no longer final, and has only the refunds that an import brought. */
function leaveOut(row: PaymentRow, now: Date): PaymentRow {
  const refunds = row.refunds.filter(({ imported }) => imported === true)
  const isPending = !row.final && row.status !== rankOfStatus('FAILED')
  const isMoved = isPending && row.status !== rankOfStatus('PENDING')
  if (!isMoved && refunds.length === row.refunds.length) return row
  const dropped = row.refunds.filter(({ imported }) => imported !== true)
  const refunded = dropped.reduce(
    (sum, { amount }) => subtractDecimals(sum, readStoredDecimal(amount)),
    readStoredDecimal(row.refunded_amount),
  )
  return {
    ...row,
    status: isMoved ? rankOfStatus('PENDING') : row.status,
    refunds,
    refunded_amount: formatDecimal(refunded),
    status_history: isMoved
      ? [...row.status_history, { status: 'PENDING', at: now.toISOString() }]
      : row.status_history,
    updated_at: later(row.updated_at, now),
  }
}

function hasRefunds(row: PaymentRow, { refunds, refundedAmount }: PaymentStanding): boolean {
  const isSameSum = compareDecimals(readStoredDecimal(row.refunded_amount), refundedAmount) === 0
  return isSameSum && isSameValue(row.refunds, refunds)
}

/** An import may have brought an `updatedAt` in the future. It is kept, or the same line would replace the row each time. */
function later(a: Date, b: Date): Date {
  return a > b ? a : b
}

/**
 * A stored payment as the walk takes it.
 *
 * @param known - the refunds of the request that were found on chain
 */
function toLedgerPayment(row: PaymentRow, request: LedgerRequestRow, known: readonly LedgerRefund[]): LedgerPayment {
  const inInvoiceCurrency = row.currency === request.invoice_currency ? row.amount : '0'
  return {
    id: row.id,
    place: placeOf(row),
    final: row.final,
    status: statusOfRank(row.status),
    amount: readStoredDecimal(row.amount),
    currency: row.currency,
    counted: readStoredDecimal(row.invoice_amount ?? inInvoiceCurrency),
    payer: addressOf(row.payer),
    isToSelf: isToSelf(row, request),
    ...importedReturns(row, known),
  }
}

/** Of an event that detection has read, detection judges: a bridge's word alone, which may have set the payer since, un-counts nothing. */
function isToSelf({ detected, payer, payee }: PaymentRow, request: LedgerRequestRow): boolean {
  return !detected && payer?.equals(payee ?? request.payee) === true
}

/** What an import says was returned of a payment, without refunds that were found on chain. */
function importedReturns(
  { refunds, refunded_amount }: PaymentRow,
  known: readonly LedgerRefund[],
): Pick<LedgerPayment, 'importedRefunds' | 'otherwiseReturned'> {
  const listed = sumDecimals(refunds.map(({ amount }) => readStoredDecimal(amount)))
  const beyond = subtractDecimals(readStoredDecimal(refunded_amount), listed)
  return {
    importedRefunds: refunds.filter((entry) => entry.imported === true && !isKnown(entry, known)),
    otherwiseReturned: beyond.units > 0n ? beyond : ZERO,
  }
}

/** Whether the refund of an imported entry was found on chain, which decides what it returned. */
function isKnown({ txHash, eventIndex }: PaymentRefund, known: readonly LedgerRefund[]): boolean {
  return known.some((each) => each.txHash === txHash && (eventIndex === undefined || each.eventIndex === eventIndex))
}

/** A stored refund as the walk takes it. */
function toLedgerRefund(row: RefundRow): LedgerRefund {
  return {
    txHash: bytesToHex(row.tx_hash),
    eventIndex: row.event_index,
    network: row.network,
    place: placeOf(row),
    final: row.final,
    amount: readStoredDecimal(row.amount),
    currency: row.currency,
    recipient: addressOf(row.recipient),
  }
}

function placeOf({ timestamp, block_number, log_index }: PaymentRow | RefundRow) {
  return { timestamp, blockNumber: block_number ?? undefined, logIndex: log_index ?? undefined }
}

function addressOf(bytes: Buffer | null): Address | undefined {
  return bytes === null ? undefined : addressFromBytes(bytes)
}
