import { getCreate2Address, keccak256 } from 'viem/utils'
import type { Address } from '../../../domain/address.ts'
import type { Hex } from '../../../domain/hex.ts'

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
export function create2Address(factory: Address, codeHash: Hex, terms: Hex): Address {
  const key = factory + codeHash + terms
  const found = known.get(key)
  if (found !== undefined) return found
  const made = getCreate2Address({ from: factory as Hex, salt: keccak256(terms), bytecodeHash: codeHash })
  const address = made.toLowerCase() as Address
  known.set(key, address)
  return address
}
