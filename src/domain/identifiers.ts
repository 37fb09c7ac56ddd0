import { createHash } from 'node:crypto'
import { keccak_256 } from '@noble/hashes/sha3'
import { type Address, formatAddress } from './address.ts'
import { bytesToHex, type Hex, hexToBytes } from './hex.ts'

/**
 * Request ids, salts and payment references. The proxies' events index the reference, so a log carries only its hash, the topic. The topic
 * is stored with the request, and events are matched by it.
 */

const REFERENCE_PATTERN = /^(?:0x)?([0-9a-f]{16})$/i
const REQUEST_ID_PATTERN = /^(?:0x)?(01[0-9a-f]{64})$/i
const SALT_PATTERN = /^(?:0x)?([0-9a-f]{16})$/i

/**
 * Reads a payment reference: 16 hexadecimal digits in any case, `0x` optional.
 *
 * @returns `0x` and 16 lower-case digits, or undefined
 */
export function parsePaymentReference(text: string): Hex | undefined {
  const digits = REFERENCE_PATTERN.exec(text)?.[1]
  return digits === undefined ? undefined : `0x${digits.toLowerCase()}`
}

/** Reads a request id: `01` and 64 hexadecimal digits in any case, `0x` optional. Returns it in lower case without `0x`, or undefined. */
export function parseRequestId(text: string): string | undefined {
  return REQUEST_ID_PATTERN.exec(text)?.[1]?.toLowerCase()
}

/** Reads a salt: 16 hexadecimal digits in any case, `0x` optional. Returns it in lower case without `0x`, or undefined. */
export function parseSalt(text: string): string | undefined {
  return SALT_PATTERN.exec(text)?.[1]?.toLowerCase()
}

/**
 * The payment reference of a request and an address: the last 8 bytes of keccak256 over the text of request id, salt and address in lower
 * case.
 *
 * @param address - the payee for payments, the refund address for refunds
 */
export function paymentReferenceOf(requestId: string, salt: string, address: Address): Hex {
  const text = (requestId + salt + formatAddress(address)).toLowerCase()
  return bytesToHex(keccak_256(text).subarray(-8))
}

/** The topic of a reference in the proxies' events: keccak256 of its 8 bytes. */
export function topicOfReference(reference: Hex): Hex {
  return bytesToHex(keccak_256(hexToBytes(reference)))
}

const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Where a payment was made: what its id is derived from. */
interface PaymentOrigin {
  /** The account's name, which stays the same in a rebuilt database. */
  readonly account: string
  /** CAIP-2. */
  readonly chainId: string
  /** `0x` and 64 lower-case digits. */
  readonly txHash: string
  /** 0-based among the proxies' payment events of the transaction. */
  readonly eventIndex: number
}

/**
 * The id of a detected payment: a UUID of version 8 over its origin. So a payment keeps its id when it is mined again in another block, or
 * detected again in a rebuilt database.
 *
 * @see https://www.rfc-editor.org/rfc/rfc9562#name-uuid-version-8
 */
export function paymentIdOf({ account, chainId, txHash, eventIndex }: PaymentOrigin): string {
  const hash = createHash('sha256').update(`waybill payment\n${account}\n${chainId}\n${txHash}\n${eventIndex}`).digest()
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x80, 6)
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = hash.toString('hex', 0, 16)
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-')
}

/** Reads a UUID, the id of a payment, a key or a webhook, in any case. Returns it in lower case, or undefined. */
export function parseUuid(text: string): string | undefined {
  return UUID_PATTERN.test(text) ? text.toLowerCase() : undefined
}
