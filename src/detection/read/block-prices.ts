import {
  decodeRound,
  type FeedAnswer,
  type FeedRound,
  isJump,
  isPrice,
  MAX_FEED_DECIMALS,
  readDecimals,
  readLatestRound,
  readRound,
} from '../../contracts/price-feed.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { type Decimal, parseDecimal } from '../../domain/decimal.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import type { ChainReader } from './chain-reader.ts'
import { findLast } from './find-last.ts'
import { type ContractCaller, gatherCalls } from './gather-calls.ts'

/** What one unit of a currency was worth in US dollars. */
export interface UsdPrice {
  readonly usd: Decimal
  readonly source: 'feed' | 'peg'
  /** When the feed was updated. */
  readonly at?: Date
}

/** A price to read. */
export interface PriceQuery {
  readonly token: Token
  readonly blockNumber: number
  readonly timestampSec: number
}

interface FeedQuery extends PriceQuery {
  readonly feed: Address
}

/** The round of a feed that counted at a block; UNREAD where no node could tell. */
type RoundRead = FeedRound | 'UNREAD' | undefined
type DecimalsRead = number | 'UNREAD' | undefined
type Quoted = Pick<FeedAnswer, 'answer' | 'decimals'>

const MAX_REMEMBERED = 1_000

/**
 * Makes what reads what tokens of one chain were worth at the time of a block. It asks feeds at the block. Where the node no longer has that state, it searches the feed's rounds; where
 * these do not tell, it asks the other nodes at the block.
 */
export function createPriceReader(reader: Pick<ChainReader, 'calls' | 'callsAnywhere'>) {
  /** Rounds that were read with their own decimals, by feed and id. A round never changes. */
  const known = new Map<string, Quoted>()
  /** Rounds before those, which are judged by them, with the decimals of the round after; undefined for one that the feed does not have. */
  const before = new Map<string, Quoted | undefined>()

  /** The round before one, by which that is judged; undefined where the feed has none. */
  async function previousOf(feed: Address, { roundId }: FeedRound, decimals: number, through: ContractCaller) {
    if (roundId === 0n) return undefined
    const key = `${feed} ${roundId - 1n}`
    const remembered = known.get(key)
    if (remembered !== undefined) return remembered
    if (before.has(key)) return before.get(key)
    const [answer] = await through.calls([{ ...readRound(feed, roundId - 1n), block: 'latest' }])
    if (isRefused(answer)) return 'UNREAD'
    const round = roundIn(answer)
    // What decimals it was written with is not known, so it never gives a price.
    return remember(before, key, round && { answer: round.answer, decimals })
  }

  async function answerOf(query: FeedQuery, round: RoundRead, decimals: DecimalsRead, through: ContractCaller) {
    if (round === 'UNREAD' || decimals === 'UNREAD') return 'UNREAD'
    if (round === undefined || decimals === undefined) return undefined
    const previous = await previousOf(query.feed, round, decimals, through)
    if (previous === 'UNREAD') return 'UNREAD'
    remember(known, `${query.feed} ${round.roundId}`, { answer: round.answer, decimals })
    return { ...round, decimals, isJump: previous !== undefined && isJump({ ...round, decimals }, previous) }
  }

  /** What the feeds answered at the blocks. */
  async function answersAt(queries: readonly FeedQuery[], through: ContractCaller, signal: AbortSignal | undefined) {
    const distinct = [...new Map(queries.map((query) => [keyOf(query), query])).values()]
    const rounds = await roundsAt(distinct, through, signal)
    const decimalsOf = readDecimalsByRound(known, through)
    const answers = distinct.map(async (query): Promise<[string, FeedAnswer | 'UNREAD' | undefined]> => {
      const round = rounds.get(keyOf(query))
      const isRound = round !== undefined && round !== 'UNREAD'
      return [keyOf(query), await answerOf(query, round, isRound ? await decimalsOf(query, round) : undefined, through)]
    })
    return new Map(await Promise.all(answers))
  }

  async function roundsAt(distinct: readonly FeedQuery[], through: ContractCaller, signal: AbortSignal | undefined) {
    const rounds = new Map<string, RoundRead>()
    const calls = distinct.map(({ feed, blockNumber }) => ({ ...readLatestRound(feed), block: blockNumber }))
    const answers = await through.calls(calls)
    // The searches run in parallel, so that `through` merges each step of all of them into one exchange.
    const search = async (query: FeedQuery, answer: RpcAnswer | undefined) => {
      rounds.set(keyOf(query), isRefused(answer) ? await searchRounds(query, through) : roundIn(answer))
    }
    await Promise.all(distinct.map((query, index) => search(query, answers[index])))
    const open = distinct.flatMap((query, index) => (rounds.get(keyOf(query)) === 'UNREAD' ? (calls[index] ?? []) : []))
    const reported = open.length === 0 ? [] : await reader.callsAnywhere(open, signal)
    for (const query of distinct) {
      if (rounds.get(keyOf(query)) !== 'UNREAD') continue
      const answer = reported[open.findIndex(({ to, block }) => to === query.feed && block === query.blockNumber)]
      rounds.set(keyOf(query), answer === undefined || isRefused(answer) ? 'UNREAD' : roundIn(answer))
    }
    return rounds
  }

  return {
    /**
     * @param through - makes the calls, and merges them with others that are made at the same time
     * @returns prices in the order of the queries; undefined where there is none; UNREAD where the nodes could not tell now
     * @throws RpcError when no node answers
     */
    async pricesAt(
      queries: readonly PriceQuery[],
      signal?: AbortSignal,
      through: ContractCaller = gatherCalls(reader, signal),
    ): Promise<(UsdPrice | 'UNREAD' | undefined)[]> {
      const asked = queries.flatMap((query) =>
        query.token.usdFeed === undefined ? [] : [{ ...query, feed: query.token.usdFeed }],
      )
      const answers = await answersAt(asked, through, signal)
      return queries.map((query) => {
        const { usdFeed } = query.token
        if (usdFeed === undefined) return pegOf(query.token)
        const answer = answers.get(keyOf({ ...query, feed: usdFeed }))
        if (answer === 'UNREAD') return pegOf(query.token) ?? 'UNREAD'
        return feedPrice(query, answer) ?? pegOf(query.token)
      })
    },
  }
}

const keyOf = ({ feed, blockNumber }: FeedQuery) => `${feed} ${blockNumber}`

function remember<T>(rounds: Map<string, T>, key: string, quoted: T): T {
  if (rounds.size >= MAX_REMEMBERED) rounds.clear()
  rounds.set(key, quoted)
  return quoted
}

/** Reads decimals by round, since a round's answer has those of when it was written, and each call counts on a node with limits. */
function readDecimalsByRound(known: ReadonlyMap<string, Quoted>, through: ContractCaller) {
  const readings = new Map<string, Promise<DecimalsRead>>()
  return async (query: FeedQuery, { roundId }: FeedRound): Promise<DecimalsRead> => {
    const key = `${query.feed} ${roundId}`
    const remembered = known.get(key)
    if (remembered !== undefined) return remembered.decimals
    const reading = readings.get(key) ?? decimalsAt(query, through)
    readings.set(key, reading)
    return reading
  }
}

/** The decimals of a feed at a block; at the newest block where the node no longer has that state. */
async function decimalsAt(query: FeedQuery, through: ContractCaller): Promise<DecimalsRead> {
  const [atBlock] = await through.calls([{ ...readDecimals(query.feed), block: query.blockNumber }])
  if (!isRefused(atBlock)) return decimalsIn(atBlock)
  const [now] = await through.calls([{ ...readDecimals(query.feed), block: 'latest' }])
  return isRefused(now) ? 'UNREAD' : decimalsIn(now)
}

function feedPrice({ token, timestampSec }: PriceQuery, answer: FeedAnswer | undefined): UsdPrice | undefined {
  if (answer === undefined || !isPrice(answer, token.heartbeatSeconds ?? Number.POSITIVE_INFINITY, timestampSec)) {
    return undefined
  }
  const at = new Date(answer.updatedAtSec * 1_000)
  return { usd: { units: answer.answer, places: answer.decimals }, source: 'feed', at }
}

export function decimalsIn(answer: RpcAnswer | undefined): number | undefined {
  const decimals = answer?.ok === true && String(answer.result).length === 66 ? Number(answer.result) : undefined
  return decimals !== undefined && decimals <= MAX_FEED_DECIMALS ? decimals : undefined
}

/** Whether the node did not answer: a revert is an answer. */
export function isRefused(answer: RpcAnswer | undefined): answer is Extract<RpcAnswer, { readonly ok: false }> {
  return answer?.ok === false && answer.error.kind !== 'REVERTED'
}

/** @returns UNREAD where the rounds do not tell: the node refused some of them, or the feed has none of that time */
async function searchRounds({ feed, timestampSec }: FeedQuery, through: ContractCaller): Promise<RoundRead> {
  let hasRefused = false
  const noting: ContractCaller = {
    async calls(reads, signal) {
      const answers = await through.calls(reads, signal)
      hasRefused ||= answers.some(isRefused)
      return answers
    },
  }
  const round = await findRoundAt(noting, feed, timestampSec)
  return hasRefused ? 'UNREAD' : (round ?? 'UNREAD')
}

/** The fixed price of a token, where it has one. */
export function pegOf(token: Token): UsdPrice | undefined {
  const usd = token.pegUsd === undefined ? undefined : parseDecimal(token.pegUsd)
  return usd === undefined ? undefined : { usd, source: 'peg' }
}

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
    const last = phase === latestPhase ? Number(latest.roundId & ROUND_MASK) : await lastRoundOf(first, at)
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

/** No phase has as many rounds. */
const MAX_ROUNDS = 2 ** 32

/** The highest round of an earlier phase, found by doubling; 0 for a phase without rounds. */
async function lastRoundOf(first: bigint, at: RoundAt): Promise<number> {
  const isThere = async (round: number) => (await at(first + BigInt(round))) !== undefined
  let above = 1
  while (above < MAX_ROUNDS && (await isThere(above))) above *= 2
  return findLast(Math.floor(above / 2), above - 1, isThere)
}

/** The last of the rounds 1…last that is not after the time. A round that the feed no longer answers is older than all that it answers. */
async function searchPhase(
  first: bigint,
  last: number,
  timestampSec: number,
  at: RoundAt,
): Promise<FeedRound | undefined> {
  let found: FeedRound | undefined
  await findLast(0, last, async (number) => {
    const round = await at(first + BigInt(number))
    if (round !== undefined && round.updatedAtSec > timestampSec) return false
    found = round
    return true
  })
  return found
}
