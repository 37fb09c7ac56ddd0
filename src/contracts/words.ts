/**
 * Numbers and addresses as contracts write them: words of 32 bytes, here 64 hexadecimal digits without `0x`. By hand, since a general
 * ABI coder takes most of the processor time of a routes call, and decodes logs at a quarter of this speed. Also the quantities of JSON-RPC.
 */
import type { Address } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'

/** Digits of a word. */
export const WORD = 64

const ADDRESS_PADDING = '0'.repeat(WORD - 40)

/** A number without sign as a word. */
export function encodeUint(value: bigint | number): string {
  return value.toString(16).padStart(WORD, '0')
}

/** An EVM address as a word. */
export function encodeAddress(address: Address | Hex): string {
  return ADDRESS_PADDING + address.slice(2)
}

/** The words of data as a tuple, so that each has its name at once. */
type Words<N extends number, T extends readonly string[] = []> = T['length'] extends N ? T : Words<N, [...T, string]>

/**
 * Splits data into words.
 *
 * @param digits - without `0x`
 * @returns undefined where the data is shorter or longer
 */
export function splitWords<const N extends number>(digits: string, count: N): Words<N> | undefined {
  if (digits.length !== count * WORD) return undefined
  const words: string[] = []
  for (let at = 0; at < digits.length; at += WORD) words.push(digits.slice(at, at + WORD))
  return words as readonly string[] as Words<N>
}

/** A word as a number without sign. @throws SyntaxError where it is not hexadecimal */
export function uintOf(word: string): bigint {
  return BigInt(`0x${word}`)
}

/** A word as a number in two's complement. @throws SyntaxError where it is not hexadecimal */
export function intOf(word: string): bigint {
  return BigInt.asIntN(256, uintOf(word))
}

/** A word as an address: its last 20 bytes, in lower case. */
export function addressOf(word: string): Address {
  return `0x${word.slice(24).toLowerCase()}` as Address
}

/** The word at a place of return data; undefined where there is no data, or less of it. */
function wordAt(digits: string | undefined, index: number): string | undefined {
  const word = digits?.slice(index * WORD, (index + 1) * WORD)
  return word?.length === WORD ? word : undefined
}

/** The word at a place of return data as a number without sign; undefined where there is no data, or less of it. */
export function uintAt(digits: string | undefined, index: number): bigint | undefined {
  const word = wordAt(digits, index)
  return word === undefined ? undefined : uintOf(word)
}

/** The word at a place of return data as an address; undefined where there is no data, or less of it. */
export function addressAt(digits: string | undefined, index: number): Address | undefined {
  const word = wordAt(digits, index)
  return word === undefined ? undefined : addressOf(word)
}

/** A number as JSON-RPC writes it: hexadecimal without leading zeros. */
export function toQuantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`
}

/** A number as JSON-RPC writes it; undefined where it is none, or has more than 256 bits. */
export function readQuantity(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^0x[0-9a-f]{1,64}$/i.test(value) ? BigInt(value) : undefined
}
