import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { RpcAnswer } from '../../nodes/rpc-client.ts'
import type { CallReader } from './gather-calls.ts'

/** An answer of a Chainlink-shaped feed. */
export interface FeedRound {
  /** Upper 16 bits phase, lower 64 bits the round within it. */
  readonly roundId: bigint
  /** In the feed's own decimals. */
  readonly answer: bigint
  readonly updatedAtSec: number
}

/** First four bytes of keccak256 over `latestRoundData()`, `getRoundData(uint80)` and `decimals()`. */
const LATEST_ROUND: Hex = '0xfeaf968c'
const GET_ROUND = '0x9a6fc8f5'
export const DECIMALS: Hex = '0x313ce567'

/** Feeds have 8 or 18. One that says more than this is broken, and its numbers only grow. */
export const MAX_FEED_DECIMALS = 36

const PHASE_BITS = 64n
const ROUND_ID_BITS = 80n
/** A phase is a change of the feed's own contract, once in some years. */
const PHASES_SEARCHED = 20n
const ROUND_MASK = (1n << PHASE_BITS) - 1n

/** The call that reads a feed's latest round. */
export function latestRoundCall(feed: Address, block: number | 'latest') {
  return { to: feed, data: LATEST_ROUND, block }
}

/** Reads the answer of a round's call; undefined where there is none (no contract, a revert, an empty round). */
export function readRound(answer: RpcAnswer | undefined): FeedRound | undefined {
  if (answer?.ok !== true) return undefined
  const data = String(answer.result)
  if (data.length !== 2 + 5 * 64) return undefined
  const word = (index: number) => BigInt(`0x${data.slice(2 + index * 64, 2 + (index + 1) * 64)}`)
  const updatedAtSec = Number(word(3))
  if (updatedAtSec === 0 || word(0) >> ROUND_ID_BITS !== 0n) return undefined
  return { roundId: word(0), answer: BigInt.asIntN(256, word(1)), updatedAtSec }
}

/**
 * Finds the round that was the latest at a time, for nodes that no longer have the state of that block: a search by halves
 * over the rounds that the feed remembers, phase by phase backwards.
 */
export async function findRoundAt(
  reader: CallReader,
  feed: Address,
  timestampSec: number,
  signal?: AbortSignal,
): Promise<FeedRound | undefined> {
  const [latestAnswer] = await reader.calls([latestRoundCall(feed, 'latest')], signal)
  const latest = readRound(latestAnswer)
  if (latest === undefined || latest.updatedAtSec <= timestampSec) return latest
  const at = (roundId: bigint) => getRound(reader, feed, roundId, signal)
  const latestPhase = latest.roundId >> PHASE_BITS
  for (let phase = latestPhase; phase >= 0n && phase > latestPhase - PHASES_SEARCHED; phase--) {
    const first = phase << PHASE_BITS
    const last = phase === latestPhase ? latest.roundId & ROUND_MASK : await lastRoundOf(first, at)
    const found = await searchPhase(first, last, timestampSec, at)
    if (found !== undefined) return found
  }
  return undefined
}

type RoundAt = (roundId: bigint) => Promise<FeedRound | undefined>

async function getRound(reader: CallReader, feed: Address, roundId: bigint, signal: AbortSignal | undefined) {
  const data: Hex = `${GET_ROUND as Hex}${roundId.toString(16).padStart(64, '0')}`
  const [answer] = await reader.calls([{ to: feed, data, block: 'latest' }], signal)
  return readRound(answer)
}

/** The highest round of a phase that is over, found by doubling; 0 for one without rounds. */
async function lastRoundOf(first: bigint, at: RoundAt): Promise<bigint> {
  let low = 0n
  let high = 1n
  while (high < 1n << 32n && (await at(first + high)) !== undefined) {
    low = high
    high *= 2n
  }
  while (low + 1n < high) {
    const middle = (low + high) / 2n
    if ((await at(first + middle)) === undefined) high = middle
    else low = middle
  }
  return low
}

/** The last round of 1…last whose time is not after the given one. Rounds that a feed has forgotten are older than all it has. */
async function searchPhase(
  first: bigint,
  last: bigint,
  timestampSec: number,
  at: RoundAt,
): Promise<FeedRound | undefined> {
  let low = 0n
  let high = last + 1n
  let found: FeedRound | undefined
  while (low + 1n < high) {
    const middle = (low + high) / 2n
    const round = await at(first + middle)
    if (round !== undefined && round.updatedAtSec > timestampSec) {
      high = middle
      continue
    }
    low = middle
    found = round
  }
  return found
}
