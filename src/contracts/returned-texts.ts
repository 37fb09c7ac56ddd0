import type { Address } from '../domain/address.ts'
import type { ContractRead } from './multicall.ts'
import { uintOf, WORD } from './words.ts'

/** The selectors of `Error(string)` and `Panic(uint256)`, Solidity's own errors. */
const ERROR_STRING = '08c379a0'
const PANIC = '4e487b71'

const MAX_REASON_BYTES = 200

/**
 * Describes the data of a revert in words.
 *
 * @param data - hexadecimal with `0x`, as the node sent it; undefined where it sent none
 * @param otherwise - the node's own words
 */
export function revertReason(data: string | undefined, otherwise: string): string {
  const digits = data?.slice(2).toLowerCase() ?? ''
  if (digits.startsWith(ERROR_STRING)) return textIn(digits.slice(8)) ?? otherwise
  if (digits.startsWith(PANIC)) return `panic 0x${digits.slice(-2)}`
  if (digits.length >= 8) return `the contract's error 0x${digits.slice(0, 8)}`
  return otherwise === '' ? 'the contract gives no reason' : otherwise
}

/** The one string of ABI-encoded data. */
function textIn(digits: string): string | undefined {
  const length = Number.parseInt(digits.slice(64, 128), 16)
  if (!Number.isSafeInteger(length) || length > digits.length) return undefined
  const text = Buffer.from(digits.slice(128, 128 + 2 * Math.min(length, MAX_REASON_BYTES)), 'hex').toString('utf8')
  return text === '' ? undefined : text
}

/** `symbol()` of a token. */
export function readSymbol(token: Address): ContractRead {
  return { to: token, data: '0x95d89b41' }
}

/**
 * Decodes a text of a contract: `bytes32`, or a `string`, which is an offset, a length and the bytes.
 *
 * @param data - with `0x`
 * @returns undefined where it is no text of 1 to 64 printable characters: anybody may have written it, and it goes to a terminal
 */
export function decodeText(data: string): string | undefined {
  if (!/^0x(?:[0-9a-f]{64})+$/i.test(data)) return undefined
  const digits = data.slice(2)
  if (digits.length === WORD) return printableText(digits.replace(/(?:00)+$/, ''))
  const length = Number(uintOf(digits.slice(WORD, 2 * WORD)))
  const text = digits.slice(2 * WORD, 2 * WORD + 2 * length)
  return text.length === 2 * length ? printableText(text) : undefined
}

function printableText(digits: string): string | undefined {
  const text = Buffer.from(digits, 'hex').toString('utf8')
  return /^[^\p{C}]{1,64}$/u.test(text) ? text : undefined
}
