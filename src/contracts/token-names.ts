import type { Address } from '../domain/address.ts'
import type { ContractRead } from './multicall.ts'
import { uintOf, WORD } from './words.ts'

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
