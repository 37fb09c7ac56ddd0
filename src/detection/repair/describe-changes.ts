import { addressFromBytes, formatAddress } from '../../domain/address.ts'
import { trimNumeric } from '../../domain/decimal.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { statusOfRank } from '../../domain/payment.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
import type { Findings } from '../match/detected.ts'
import type { AppliedChange } from '../write/account-change.ts'
import { rowKeyAt, rowKeyOf } from '../write/payment-rows.ts'

/** A correction of a stored payment or refund. */
export interface RecheckChange {
  readonly requestId: string
  readonly what: 'payment' | 'refund'
  /** Of a payment its id; of a refund `transaction:event`. */
  readonly id: string
  /** For example `REFUNDED -> CONFIRMED`, `removed: NOT_FROM_PAYEE`. */
  readonly change: string
}

/** Describes what a change did to payments and refunds. @param findings - tell why an event no longer counts */
export function describeChanges(
  changed: AppliedChange,
  findings: Pick<Findings, 'unmatched'>,
  { name: network, chainId }: { readonly name: string; readonly chainId: string },
): RecheckChange[] {
  const reasons = new Map(findings.unmatched.map((event) => [rowKeyAt(event, { network, chainId }), event.reason]))
  const removed = (row: PaymentRow | RefundRow) => `removed: ${reasons.get(rowKeyOf(row) ?? '') ?? 'not found'}`
  const { paymentsBefore, payments, refundsBefore, refunds } = changed
  const after = new Map(payments.map((row) => [row.id, row]))
  const ofPayments = [...new Map([...paymentsBefore, ...after]).keys()].flatMap((id) => {
    const [old, row] = [paymentsBefore.get(id), after.get(id)]
    const changes = old === undefined ? ['found'] : row === undefined ? [removed(old)] : differencesOf(old, row)
    const requestId = (row ?? old)?.request_id?.toString('hex') ?? ''
    return changes.map((change) => ({ requestId, what: 'payment' as const, id, change }))
  })
  const ofRefunds = (
    rows: readonly RefundRow[],
    others: readonly RefundRow[],
    describe: (row: RefundRow) => string,
  ) => {
    const keys = new Set(others.map(rowKeyOf))
    return rows
      .filter((row) => !keys.has(rowKeyOf(row)))
      .map((row) => ({
        requestId: row.request_id.toString('hex'),
        what: 'refund' as const,
        id: `${bytesToHex(row.tx_hash)}:${row.event_index}`,
        change: describe(row),
      }))
  }
  return [
    ...ofRefunds(refundsBefore, refunds, removed),
    ...ofRefunds(refunds, refundsBefore, ({ amount, currency }) => `found: ${trimNumeric(amount)} ${currency}`),
    ...ofPayments,
  ]
}

function differencesOf(old: PaymentRow, row: PaymentRow): string[] {
  const payerOf = ({ payer }: PaymentRow) => (payer === null ? 'unknown' : formatAddress(addressFromBytes(payer)))
  const fields: readonly (readonly [string, (of: PaymentRow) => string])[] = [
    ['payer ', payerOf],
    ['amount ', ({ amount }) => trimNumeric(amount)],
    ['refunded ', ({ refunded_amount }) => trimNumeric(refunded_amount)],
    ['', ({ status }) => statusOfRank(status)],
  ]
  return fields.flatMap(([name, textOf]) =>
    textOf(old) === textOf(row) ? [] : [`${name}${textOf(old)} -> ${textOf(row)}`],
  )
}
