import { formatAddress } from './address.ts'
import type { PaymentRequest } from './payment-request.ts'

/**
 * A request as one line of JSON, as an import takes it: its terms, when it was made, and when it was cancelled. What follows from payments is
 * left out. Two requests that are equal are equal lines.
 */
export function formatRequestLine(request: PaymentRequest): string {
  const { requestId, salt, paymentReference, payee, amount, invoiceCurrency, paymentCurrency, network } = request
  const { reference, refundAddress, expiresAt, createdAt, cancelledAt } = request
  return JSON.stringify({
    requestId,
    salt,
    paymentReference,
    payee: formatAddress(payee),
    amount,
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
