import { formatAddress } from './address.ts'
import { formatDecimal } from './decimal.ts'
import type { Metadata, PaymentRequest } from './payment-request.ts'

/** The terms of a request as a caller sends them. */
export interface TermsInput {
  readonly payee: string
  readonly amount: string
  readonly invoiceCurrency: string
  readonly paymentCurrency: string
  /** Absent or empty where `paymentCurrency` is an id. */
  readonly network?: string | undefined
  readonly reference?: string | undefined
  readonly refundAddress?: string | undefined
  /** Empty: anybody may pay. */
  readonly allowedPayers?: readonly string[] | undefined
  readonly requestId?: string | undefined
  readonly salt?: string | undefined
  /** RFC 3339, or a day, whose end is meant. */
  readonly expiresAt?: string | undefined
  readonly title?: string | undefined
  readonly returnUrl?: string | undefined
  readonly metadata?: Metadata | undefined
}

/** A request that was created elsewhere, as a line states it: the terms of creation, and what the answer adds. */
export interface RequestLine extends TermsInput {
  /** Has to follow from request id, salt and payee. */
  readonly paymentReference?: string | undefined
  readonly createdAt?: Date | undefined
  readonly cancelledAt?: Date | undefined
}

/**
 * Writes a request as one line of JSON that an import reads: its terms, when it was created, and when it was cancelled. What follows from
 * payments is left out. Equal requests make equal lines.
 */
export function formatRequestLine(request: PaymentRequest): string {
  const { requestId, salt, paymentReference, payee, amount, invoiceCurrency, paymentCurrency, network } = request
  const { reference, refundAddress, allowedPayers, expiresAt, title, returnUrl, metadata, createdAt, cancelledAt } =
    request
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
    allowedPayers: allowedPayers?.map(formatAddress),
    expiresAt,
    title,
    returnUrl,
    metadata,
    createdAt,
    cancelledAt,
  })
}
