/**
 * The logsBloom of a header or a receipt: 2,048 bits, of which each log sets three for its address and three for each of its topics. A bit
 * that is not set proves that no log has the value; set bits prove nothing.
 *
 * @see https://ethereum.github.io/yellowpaper/paper.pdf section 4.3.1
 */
import { keccak_256 } from '@noble/hashes/sha3'
import { hexToBytes } from '../domain/hex.ts'

/** The bits that a value sets, as places in the bloom. */
export type BloomBits = readonly { readonly byte: number; readonly mask: number }[]

const BLOOM_BYTES = 256

/** The three bits of an address or a topic. @param value - `0x` and its digits */
export function bloomBitsOf(value: string): BloomBits {
  const hash = keccak_256(hexToBytes(value))
  return [0, 2, 4].map((at) => {
    const bit = (((hash[at] ?? 0) << 8) | (hash[at + 1] ?? 0)) & 0x7ff
    return { byte: BLOOM_BYTES - 1 - (bit >> 3), mask: 1 << (bit & 7) }
  })
}

/** Whether a bloom has all bits of a value. @param bloom - 256 bytes; one of another length excludes nothing */
export function mayHold(bloom: Uint8Array, bits: BloomBits): boolean {
  return bloom.length !== BLOOM_BYTES || bits.every(({ byte, mask }) => ((bloom[byte] ?? 0) & mask) !== 0)
}

/** The bloom of some logs. */
export function bloomOf(logs: readonly { readonly address: string; readonly topics: readonly string[] }[]): Uint8Array {
  const bloom = new Uint8Array(BLOOM_BYTES)
  for (const value of logs.flatMap(({ address, topics }) => [address, ...topics])) {
    for (const { byte, mask } of bloomBitsOf(value)) bloom[byte] = (bloom[byte] ?? 0) | mask
  }
  return bloom
}
