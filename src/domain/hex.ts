/** Bytes as lower-case hexadecimal strings. */

/** `0x` and an even number of lower-case hexadecimal digits. */
export type Hex = `0x${string}`

const HASH_PATTERN = /^(?:0x)?([0-9a-f]{64})$/i

/** The bytes of hexadecimal digits, with or without `0x`. */
export function hexToBytes(hex: string): Buffer {
  return Buffer.from(hex.startsWith('0x') ? hex.slice(2) : hex, 'hex')
}

/** Bytes as `0x` and two lower-case digits for each. */
export function bytesToHex(bytes: Uint8Array): Hex {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`
}

/**
 * Reads a transaction hash: 64 hexadecimal digits in any case, `0x` optional.
 *
 * @returns `0x` and 64 lower-case digits, or undefined
 */
export function parseTxHash(text: string): Hex | undefined {
  const digits = HASH_PATTERN.exec(text)?.[1]
  return digits === undefined ? undefined : `0x${digits.toLowerCase()}`
}
