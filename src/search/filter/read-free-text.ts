import { parseAddress } from '../../domain/address.ts'
import { parseTxHash } from '../../domain/hex.ts'
import { parsePaymentReference, parseRequestId, parseUuid } from '../../domain/identifiers.ts'
import { requireMerchantReference } from '../../domain/require-input.ts'
import { waybillError } from '../../errors/waybill-error.ts'

/** One meaning of a text: a value of the filter of that name, or the id of a payment. */
export interface TextReading {
  readonly as: 'id' | 'walletAddress' | 'txHash' | 'requestId' | 'paymentReference' | 'reference'
  readonly value: string
}

/** The form of an address; with a wrong checksum it is probably mistyped. */
const ADDRESS_FORM = /^0x[0-9a-f]{40}$/i

/**
 * Finds what the text of a free search can mean; space around it is ignored. A valid address means that wallet. Every other text may be a
 * merchant's reference, and also the identifier (payment id, hash, …) whose form it has.
 *
 * @returns the meanings; a payment has to match one of them
 * @throws INVALID_ADDRESS for an address with a wrong checksum; INVALID_REFERENCE for a text that is no reference (empty, control
 *   characters, more than 256 characters)
 */
export function readFreeText(field: string, given: string): readonly TextReading[] {
  const text = given.trim()
  const address = parseAddress(text)
  if (address.ok) return [{ as: 'walletAddress', value: address.address }]
  if (ADDRESS_FORM.test(text)) throw waybillError('INVALID_ADDRESS', { field, value: text, detail: address.detail })
  return [...identifiers(text), { as: 'reference', value: requireMerchantReference(field, text) }]
}

/** At most one: the forms differ in their number of digits. */
function identifiers(text: string): TextReading[] {
  const readings = [
    { as: 'id', value: parseUuid(text) },
    { as: 'txHash', value: parseTxHash(text) },
    { as: 'requestId', value: parseRequestId(text) },
    { as: 'paymentReference', value: parsePaymentReference(text) },
  ] as const
  return readings.flatMap(({ as, value }) => (value === undefined ? [] : [{ as, value }]))
}
