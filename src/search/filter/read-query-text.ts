import { parseAddress } from '../../domain/address.ts'
import { parseTxHash } from '../../domain/hex.ts'
import { parsePaymentId } from '../../domain/payment-id.ts'
import { parsePaymentReference, parseRequestId } from '../../domain/payment-reference.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { TextReading } from './payment-filter.ts'
import { merchantReference } from './search-fields.ts'

/** What has the form of an address and may be one with a typing error. */
const ADDRESS_FORM = /^0x[0-9a-f]{40}$/i

/**
 * Reads what was typed into the one box, space around it aside. An address is nothing else. Anything else can be a merchant's
 * reference, and is read as that beside the one other thing that it has the form of, if any.
 *
 * @returns the readings, any of which a payment is to match
 * @throws INVALID_ADDRESS for what has the form of an address and a wrong checksum; INVALID_REFERENCE for what is no text
 */
export function readQueryText(field: string, given: string): readonly TextReading[] {
  const text = given.trim()
  const address = parseAddress(text)
  if (address.ok) return [{ as: 'walletAddress', value: address.address }]
  if (ADDRESS_FORM.test(text)) throw waybillError('INVALID_ADDRESS', { field, value: text, detail: address.detail })
  return [...identifiers(text), { as: 'reference', value: merchantReference.parse(field, text) }]
}

/** No text has more than one of these forms: their numbers of digits differ. */
function identifiers(text: string): TextReading[] {
  const readings = [
    { as: 'id', value: parsePaymentId(text) },
    { as: 'txHash', value: parseTxHash(text) },
    { as: 'requestId', value: parseRequestId(text) },
    { as: 'paymentReference', value: parsePaymentReference(text) },
  ] as const
  return readings.flatMap(({ as, value }) => (value === undefined ? [] : [{ as, value }]))
}
