import { sha256 } from '@noble/hashes/sha2'
import { keccak_256 } from '@noble/hashes/sha3'
import { createBase58check } from '@scure/base'
import { hexToBytes } from './hex.ts'

/**
 * Addresses of accounts and contracts. An `Address` is canonical, so two are equal exactly when the strings are:
 * of the EVM family `0x` and 40 lower-case digits, of the Tron family base58check (`T…`).
 */
export type Address = string & { readonly __address: true }

/** The families of addresses that are understood. */
export type AddressFamily = 'EVM' | 'TRON'

/** A parsed address, or what is wrong with the text. */
export type ParsedAddress =
  | { readonly ok: true; readonly address: Address }
  | { readonly ok: false; readonly detail: string }

/** The EVM address of 20 zero bytes. */
export const ZERO_ADDRESS = `0x${'0'.repeat(40)}` as Address

const EVM_PATTERN = /^0[xX][0-9a-fA-F]{40}$/
const TRON_PATTERN = /^T[1-9A-HJ-NP-Za-km-z]{33}$/
const TRON_PREFIX = 0x41

/** The first of the 21 bytes that an address is stored as. */
const FAMILY_BYTE: Record<AddressFamily, number> = { EVM: 0x01, TRON: TRON_PREFIX }

const base58check = createBase58check(sha256)

/**
 * Reads an address of any family. EVM: digits all in one case, or a right EIP-55 checksum. Tron: base58check.
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
    // The checksum is wrong; said below.
  }
  return { ok: false, detail: 'its base58 checksum is wrong, so a character may be mistyped' }
}

/** The family of an address. */
export function addressFamily(address: Address): AddressFamily {
  return address.startsWith('0x') ? 'EVM' : 'TRON'
}

/** Whether all 20 bytes are zero, which nobody can own. */
export function isZeroAddress(address: Address): boolean {
  return addressToBytes(address)
    .subarray(1)
    .every((byte) => byte === 0)
}

// Checksums cost a keccak each, and the same few addresses go out again and again.
const MOST_CHECKSUMS = 50_000
const checksummed = new Map<string, string>()

/** How an address goes out: EVM with the EIP-55 checksum, Tron in base58. */
export function formatAddress(address: Address): string {
  if (addressFamily(address) === 'TRON') return address
  const known = checksummed.get(address)
  if (known !== undefined) return known
  const formatted = withChecksum(address.slice(2))
  if (checksummed.size >= MOST_CHECKSUMS) checksummed.clear()
  checksummed.set(address, formatted)
  return formatted
}

function withChecksum(lowerDigits: string): string {
  const hash = keccak_256(lowerDigits)
  let text = '0x'
  for (let i = 0; i < lowerDigits.length; i++) {
    const byte = hash[i >> 1] ?? 0
    const nibble = i % 2 === 0 ? byte >> 4 : byte & 15
    const digit = lowerDigits.charAt(i)
    text += nibble >= 8 ? digit.toUpperCase() : digit
  }
  return text
}

/** The 21 bytes that an address is stored as: one for the family, then the 20 of the address itself. */
export function addressToBytes(address: Address): Buffer {
  if (addressFamily(address) === 'TRON') return Buffer.from(base58check.decode(address))
  const bytes = Buffer.alloc(21)
  bytes[0] = FAMILY_BYTE.EVM
  bytes.write(address.slice(2), 1, 'hex')
  return bytes
}

/**
 * The address that 21 stored bytes stand for.
 *
 * @throws TypeError for bytes that {@link addressToBytes} does not give
 */
export function addressFromBytes(bytes: Uint8Array): Address {
  if (bytes.length === 21 && bytes[0] === FAMILY_BYTE.EVM) {
    return `0x${Buffer.from(bytes.buffer, bytes.byteOffset + 1, 20).toString('hex')}` as Address
  }
  if (bytes.length === 21 && bytes[0] === FAMILY_BYTE.TRON) return base58check.encode(bytes) as Address
  throw new TypeError(`no stored address: ${bytes.length} bytes`)
}

/**
 * The address that stored bytes stand for, of which there are the 42 digits.
 *
 * @throws TypeError as {@link addressFromBytes}
 */
export function addressFromDigits(digits: string): Address {
  // what nearly all are, and without bytes: a page has two hundred
  if (digits.length === 42 && digits.startsWith('01')) return `0x${digits.slice(2)}` as Address
  return addressFromBytes(hexToBytes(digits))
}
