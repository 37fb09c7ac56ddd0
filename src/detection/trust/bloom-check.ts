import { followedTopics } from '../../contracts/decode-events.ts'
import { type BloomBits, bloomBitsOf, mayHold } from '../../contracts/logs-bloom.ts'
import { hexToBytes } from '../../domain/hex.ts'

/** Decides by a header's bloom whether a block may hold followed logs. No I/O. */
export interface BloomCheck {
  /** Whether to read the receipts of a block for which the node gave no logs. Of blocks whose bloom is too full to tell, those of one in 50. */
  isSuspicious(bloom: string | undefined): boolean
}

/** A bloom whose chance of a false "maybe" is higher is too full to tell: to read receipts each time would cost more than following. */
const MAX_FALSE_POSITIVES = 0.02
/** Of blocks with such blooms, the receipts of one in this many are read. */
const FULL_BLOOMS_SAMPLED = 50

/** Makes the check for some contracts. */
export function createBloomCheck(addresses: readonly string[]): BloomCheck {
  const ofAddresses = addresses.map(bloomBitsOf)
  const ofTopics = followedTopics.map(bloomBitsOf)
  let full = 0
  return {
    isSuspicious(bloom) {
      if (bloom === undefined || !/^0x[0-9a-f]{512}$/i.test(bloom)) return false
      const bytes = hexToBytes(bloom)
      const isThere = (values: readonly BloomBits[]) => values.some((bits) => mayHold(bytes, bits))
      if (!isThere(ofAddresses) || !isThere(ofTopics)) return false
      if (falsePositives(bytes, ofAddresses.length, ofTopics.length) <= MAX_FALSE_POSITIVES) return true
      full++
      return full % FULL_BLOOMS_SAMPLED === 1
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
