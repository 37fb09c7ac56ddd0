import { sha256 } from '@noble/hashes/sha2'
import { createBase58check } from '@scure/base'
import { getAddress } from 'viem/utils'
import { rememberByKey } from './collections.ts'
import { bytesToHex, type Hex, hexToBytes } from './hex.ts'

/**
 * A canonical address of an account or a contract: in the EVM family `0x` and 40 lower-case digits, in the Tron family base58check (`T…`).
 * Two addresses are equal when their strings are.
 */
export type Address = string & { readonly __address: true }

/** Chains of one family have addresses of the same form. */
export type AddressFamily = 'EVM' | 'TRON'

/** A parsed address, or what is wrong with the text. */
type ParsedAddress = { readonly ok: true; readonly address: Address } | { readonly ok: false; readonly detail: string }

/** The EVM address of 20 zero bytes. */
export const ZERO_ADDRESS = `0x${'0'.repeat(40)}` as Address

const EVM_PATTERN = /^0[xX][0-9a-fA-F]{40}$/
const TRON_PATTERN = /^T[1-9A-HJ-NP-Za-km-z]{33}$/
const TRON_PREFIX = 0x41

const base58check = createBase58check(sha256)

/**
 * Reads an address of any family. EVM: digits in one case, or with a correct EIP-55 checksum. Tron: base58check.
 *
 * @see https://eips.ethereum.org/EIPS/eip-55
 */
export function parseAddress(text: string): ParsedAddress {
  if (EVM_PATTERN.test(text)) return parseEvmAddress(text)
  if (TRON_PATTERN.test(text)) return parseTronAddress(text)
  return { ok: false, detail: 'it is neither 0x and 40 hexadecimal digits nor a Tron address' }
}

function parseEvmAddress(text: string): ParsedAddress {
  const digits = text.slice(2)
  const lower = digits.toLowerCase()
  const address = `0x${lower}` as Address
  const mixedCase = digits !== lower && digits !== digits.toUpperCase()
  if (mixedCase && formatAddress(address) !== `0x${digits}`) {
    return { ok: false, detail: 'its EIP-55 checksum is wrong, so a character may be mistyped' }
  }
  return { ok: true, address }
}

function parseTronAddress(text: string): ParsedAddress {
  try {
    const bytes = base58check.decode(text)
    if (bytes.length === 21 && bytes[0] === TRON_PREFIX) return { ok: true, address: text as Address }
  } catch {
    // The checksum is wrong, as for bytes of another length or prefix.
  }
  return { ok: false, detail: 'its base58 checksum is wrong, so a character may be mistyped' }
}

/** The family of an address. */
export function addressFamily(address: Address): AddressFamily {
  return address.startsWith('0x') ? 'EVM' : 'TRON'
}

/** Whether an address is 20 zero bytes, which nobody owns. */
export function isZeroAddress(address: Address): boolean {
  return /^..0{40}$/.test(addressToDigits(address))
}

// A checksum costs a keccak, and the same few addresses go out again and again.
const MAX_CHECKSUMS = 50_000
const checksummed = rememberByKey(MAX_CHECKSUMS, (address): string => getAddress(address as Hex))

/** Writes an address as answers have it: EVM with the EIP-55 checksum, Tron in base58. */
export function formatAddress(address: Address): string {
  return addressFamily(address) === 'TRON' ? address : checksummed(address)
}

/** The stored form of an address: one byte for the family, then 20 for the address. */
export function addressToBytes(address: Address): Buffer {
  return Buffer.from(addressToDigits(address), 'hex')
}

/** The hexadecimal digits of {@link addressToBytes}. */
export function addressToDigits(address: Address): string {
  if (addressFamily(address) === 'TRON') return Buffer.from(base58check.decode(address)).toString('hex')
  return `01${address.slice(2)}`
}

/**
 * Reads the stored form of an address.
 *
 * @throws TypeError for bytes that {@link addressToBytes} does not make
 */
export function addressFromBytes(bytes: Uint8Array): Address {
  return addressFromDigits(bytesToHex(bytes).slice(2))
}

/**
 * Reads the stored form of an address from its 42 hexadecimal digits.
 *
 * @throws TypeError as {@link addressFromBytes}
 */
export function addressFromDigits(digits: string): Address {
  // Nearly all are EVM addresses, which need no bytes. A page of payments has two hundred.
  if (digits.length === 42 && digits.startsWith('01')) return `0x${digits.slice(2)}` as Address
  if (digits.length === 42 && digits.startsWith('41')) return base58check.encode(hexToBytes(digits)) as Address
  throw new TypeError(`not a stored address: ${digits.length / 2} bytes`)
}

/** Writes an address of a stored list; a text that is none stays as it is. */
export function formatStoredAddress(text: string): string {
  const parsed = parseAddress(text)
  return parsed.ok ? formatAddress(parsed.address) : text
}
