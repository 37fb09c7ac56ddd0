import { type FeedRound, MAX_FEED_DECIMALS, readDecimals, readLatestRound } from '../../contracts/price-feed.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { type Decimal, parseDecimal } from '../../domain/decimal.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import type { ChainReader } from './chain-reader.ts'
import { findRoundAt, roundIn } from './feed-rounds.ts'
import { type ContractCaller, gatherCalls } from './gather-calls.ts'

/** What one unit of a currency was worth in US dollars. */
export interface UsdPrice {
  readonly usd: Decimal
  readonly source: 'feed' | 'peg'
  /** When the feed was updated. */
  readonly at?: Date
}

/** A price to read. */
export interface PriceWish {
  readonly token: Token
  readonly blockNumber: number
  readonly timestampSec: number
}

/** Reads what tokens were worth at the time of a block. */
export interface PriceReader {
  /**
   * @param through - makes the calls, and merges them with others that are made at the same time
   * @returns prices in the order of the wishes; undefined where there is none; UNREAD where the nodes could not tell now
   * @throws RpcError when no node answers
   */
  pricesAt(
    wishes: readonly PriceWish[],
    signal?: AbortSignal,
    through?: ContractCaller,
  ): Promise<(UsdPrice | 'UNREAD' | undefined)[]>
}

interface FeedWish extends PriceWish {
  readonly feed: Address
}

/** The round of a feed that counted at a block; UNREAD where no node could tell. */
type RoundRead = FeedRound | 'UNREAD' | undefined

/**
 * Makes the price reader of one chain. It asks feeds at the block. Where the node no longer has that state, it searches the feed's rounds; where
 * these do not tell, it asks the other nodes at the block.
 */
export function createPriceReader(reader: Pick<ChainReader, 'calls' | 'callsAnywhere'>): PriceReader {
  const decimalsOfFeed = new Map<Address, number>()

  /** @returns the feeds whose decimals the node refused to tell */
  async function loadDecimals(feeds: ReadonlySet<Address>, through: ContractCaller): Promise<Set<Address>> {
    const refused = new Set<Address>()
    const unknown = [...feeds].filter((feed) => !decimalsOfFeed.has(feed))
    if (unknown.length === 0) return refused
    const calls = unknown.map((feed) => ({ ...readDecimals(feed), block: 'latest' as const }))
    const answers = await through.calls(calls)
    for (const [index, feed] of unknown.entries()) {
      const answer = answers[index]
      const decimals = answer?.ok === true && String(answer.result).length === 66 ? Number(answer.result) : undefined
      if (decimals !== undefined && decimals <= MAX_FEED_DECIMALS) decimalsOfFeed.set(feed, decimals)
      if (isRefused(answer)) refused.add(feed)
    }
    return refused
  }

  async function roundsAt(wishes: readonly FeedWish[], through: ContractCaller, signal: AbortSignal | undefined) {
    const rounds = new Map<string, RoundRead>()
    const distinct = [...new Map(wishes.map((wish) => [keyOf(wish), wish])).values()]
    const calls = distinct.map(({ feed, blockNumber }) => ({ ...readLatestRound(feed), block: blockNumber }))
    const answers = await through.calls(calls)
    // The searches run in parallel, so that `through` merges each step of all of them into one exchange.
    const search = async (wish: FeedWish, answer: RpcAnswer | undefined) => {
      rounds.set(keyOf(wish), isRefused(answer) ? await searchRounds(wish, through) : roundIn(answer))
    }
    await Promise.all(distinct.map((wish, index) => search(wish, answers[index])))
    const open = distinct.flatMap((wish, index) => (rounds.get(keyOf(wish)) === 'UNREAD' ? (calls[index] ?? []) : []))
    const told = open.length === 0 ? [] : await reader.callsAnywhere(open, signal)
    for (const wish of distinct) {
      if (rounds.get(keyOf(wish)) !== 'UNREAD') continue
      const answer = told[open.findIndex(({ to, block }) => to === wish.feed && block === wish.blockNumber)]
      rounds.set(keyOf(wish), answer === undefined || isRefused(answer) ? 'UNREAD' : roundIn(answer))
    }
    return rounds
  }

  return {
    async pricesAt(wishes, signal, through = gatherCalls(reader, signal)) {
      const asked = wishes.flatMap((wish) =>
        wish.token.usdFeed === undefined ? [] : [{ ...wish, feed: wish.token.usdFeed }],
      )
      const refused = await loadDecimals(new Set(asked.map(({ feed }) => feed)), through)
      const rounds = await roundsAt(asked, through, signal)
      return wishes.map((wish) => {
        const { usdFeed } = wish.token
        if (usdFeed === undefined) return pegOf(wish.token)
        const round = rounds.get(keyOf({ ...wish, feed: usdFeed }))
        if (round === 'UNREAD' || refused.has(usdFeed)) return pegOf(wish.token) ?? 'UNREAD'
        return feedPrice(wish, round, decimalsOfFeed.get(usdFeed)) ?? pegOf(wish.token)
      })
    },
  }
}

const keyOf = ({ feed, blockNumber }: FeedWish) => `${feed} ${blockNumber}`

/** A feed's answer counts while it is fresh and above 0. One from after the block cannot be right. */
function feedPrice(wish: PriceWish, round: FeedRound | undefined, decimals: number | undefined): UsdPrice | undefined {
  if (round === undefined || decimals === undefined || round.answer <= 0n) return undefined
  const ageSec = wish.timestampSec - round.updatedAtSec
  const { heartbeatSeconds } = wish.token
  if (ageSec < 0) return undefined
  if (heartbeatSeconds !== undefined && ageSec > heartbeatSeconds) return undefined
  return { usd: { units: round.answer, places: decimals }, source: 'feed', at: new Date(round.updatedAtSec * 1_000) }
}

/** Whether the node did not answer: a revert is an answer. */
function isRefused(answer: RpcAnswer | undefined): boolean {
  return answer?.ok === false && answer.error.kind !== 'REVERTED'
}

/** @returns UNREAD where the rounds do not tell: the node refused some of them, or the feed has none of that time */
async function searchRounds({ feed, timestampSec }: FeedWish, through: ContractCaller): Promise<RoundRead> {
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
