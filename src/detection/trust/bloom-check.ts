import { type BloomBits, bloomBitsOf, mayHold } from '../../contracts/block-proofs.ts'
import { followedTopics } from '../../contracts/decode-events.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { BlockHeader } from '../read/chain-reader.ts'

/** Decides by a header's bloom whether to read the receipts of a block for which the node gave no logs. No I/O. */
export type BloomCheck = ReturnType<typeof createBloomCheck>

/** A bloom whose chance of a false "maybe" is higher is too full to tell: to read receipts each time would cost more than following. */
const MAX_FALSE_POSITIVES = 0.02

/** Makes the check for some contracts. */
export function createBloomCheck(addresses: readonly string[]) {
  const ofAddresses = addresses.map(bloomBitsOf)
  const ofTopics = followedTopics.map(bloomBitsOf)
  return {
    /**
     * - `MAYBE`: its few bits have a followed event
     * - `NO`: none is in it, by a bloom that the block's hash proves
     * - `UNKNOWN`: the bloom is too full, absent, or of a header whose hash cannot be computed
     */
    judge({ logsBloom, isHashed }: Pick<BlockHeader, 'logsBloom' | 'isHashed'>): 'MAYBE' | 'NO' | 'UNKNOWN' {
      if (logsBloom === undefined || !/^0x[0-9a-f]{512}$/i.test(logsBloom)) return 'UNKNOWN'
      const bytes = hexToBytes(logsBloom)
      const isThere = (values: readonly BloomBits[]) => values.some((bits) => mayHold(bytes, bits))
      if (!isThere(ofAddresses) || !isThere(ofTopics)) return isHashed ? 'NO' : 'UNKNOWN'
      const isFull = falsePositives(bytes, ofAddresses.length, ofTopics.length) > MAX_FALSE_POSITIVES
      return isFull ? 'UNKNOWN' : 'MAYBE'
    },
  }
}

/** How likely a bloom says "maybe" although no followed log is in the block. */
export function falsePositives(bloom: Uint8Array, addresses: number, topics: number): number {
  const set = bloom.reduce((sum, byte) => sum + bitsIn(byte), 0)
  const one = (set / (bloom.length * 8)) ** 3
  return (1 - (1 - one) ** addresses) * (1 - (1 - one) ** topics)
}

function bitsIn(byte: number): number {
  return byte.toString(2).replaceAll('0', '').length
}
