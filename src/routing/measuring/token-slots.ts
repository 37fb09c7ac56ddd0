/**
 * Where tokens keep balances and allowances, so that a node can be asked what a transaction takes once an approval before it is mined. Both
 * are mappings; of which slot is found by writing another number into each place that it may be and asking the token what it says.
 *
 * @see https://docs.soliditylang.org/en/latest/internals/layout_in_storage.html
 */

import { keccak256 } from 'viem'
import { readAllowance, readTokenBalance, uintAt } from '../../contracts/multicall.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { RpcCall } from '../../nodes/json-rpc.ts'

/** Where a mapping stands, and how the places of its keys follow from it: Vyper puts the slot first, Solidity the key. */
interface MappingPlace {
  readonly slot: bigint
  readonly slotFirst: boolean
}

/** Where a token keeps what. */
export interface TokenSlots {
  /** The place of what `owner` holds. */
  balanceOf(owner: Address): Hex
  /** The place of what `spender` may take of it. */
  allowanceOf(owner: Address, spender: Address): Hex
}

/** Slots of contracts with some hundred words before; those of tokens are nearly all below. */
const SOLIDITY_SLOTS = 208
const VYPER_SLOTS = 32

/** Where OpenZeppelin's upgradeable tokens of 5.0 and later keep both. @see https://eips.ethereum.org/EIPS/eip-7201 */
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

/** What is written into the first place; into the others, one more each. No token says so by chance, and none finds it too large. */
const FIRST_NUMBER = 0x5a17c0deb00cn

const wordOf = (value: bigint) => value.toString(16).padStart(64, '0')
const wordOfAddress = (address: string) => address.slice(2).padStart(64, '0')

/** The place of a key's value. */
function placeOfKey(mapping: string, key: Address, slotFirst: boolean): Hex {
  const parts = slotFirst ? [mapping, wordOfAddress(key)] : [wordOfAddress(key), mapping]
  return keccak256(`0x${parts.join('')}`)
}

function balanceAt({ slot, slotFirst }: MappingPlace, owner: Address): Hex {
  return placeOfKey(wordOf(slot), owner, slotFirst)
}

function allowanceAt({ slot, slotFirst }: MappingPlace, owner: Address, spender: Address): Hex {
  const ofOwner = placeOfKey(wordOf(slot), owner, slotFirst)
  return placeOfKey(ofOwner.slice(2), spender, slotFirst)
}

/** Asks a token what it reads with numbers in all places: first its balance, then its allowance. */
export function encodeSlotSearch(token: Address): readonly [RpcCall, RpcCall] {
  const search = (data: Hex, placeOf: (mapping: MappingPlace) => Hex): RpcCall => {
    const stateDiff = Object.fromEntries(
      PLACES.map((mapping, i) => [placeOf(mapping), `0x${wordOf(FIRST_NUMBER + BigInt(i))}`]),
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
 * Reads what {@link encodeSlotSearch} brought.
 *
 * @returns undefined where the token keeps either elsewhere, or the node changed nothing
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
