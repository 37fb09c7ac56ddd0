import { formatDecimal, trimNumeric } from '../../domain/decimal.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { marksOfBits, type PaymentFee, type PaymentRefund, statusOfRank, typeOfCode } from '../../domain/payment.ts'
import { settledStatuses } from '../../domain/payment-request.ts'
import { ownColumns, type PaymentRow, paymentColumns } from '../../store/payment-row.ts'
import type { LedgerRequestRow, RefundRow } from '../../store/settle-requests.ts'
import { eventKeyOf, type UnmatchedEvent } from '../match/detected.ts'
import { readRows } from '../sql/read-rows.ts'
import type { AppliedChange } from '../write/account-change.ts'
import { rowKeyOf } from '../write/payment-rows.ts'
import type { Corrected } from '../write/payment-writer.ts'
import type { VerifyDifference } from './verify-report.ts'

type Place = Omit<VerifyDifference, 'field' | 'stored' | 'chain'>

/** What a correction of an account's requests changes, one difference for each field. @param account - its name */
export function describeCorrection(corrected: Corrected, account: string): VerifyDifference[] {
  const { paymentsBefore, payments, refundsBefore, refunds, unmatchedBefore, unmatched } = corrected
  const reasons = new Map(unmatched.map((event) => [eventKeyOf(event), `unmatched: ${event.reason}`]))
  const byEvent = (rows: readonly RefundRow[]) => new Map(rows.map((row) => [rowKeyOf(row), row]))
  const paymentsNow = new Map(payments.map((row) => [row.id, row]))
  return [
    ...compareRows(paymentsBefore, paymentsNow, { kind: 'PAYMENT', account, reasons, textsOf: paymentTexts }),
    ...compareRows(byEvent(refundsBefore), byEvent(refunds), {
      kind: 'REFUND',
      account,
      reasons,
      textsOf: refundTexts,
    }),
    ...compareUnmatched(unmatchedBefore, unmatched, account),
    ...compareStandings(corrected, account),
  ]
}

/** What some rows are, and how they are reported. */
interface RowTerms<Row> {
  readonly kind: 'PAYMENT' | 'REFUND'
  readonly account: string
  /** Why events are unmatched, by {@link eventKeyOf}. */
  readonly reasons: ReadonlyMap<string, string>
  readonly textsOf: (row: Row) => FieldTexts
}

function compareRows<Key, Row extends PaymentRow | RefundRow>(
  before: ReadonlyMap<Key, Row>,
  after: ReadonlyMap<Key, Row>,
  terms: RowTerms<Row>,
): VerifyDifference[] {
  return keysOf(before, after).flatMap((key) => {
    const [old, row] = [before.get(key), after.get(key)]
    const at = placeOf(row ?? (old as Row), terms)
    if (old === undefined || row === undefined) return wholeRow(at, old, row, terms.reasons)
    return old === row ? [] : differencesOf(at, terms.textsOf(old), terms.textsOf(row))
  })
}

function keysOf<Key>(before: ReadonlyMap<Key, unknown>, after: ReadonlyMap<Key, unknown>): Key[] {
  return [...new Set([...before.keys(), ...after.keys()])]
}

/** @param account - absent for events of no account */
export function compareUnmatched(
  before: readonly UnmatchedEvent[],
  after: readonly UnmatchedEvent[],
  account: string | undefined,
): VerifyDifference[] {
  const byEvent = (events: readonly UnmatchedEvent[]) => new Map(events.map((event) => [eventKeyOf(event), event]))
  const [old, found] = [byEvent(before), byEvent(after)]
  return keysOf(old, found).flatMap((key) => {
    const [stored, event] = [old.get(key), found.get(key)]
    const { txHash, eventIndex, blockNumber } = (event ?? stored) as UnmatchedEvent
    const at = { kind: 'UNMATCHED', account, txHash, eventIndex, blockNumber } as const
    if (stored === undefined || event === undefined) {
      return [{ ...at, field: 'row', stored: stored?.reason, chain: event?.reason }]
    }
    return differencesOf(at, unmatchedTexts(stored), unmatchedTexts(event))
  })
}

function compareStandings({ requestsBefore, standings }: AppliedChange, account: string): VerifyDifference[] {
  const before = new Map(requestsBefore.map((row) => [row.request_id.toString('hex'), row]))
  return standings.flatMap(({ requestId, status, paidAmount, pendingAmount, heldAmount }) => {
    const id = requestId.toString('hex')
    const row = before.get(id) as LedgerRequestRow
    const stored = {
      status: settledStatuses[row.status - 1],
      paidAmount: trimNumeric(row.paid),
      pendingAmount: trimNumeric(row.pending),
      heldAmount: trimNumeric(row.held),
    }
    const [paid, pending, held] = [paidAmount, pendingAmount, heldAmount].map(formatDecimal)
    const expected = { status, paidAmount: paid, pendingAmount: pending, heldAmount: held }
    return differencesOf({ kind: 'REQUEST', account, requestId: id }, stored, expected)
  })
}

function placeOf<Row extends PaymentRow | RefundRow>(row: Row, { kind, account }: RowTerms<Row>): Place {
  return {
    kind,
    account,
    txHash: row.tx_hash === null ? undefined : bytesToHex(row.tx_hash),
    eventIndex: row.event_index ?? undefined,
    blockNumber: row.block_number === null ? undefined : Number(row.block_number),
    requestId: row.request_id?.toString('hex'),
    paymentId: 'id' in row ? row.id : undefined,
  }
}

/** A row that is missing, or that should not be there. */
function wholeRow(
  at: Place,
  old: PaymentRow | RefundRow | undefined,
  row: PaymentRow | RefundRow | undefined,
  reasons: ReadonlyMap<string, string>,
): VerifyDifference[] {
  const describe = ({ amount, currency, request_id }: PaymentRow | RefundRow) =>
    `${trimNumeric(amount)} ${currency} for request ${request_id?.toString('hex')}`
  const { txHash = '', eventIndex = -1 } = at
  const chain = row === undefined ? reasons.get(`${txHash} ${eventIndex}`) : describe(row)
  return [{ ...at, field: 'row', stored: old && describe(old), chain }]
}

function differencesOf(at: Place, stored: FieldTexts, chain: FieldTexts): VerifyDifference[] {
  return Object.keys(chain)
    .filter((field) => stored[field] !== chain[field])
    .map((field) => ({ ...at, field, stored: stored[field], chain: chain[field] }))
}

/** The values of a row as texts, by field; unknown ones are absent. Rows are compared in this form. */
type FieldTexts = Readonly<Record<string, string | undefined>>

/** Columns that verify does not compare: the account, what no chain says, and values of the time that may no longer be readable. */
const notCompared: ReadonlySet<string> = new Set<keyof PaymentRow>([
  'account_id',
  'imported',
  'confirmations',
  'updated_at',
  'tx_hash',
  'amount_in_usd',
  'exchange_rates',
  'line_hash',
  'line_updated_at',
])

const ownNames: ReadonlySet<string> = new Set(ownColumns)

/** Columns whose plain text says too little or too much. */
const columnTexts: { readonly [Name in keyof PaymentRow]?: (row: PaymentRow) => string | undefined } = {
  type: (row) => (row.type === null ? undefined : typeOfCode(row.type)),
  amount: (row) => trimNumeric(row.amount),
  invoice_amount: (row) => (row.invoice_amount === null ? undefined : trimNumeric(row.invoice_amount)),
  refunded_amount: (row) => trimNumeric(row.refunded_amount),
  fees: (row) => feesText(row.fees),
  gas: ({ gas }) => (gas === null ? undefined : `${gas.used} at ${gas.price}, ${gas.amount} ${gas.currency}`),
  marks: (row) => marksOfBits(row.marks).join(', '),
  status: (row) => statusOfRank(row.status),
  refunds: (row) => refundsText(row.refunds),
  status_history: (row) => row.status_history.at(-1)?.status ?? statusOfRank(row.status),
}

/** What the chain says, then what follows from it. */
const comparedColumns = paymentColumns
  .filter((name) => !notCompared.has(name))
  .toSorted((a, b) => Number(ownNames.has(a)) - Number(ownNames.has(b)))

function paymentTexts(row: PaymentRow): FieldTexts {
  return textsOf(Object.fromEntries(comparedColumns.map((name) => [name, columnTexts[name]?.(row) ?? row[name]])))
}

/** Fields as {@link readRows} reads the columns, as texts. */
function textsOf(columns: object): FieldTexts {
  const [fields = {}] = readRows<Record<string, unknown>>([columns])
  return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, plainText(value)]))
}

function plainText(value: unknown): string | undefined {
  if (value === undefined) return undefined
  if (value instanceof Date) return timeText(value)
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function feesText(fees: readonly PaymentFee[]): string {
  return fees
    .map(({ type, amount, currency, receiverAddress = '' }) => [type, amount, currency, receiverAddress].join(' '))
    .join(', ')
}

/** Refunds of a payment as one text, in a fixed order. */
function refundsText(refunds: readonly PaymentRefund[]): string {
  return refunds
    .map(({ amount, txHash, eventIndex = '', excess }) => [
      `${amount} by ${txHash}`,
      eventIndex,
      excess ? 'excess' : '',
    ])
    .map((words) => words.join(' ').trim())
    .toSorted()
    .join(', ')
}

function refundTexts(row: RefundRow): FieldTexts {
  const { request_id, block_number, log_index, timestamp, final, currency, recipient } = row
  const amount = trimNumeric(row.amount)
  return textsOf({ request_id, block_number, log_index, timestamp, final, amount, currency, recipient })
}

function unmatchedTexts({ reason, topic, blockNumber, timestamp, event }: UnmatchedEvent): FieldTexts {
  const { emitter, token, to, amount, feeAmount, feeAddress, invoiceAmount, invoiceCurrency } = event
  const logged = { emitter, token, to, amount, feeAmount, feeAddress, invoiceAmount, invoiceCurrency }
  return { reason, topic, blockNumber: String(blockNumber), timestamp: timeText(timestamp), ...logged }
}

function timeText(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z')
}
