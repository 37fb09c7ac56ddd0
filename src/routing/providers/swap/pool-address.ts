import { keccak_256 } from '@noble/hashes/sha3'
import type { Address } from '../../../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../../domain/hex.ts'

/** Whether a token is the first in its pool with another: pools sort tokens by address. */
export function isFirst(token: Address, other: Address): boolean {
  return token < other
}

const known = new Map<string, Address>()

/**
 * The address of a factory's pool, whether or not the pool has been created.
 *
 * @param codeHash - keccak256 of the creation code
 * @param terms - what identifies the pool; its keccak256 is the salt
 * @see https://eips.ethereum.org/EIPS/eip-1014
 */
export function create2Address(factory: Address, codeHash: Hex, terms: string): Address {
  const key = factory + codeHash + terms
  const found = known.get(key)
  if (found !== undefined) return found
  const salt = keccak_256(hexToBytes(terms))
  const parts = [Buffer.from([0xff]), hexToBytes(factory), salt, hexToBytes(codeHash)]
  const address = bytesToHex(keccak_256(Buffer.concat(parts)).subarray(-20)) as string as Address
  known.set(key, address)
  return address
}
