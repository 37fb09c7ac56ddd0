import { keccak_256 } from '@noble/hashes/sha3'
import type { Address } from '../domain/address.ts'
import { bytesToHex } from '../domain/hex.ts'

const known = new Map<string, Address>()

/**
 * The address that stands for a fiat currency or a native coin in Request's conversions: the last 20 bytes of keccak256 of its type and symbol
 * as JSON.
 *
 * @param type - `iso4217` for a fiat currency, `eth` for a native coin
 */
export function currencyHash(type: 'iso4217' | 'eth', symbol: string): Address {
  const text = JSON.stringify({ type, value: symbol.toLowerCase() })
  const found = known.get(text)
  if (found !== undefined) return found
  const address = bytesToHex(keccak_256(text).subarray(-20)) as string as Address
  known.set(text, address)
  return address
}
