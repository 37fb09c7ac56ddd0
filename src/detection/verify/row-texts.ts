import { type Address, addressFromBytes } from '../../domain/address.ts'
import { trimNumeric } from '../../domain/decimal.ts'
import { bytesToHex } from '../../domain/hex.ts'
import { type PaymentFee, type PaymentRefund, statusOfRank, typeOfCode } from '../../domain/payment.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import type { RefundRow } from '../../store/settle-requests.ts'
import type { UnmatchedEvent } from '../match/detected.ts'

/** The values of a row as texts, by field; unknown ones are absent. Rows are compared in this form. */
export type FieldTexts = Readonly<Record<string, string | undefined>>

/** A payment, without its values in US dollars. */
export function paymentTexts(row: PaymentRow): FieldTexts {
  const { gas } = row
  const status = statusOfRank(row.status)
  return {
    id: row.id,
    requestId: row.request_id?.toString('hex'),
    type: row.type === null ? undefined : typeOfCode(row.type),
    amount: trimNumeric(row.amount),
    currency: row.currency,
    currencySymbol: row.currency_symbol,
    invoiceAmount: row.invoice_amount === null ? undefined : trimNumeric(row.invoice_amount),
    invoiceCurrency: row.invoice_currency ?? undefined,
    network: row.network,
    chainId: row.chain_id ?? undefined,
    blockNumber: row.block_number?.toString(),
    eventIndex: row.event_index?.toString(),
    logIndex: row.log_index?.toString(),
    timestamp: timeText(row.timestamp),
    payer: addressText(row.payer),
    payee: addressText(row.payee),
    initiator: addressText(row.initiator),
    tokenAddress: addressText(row.token_address),
    paymentReference: row.payment_reference === null ? undefined : bytesToHex(row.payment_reference),
    reference: row.reference ?? undefined,
    fees: feesText(row.fees),
    gas: gas === null ? undefined : `${gas.used} at ${gas.price}, ${gas.amount} ${gas.currency}`,
    sourceNetwork: row.source_network ?? undefined,
    sourceTxHash: row.source_tx_hash === null ? undefined : bytesToHex(row.source_tx_hash),
    detected: String(row.detected),
    final: String(row.final),
    status,
    refunds: refundsText(row.refunds),
    refundedAmount: trimNumeric(row.refunded_amount),
    statusHistory: row.status_history.at(-1)?.status ?? status,
    superseded: String(row.superseded),
  }
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

export function refundTexts(row: RefundRow): FieldTexts {
  return {
    requestId: row.request_id.toString('hex'),
    amount: trimNumeric(row.amount),
    currency: row.currency,
    recipient: addressText(row.recipient),
    blockNumber: row.block_number.toString(),
    logIndex: row.log_index?.toString(),
    timestamp: timeText(row.timestamp),
    final: String(row.final),
  }
}

export function unmatchedTexts({ reason, topic, blockNumber, timestamp, event }: UnmatchedEvent): FieldTexts {
  const { emitter, token, to, amount, feeAmount, feeAddress, invoiceAmount, invoiceCurrency } = event
  const logged = { emitter, token, to, amount, feeAmount, feeAddress, invoiceAmount, invoiceCurrency }
  return { reason, topic, blockNumber: String(blockNumber), timestamp: timeText(timestamp), ...logged }
}

function timeText(time: Date): string {
  return time.toISOString().replace('.000Z', 'Z')
}

function addressText(bytes: Buffer | null): Address | undefined {
  return bytes === null ? undefined : addressFromBytes(bytes)
}
