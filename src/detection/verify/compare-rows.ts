import { formatDecimal, trimNumeric } from '../../domain/decimal.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { settledStatuses } from '../../domain/payment-request.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { LedgerRequestRow, RefundRow } from '../../store/settle-requests.ts'
import { eventKeyOf, type UnmatchedEvent } from '../match/detected.ts'
import type { AppliedChange } from '../write/account-change.ts'
import { rowKeyOf } from '../write/payment-rows.ts'
import type { Corrected } from '../write/payment-writer.ts'
import { type FieldTexts, paymentTexts, refundTexts, unmatchedTexts } from './row-texts.ts'
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

/** What some rows are, and how they are told. */
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
