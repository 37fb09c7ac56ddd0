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
  const { unmatchedBefore, unmatched } = corrected
  const reasons = new Map(unmatched.map((event) => [eventKeyOf(event), `unmatched: ${event.reason}`]))
  return [
    ...comparePayments(corrected, account, reasons),
    ...compareRefunds(corrected, account, reasons),
    ...compareUnmatched(unmatchedBefore, unmatched, account),
    ...compareStandings(corrected, account),
  ]
}

function comparePayments(
  { paymentsBefore, payments }: AppliedChange,
  account: string,
  reasons: ReadonlyMap<string, string>,
): VerifyDifference[] {
  const after = new Map(payments.map((row) => [row.id, row]))
  return [...new Set([...paymentsBefore.keys(), ...after.keys()])].flatMap((id) => {
    const [old, row] = [paymentsBefore.get(id), after.get(id)]
    const at = { ...placeOf(row ?? (old as PaymentRow), 'PAYMENT', account), paymentId: id }
    if (old === undefined || row === undefined) return wholeRow(at, old, row, reasons)
    return old === row ? [] : differencesOf(at, paymentTexts(old), paymentTexts(row))
  })
}

function compareRefunds(
  { refundsBefore, refunds }: AppliedChange,
  account: string,
  reasons: ReadonlyMap<string, string>,
): VerifyDifference[] {
  const [before, after] = [refundsBefore, refunds].map((rows) => new Map(rows.map((row) => [rowKeyOf(row), row])))
  return [...new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])].flatMap((key) => {
    const [old, row] = [before?.get(key), after?.get(key)]
    const at = placeOf(row ?? (old as RefundRow), 'REFUND', account)
    if (old === undefined || row === undefined) return wholeRow(at, old, row, reasons)
    return differencesOf(at, refundTexts(old), refundTexts(row))
  })
}

/** @param account - absent for events of no account */
export function compareUnmatched(
  before: readonly UnmatchedEvent[],
  after: readonly UnmatchedEvent[],
  account: string | undefined,
): VerifyDifference[] {
  const [old, found] = [before, after].map((events) => new Map(events.map((event) => [eventKeyOf(event), event])))
  return [...new Set([...(old?.keys() ?? []), ...(found?.keys() ?? [])])].flatMap((key) => {
    const [stored, event] = [old?.get(key), found?.get(key)]
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

function placeOf(row: PaymentRow | RefundRow, kind: 'PAYMENT' | 'REFUND', account: string): Place {
  return {
    kind,
    account,
    txHash: row.tx_hash === null ? undefined : bytesToHex(row.tx_hash),
    eventIndex: row.event_index ?? undefined,
    blockNumber: row.block_number === null ? undefined : Number(row.block_number),
    requestId: row.request_id?.toString('hex'),
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
