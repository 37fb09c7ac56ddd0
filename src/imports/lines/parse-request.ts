import type { RequestLine } from '../../domain/request-line.ts'
import { listOf, objectOf, type Reader, readMetadata, readString, readTime } from './read-fields.ts'

const fields: { readonly [K in keyof RequestLine]-?: Reader<unknown> } = {
  payee: readString,
  amount: readString,
  invoiceCurrency: readString,
  paymentCurrency: readString,
  network: readString,
  reference: readString,
  refundAddress: readString,
  allowedPayers: listOf(readString),
  requestId: readString,
  salt: readString,
  paymentReference: readString,
  expiresAt: readString,
  title: readString,
  returnUrl: readString,
  metadata: readMetadata,
  createdAt: readTime,
  cancelledAt: readTime,
}

/** Fields of an answer that import ignores: they follow from payments, terms and configuration. */
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
 * Parses a request in the JSON form of creation, or of the answers of creation and list.
 *
 * @param json - a parsed line
 * @throws WaybillError with the reason of the first field that is unknown or not a text
 */
export function parseRequestLine(json: unknown): RequestLine {
  return readRequest('', json)
}
