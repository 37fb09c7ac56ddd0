import { formatAddress } from './address.ts'
import { formatDecimal } from './decimal.ts'
import type { PaymentRequest } from './payment-request.ts'

/**
 * Writes a request as one line of JSON that an import reads: its terms, when it was created, and when it was cancelled. What follows from
 * payments is left out. Equal requests make equal lines.
 */
export function formatRequestLine(request: PaymentRequest): string {
  const { requestId, salt, paymentReference, payee, amount, invoiceCurrency, paymentCurrency, network } = request
  const { reference, refundAddress, expiresAt, createdAt, cancelledAt } = request
  return JSON.stringify({
    requestId,
    salt,
    paymentReference,
    payee: formatAddress(payee),
    amount: formatDecimal(amount),
    invoiceCurrency,
    paymentCurrency,
    network,
    reference,
    refundAddress: refundAddress && formatAddress(refundAddress),
    expiresAt,
    createdAt,
    cancelledAt,
  })
}
