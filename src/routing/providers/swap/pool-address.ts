import { keccak_256 } from '@noble/hashes/sha3'
import type { Address } from '../../../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../../domain/hex.ts'

/** The token of the lower address comes first in a pool. */
export function isFirst(token: Address, other: Address): boolean {
  return token < other
}

const known = new Map<string, Address>()

/**
 * Where a factory makes a pool, whether or not it has been made.
 *
 * @param codeHash - keccak256 of the creation code
 * @param terms - what tells the pool from others; its keccak256 is the salt
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
