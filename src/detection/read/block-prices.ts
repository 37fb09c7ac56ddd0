import { type FeedRound, MAX_FEED_DECIMALS, readDecimals, readLatestRound } from '../../contracts/price-feed.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { type Decimal, parseDecimal } from '../../domain/decimal.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
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
   * @returns prices in the order of the wishes; undefined where no price is known
   * @throws RpcError when no node answers
   */
  pricesAt(
    wishes: readonly PriceWish[],
    signal?: AbortSignal,
    through?: ContractCaller,
  ): Promise<(UsdPrice | undefined)[]>
}

interface FeedWish extends PriceWish {
  readonly feed: Address
}

/** Makes the price reader of one chain. It asks feeds at the block, and searches their rounds where the node no longer has that state. */
export function createPriceReader(reader: ContractCaller): PriceReader {
  const decimalsOfFeed = new Map<Address, number>()

  async function loadDecimals(feeds: ReadonlySet<Address>, through: ContractCaller): Promise<void> {
    const unknown = [...feeds].filter((feed) => !decimalsOfFeed.has(feed))
    if (unknown.length === 0) return
    const calls = unknown.map((feed) => ({ ...readDecimals(feed), block: 'latest' as const }))
    const answers = await through.calls(calls)
    for (const [index, feed] of unknown.entries()) {
      const answer = answers[index]
      const decimals = answer?.ok === true && String(answer.result).length === 66 ? Number(answer.result) : undefined
      if (decimals !== undefined && decimals <= MAX_FEED_DECIMALS) decimalsOfFeed.set(feed, decimals)
    }
  }

  async function roundsAt(wishes: readonly FeedWish[], through: ContractCaller) {
    const rounds = new Map<string, FeedRound | undefined>()
    const distinct = [...new Map(wishes.map((wish) => [keyOf(wish), wish])).values()]
    const calls = distinct.map(({ feed, blockNumber }) => ({ ...readLatestRound(feed), block: blockNumber }))
    const answers = await through.calls(calls)
    // The searches run in parallel, so that `through` merges each step of all of them into one exchange.
    const search = async (wish: FeedWish, answer: RpcAnswer | undefined) => {
      const isStateGone = answer?.ok === false && answer.error.kind !== 'REVERTED'
      const round = isStateGone ? await findRoundAt(through, wish.feed, wish.timestampSec) : roundIn(answer)
      rounds.set(keyOf(wish), round)
    }
    await Promise.all(distinct.map((wish, index) => search(wish, answers[index])))
    return rounds
  }

  return {
    async pricesAt(wishes, signal, through = gatherCalls(reader, signal)) {
      const asked = wishes.flatMap((wish) =>
        wish.token.usdFeed === undefined ? [] : [{ ...wish, feed: wish.token.usdFeed }],
      )
      await loadDecimals(new Set(asked.map(({ feed }) => feed)), through)
      const rounds = await roundsAt(asked, through)
      return wishes.map((wish) => {
        const { usdFeed } = wish.token
        if (usdFeed === undefined) return pegOf(wish.token)
        const price = feedPrice(wish, rounds.get(keyOf({ ...wish, feed: usdFeed })), decimalsOfFeed.get(usdFeed))
        return price ?? pegOf(wish.token)
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

function pegOf(token: Token): UsdPrice | undefined {
  const usd = token.pegUsd === undefined ? undefined : parseDecimal(token.pegUsd)
  return usd === undefined ? undefined : { usd, source: 'peg' }
}
