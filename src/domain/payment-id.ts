import { createHash } from 'node:crypto'

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

/** Reads a payment id: a UUID in any case. Returns it in lower case, or undefined. */
export function parsePaymentId(text: string): string | undefined {
  return UUID_PATTERN.test(text) ? text.toLowerCase() : undefined
}
