import { objectOf, type Reader, readString, readTime } from './read-fields.ts'

/** A request as a line tells it: what creating one takes, and what the answer adds. The terms themselves are judged elsewhere. */
export interface RequestLine {
  readonly payee: string
  readonly amount: string
  readonly invoiceCurrency: string
  readonly paymentCurrency: string
  readonly network?: string | undefined
  readonly reference?: string | undefined
  readonly refundAddress?: string | undefined
  readonly requestId?: string | undefined
  readonly salt?: string | undefined
  readonly paymentReference?: string | undefined
  readonly expiresAt?: string | undefined
  readonly createdAt?: Date | undefined
  readonly cancelledAt?: Date | undefined
}

const fields: { readonly [K in keyof RequestLine]-?: Reader<unknown> } = {
  payee: readString,
  amount: readString,
  invoiceCurrency: readString,
  paymentCurrency: readString,
  network: readString,
  reference: readString,
  refundAddress: readString,
  requestId: readString,
  salt: readString,
  paymentReference: readString,
  expiresAt: readString,
  createdAt: readTime,
  cancelledAt: readTime,
}

/** What an answer tells of payments, which bring it along themselves, and what follows from terms and configuration. */
const derived = new Set([
  'status',
  'paidAmount',
  'pendingAmount',
  'outstandingAmount',
  'overpaidAmount',
  'refundReference',
  'warnings',
])

const readRequest = objectOf<RequestLine>({
  fields,
  required: ['payee', 'amount', 'invoiceCurrency', 'paymentCurrency'],
  derived,
})

/**
 * Reads a request in the JSON that creating one takes, or that it and the list answer.
 *
 * @param json - a parsed line
 * @throws WaybillError with the reason of the first field that is no text or unknown
 */
export function parseRequestLine(json: unknown): RequestLine {
  return readRequest('', json)
}
