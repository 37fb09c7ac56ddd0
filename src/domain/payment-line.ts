import { formatAddress, formatStoredAddress } from './address.ts'
import { formatTxHash } from './chain.ts'
import { given } from './collections.ts'
import type { ExchangeRate, Payment, PaymentFee, PaymentGas, PaymentRefund, PaymentStatus } from './payment.ts'

/**
 * A payment as one line of a file: the JSON that search returns, without the derived fields. Export writes it, import reads it. Values have
 * the wire forms of the API; what is unknown is absent.
 */
export type PaymentLine = ReturnType<typeof toPaymentLine>
export type FeeEntry = ReturnType<typeof toFee>
export type RateEntry = ReturnType<typeof toRate>
export type GasEntry = ReturnType<typeof toGas>
export type RefundEntry = ReturnType<typeof toRefund>

/** Fields of search answers that follow from others, and the stamp, which is that of one database. Export does not write them and import ignores them. */
export const derivedPaymentFields: ReadonlySet<string> = new Set([
  'changedAt',
  'completed',
  'destinationNetwork',
  'destinationTxHash',
  'links',
])

/** Whether an imported payment of this status is final. A line has no field for it; detected payments are pending until final, too. */
export function isFinalStatus(status: PaymentStatus): boolean {
  return status !== 'PENDING'
}

/** Writes a payment as a line, without the end of line. Equal payments have equal lines, byte for byte. */
export function formatPaymentLine(payment: Payment): string {
  return JSON.stringify(toPaymentLine(payment))
}

/** A line has every field of a payment but the stamp. */
type LineField = Exclude<keyof Payment, 'changedAt' | 'amountInUsd'> | 'amountInUSD'

/** The values of a payment's line. */
export function toPaymentLine(payment: Payment) {
  const { network, sourceNetwork = network, txHash, sourceTxHash, blockNumber } = payment
  return {
    id: payment.id,
    status: payment.status,
    // Absent until the payment is final, because it changes with each block.
    confirmations: isFinalStatus(payment.status) ? payment.confirmations : undefined,
    type: payment.type,
    timestamp: formatTime(payment.timestamp),
    updatedAt: formatTime(payment.updatedAt),
    amount: payment.amount,
    currency: payment.currency,
    amountInUSD: payment.amountInUsd,
    invoiceAmount: payment.invoiceAmount,
    invoiceCurrency: payment.invoiceCurrency,
    network,
    chainId: payment.chainId,
    txHash: given(txHash, (hash) => formatTxHash(network, hash)),
    blockNumber: given(blockNumber, String),
    eventIndex: payment.eventIndex,
    sourceNetwork: payment.sourceNetwork,
    sourceTxHash: given(sourceTxHash, (hash) => formatTxHash(sourceNetwork, hash)),
    payer: given(payment.payer, formatAddress),
    payee: given(payment.payee, formatAddress),
    initiator: given(payment.initiator, formatAddress),
    tokenAddress: given(payment.tokenAddress, formatAddress),
    requestId: payment.requestId,
    paymentReference: payment.paymentReference,
    reference: payment.reference,
    fees: payment.fees.map(toFee),
    exchangeRates: payment.exchangeRates.map(toRate),
    gas: given(payment.gas, toGas),
    refunds: payment.refunds.map(toRefund),
    refundedAmount: payment.refundedAmount,
    statusHistory: payment.statusHistory.map(({ status, at }) => ({ status, at: formatTime(new Date(at)) })),
    superseded: payment.superseded,
    marks: payment.marks,
    metadata: payment.metadata ?? {},
  } satisfies Readonly<Record<LineField, unknown>>
}

function toFee({ type, stage, provider, amount, currency, amountInUsd, ...rest }: PaymentFee) {
  const receiverAddress = given(rest.receiverAddress, formatStoredAddress)
  return { type, stage, provider, amount, currency, amountInUSD: amountInUsd, receiverAddress, network: rest.network }
}

function toRate({ from, to, rate, source, at }: ExchangeRate) {
  return { from, to, rate, source, at: given(at, (time) => formatTime(new Date(time))) }
}

function toGas({ used, price, amount, currency, amountInUsd }: PaymentGas) {
  return { used, price, amount, currency, amountInUSD: amountInUsd }
}

function toRefund({ amount, currency, network, txHash, eventIndex, ...rest }: PaymentRefund) {
  const timestamp = given(rest.timestamp, (text) => formatTime(new Date(text)))
  const recipient = given(rest.recipient, formatStoredAddress)
  const hash = formatTxHash(network, txHash)
  return { amount, currency, network, txHash: hash, eventIndex, timestamp, recipient, excess: rest.excess }
}

/** In UTC; without milliseconds when they are 0. */
function formatTime(time: Date): string {
  const text = time.toISOString()
  return text.endsWith('.000Z') ? `${text.slice(0, -5)}Z` : text
}
