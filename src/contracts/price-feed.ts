/** Price feeds of Chainlink's shape: how they are read, and their answers. */
import type { Address } from '../domain/address.ts'
import type { ContractRead } from './multicall.ts'
import { encodeUint, intOf, splitWords, uintOf } from './words.ts'

/** One answer of a feed. */
export interface FeedRound {
  /** Upper 16 bits: the phase, which is a contract behind the feed. Lower 64 bits: the round within it. */
  readonly roundId: bigint
  /** In the feed's own decimals. */
  readonly answer: bigint
  readonly updatedAtSec: number
}

/** Feeds have 8 or 18 decimals. A feed that returns more is broken, and would only make numbers larger. */
export const MAX_FEED_DECIMALS = 36

const ROUND_ID_BITS = 80n

/** `latestRoundData()`. */
export function readLatestRound(feed: Address): ContractRead {
  return { to: feed, data: '0xfeaf968c' }
}

/** `getRoundData(roundId)`. */
export function readRound(feed: Address, roundId: bigint): ContractRead {
  return { to: feed, data: `0x9a6fc8f5${encodeUint(roundId)}` }
}

/** `decimals()` of a feed or a token. */
export function readDecimals(contract: Address): ContractRead {
  return { to: contract, data: '0x313ce567' }
}

/**
 * Decodes the return data of `latestRoundData()` and `getRoundData(…)`.
 *
 * @param digits - without `0x`
 * @returns undefined where it is no round, or an empty one
 */
export function decodeRound(digits: string): FeedRound | undefined {
  const words = splitWords(digits, 5)
  if (words === undefined) return undefined
  const [id, answer, , updatedAt] = words
  const [roundId, updatedAtSec] = [uintOf(id), Number(uintOf(updatedAt))]
  if (updatedAtSec === 0 || roundId >> ROUND_ID_BITS !== 0n) return undefined
  return { roundId, answer: intOf(answer), updatedAtSec }
}
