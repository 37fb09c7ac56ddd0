/**
 * Where tokens keep balances and allowances, so that a node can estimate a transaction as if the approval before it were mined. Both are
 * mappings. Their slot is found by writing a different number into every place that it may be, and reading which number the token returns.
 *
 * @see https://docs.soliditylang.org/en/latest/internals/layout_in_storage.html
 */

import { keccak256 } from 'viem/utils'
import { readAllowance, readTokenBalance } from '../../contracts/contract-reads.ts'
import { encodeAddress, encodeUint, uintAt } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { RpcCall } from '../../nodes/json-rpc.ts'

/** The slot of a mapping, and how it is hashed with a key: Vyper puts the slot first, Solidity the key. */
interface MappingPlace {
  readonly slot: bigint
  readonly slotFirst: boolean
}

/** Where a token keeps balances and allowances. */
export interface TokenSlots {
  /** The storage place of the balance of `owner`. */
  balanceOf(owner: Address): Hex
  /** The storage place of what `spender` may take from `owner`. */
  allowanceOf(owner: Address, spender: Address): Hex
}

/** How many slots are tried: nearly all tokens keep both below, even contracts with a hundred words of other state before them. */
const SOLIDITY_SLOTS = 208
const VYPER_SLOTS = 32

/** The slot in OpenZeppelin's upgradeable tokens of 5.0 and later. @see https://eips.ethereum.org/EIPS/eip-7201 */
const NAMESPACE = 0x52c63247e1f47db19d5ce0460030c497f067ca4cebf71ba98eeadabe20bace00n

const PLACES: readonly MappingPlace[] = [
  ...Array.from({ length: SOLIDITY_SLOTS }, (_, slot) => ({ slot: BigInt(slot), slotFirst: false })),
  { slot: NAMESPACE, slotFirst: false },
  { slot: NAMESPACE + 1n, slotFirst: false },
  ...Array.from({ length: VYPER_SLOTS }, (_, slot) => ({ slot: BigInt(slot), slotFirst: true })),
]

/** Accounts that nobody uses. */
const OWNER = '0x5a17c0de5a17c0de5a17c0de5a17c0de5a17c0de' as Address
const SPENDER = '0x5a17beef5a17beef5a17beef5a17beef5a17beef' as Address

/** The number written into the first place; each further place holds one more. No token returns it by chance, and it fits every token's integers. */
const FIRST_NUMBER = 0x5a17c0deb00cn

/** The storage place of a key's value. @param mapping - the mapping's slot as a word */
function placeOfKey(mapping: string, key: Address, slotFirst: boolean): Hex {
  const parts = slotFirst ? [mapping, encodeAddress(key)] : [encodeAddress(key), mapping]
  return keccak256(`0x${parts.join('')}`)
}

function balanceAt({ slot, slotFirst }: MappingPlace, owner: Address): Hex {
  return placeOfKey(encodeUint(slot), owner, slotFirst)
}

function allowanceAt({ slot, slotFirst }: MappingPlace, owner: Address, spender: Address): Hex {
  const ofOwner = placeOfKey(encodeUint(slot), owner, slotFirst)
  return placeOfKey(ofOwner.slice(2), spender, slotFirst)
}

/** Reads a token's balance and then its allowance, with numbers written into all places. */
export function encodeSlotSearch(token: Address): readonly [RpcCall, RpcCall] {
  const search = (data: Hex, placeOf: (mapping: MappingPlace) => Hex): RpcCall => {
    const stateDiff = Object.fromEntries(
      PLACES.map((mapping, i) => [placeOf(mapping), `0x${encodeUint(FIRST_NUMBER + BigInt(i))}`]),
    )
    const params = JSON.stringify([{ to: token, data }, 'latest', { [token]: { stateDiff } }])
    return { method: 'eth_call', params, isOptional: true }
  }
  return [
    search(readTokenBalance(token, OWNER).data, (mapping) => balanceAt(mapping, OWNER)),
    search(readAllowance(token, OWNER, SPENDER).data, (mapping) => allowanceAt(mapping, OWNER, SPENDER)),
  ]
}

/**
 * Decodes the answers to {@link encodeSlotSearch}.
 *
 * @returns undefined where the token keeps either elsewhere, or the node ignored the overrides
 */
export function decodeSlotSearch(balance: unknown, allowance: unknown): TokenSlots | undefined {
  const [ofBalances, ofAllowances] = [balance, allowance].map(foundPlace)
  if (ofBalances === undefined || ofAllowances === undefined) return undefined
  return {
    balanceOf: (owner) => balanceAt(ofBalances, owner),
    allowanceOf: (owner, spender) => allowanceAt(ofAllowances, owner, spender),
  }
}

function foundPlace(result: unknown): MappingPlace | undefined {
  const number = typeof result === 'string' ? uintAt(result.slice(2), 0) : undefined
  if (number === undefined || number < FIRST_NUMBER) return undefined
  const place = number - FIRST_NUMBER
  return place < BigInt(PLACES.length) ? PLACES[Number(place)] : undefined
}
