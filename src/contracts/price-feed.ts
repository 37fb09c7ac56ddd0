/** Price feeds of Chainlink's form: how they are read, and their answers. */
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

/** An answer of a feed with the decimals that were read beside it: a feed's decimals may change with the contract behind it. */
export interface FeedAnswer extends Pick<FeedRound, 'answer' | 'updatedAtSec'> {
  readonly decimals: number
  /** Whether it differs from the round before by more than ten times, so that a mistake is likelier than a price. */
  readonly isJump: boolean
}

/** Whether an answer is more than ten times the one before, or less than a tenth of it. After one that was no price, none is. */
export function isJump(
  answer: Pick<FeedAnswer, 'answer' | 'decimals'>,
  previous: Pick<FeedAnswer, 'answer' | 'decimals'>,
): boolean {
  if (previous.answer <= 0n) return false
  const scaled = answer.answer * 10n ** BigInt(previous.decimals)
  const before = previous.answer * 10n ** BigInt(answer.decimals)
  return scaled > 10n * before || before > 10n * scaled
}

/**
 * Whether an answer is a price: above 0, and not older than the feed's heartbeat. After a jump, it is one only once a heartbeat has passed without
 * another round; rounds may be late by a tenth.
 *
 * @param atSec - the time of the block in which the feed was read, since feeds live by the chain's clock
 */
export function isPrice(
  { answer, updatedAtSec, isJump }: FeedAnswer,
  heartbeatSeconds: number,
  atSec: number,
): boolean {
  const ageSec = atSec - updatedAtSec
  if (answer <= 0n || ageSec < 0) return false
  return isJump ? ageSec >= heartbeatSeconds && ageSec * 10 <= heartbeatSeconds * 11 : ageSec <= heartbeatSeconds
}
