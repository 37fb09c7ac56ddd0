import { decodeRound, type FeedRound, readLatestRound, readRound } from '../../contracts/price-feed.ts'
import type { Address } from '../../domain/address.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import type { ContractCaller } from './gather-calls.ts'

const PHASE_BITS = 64n
/** A new phase begins when a feed's contract is replaced, once in some years. */
const PHASES_SEARCHED = 20n
const ROUND_MASK = (1n << PHASE_BITS) - 1n

/** Decodes the answer to a call for a round; undefined where there is no round (no contract, a revert, an empty round). */
export function roundIn(answer: RpcAnswer | undefined): FeedRound | undefined {
  return answer?.ok ? decodeRound(String(answer.result).slice(2)) : undefined
}

/**
 * Finds the round that was the latest at a time, for nodes that no longer have the state of that block: a binary search in the rounds that the feed
 * still answers, from its newest phase backwards.
 */
export async function findRoundAt(
  reader: ContractCaller,
  feed: Address,
  timestampSec: number,
  signal?: AbortSignal,
): Promise<FeedRound | undefined> {
  const [latestAnswer] = await reader.calls([{ ...readLatestRound(feed), block: 'latest' }], signal)
  const latest = roundIn(latestAnswer)
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

async function getRound(reader: ContractCaller, feed: Address, roundId: bigint, signal: AbortSignal | undefined) {
  const [answer] = await reader.calls([{ ...readRound(feed, roundId), block: 'latest' }], signal)
  return roundIn(answer)
}

/** The highest round of an earlier phase, found by doubling; 0 for a phase without rounds. */
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

/** The last of the rounds 1…last that is not after the time. A round that the feed no longer answers is older than all that it answers. */
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
