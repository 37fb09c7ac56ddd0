import type { ChainConfig } from '../../chains/chains-file.ts'
import {
  decodeIsSanctioned,
  readBlockTimestamp,
  readIsSanctioned,
  readNativeBalance,
  readTokenBalance,
} from '../../contracts/contract-reads.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
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
import { uintAt } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { type Decimal, parseDecimal } from '../../domain/decimal.ts'
import { RpcError } from '../../nodes/rpc-error.ts'

/** What one scan of a chain found about a wallet. Balances, prices and time are of one block. */
export interface ChainState {
  readonly chain: ChainConfig
  readonly timestampSec: number
  /** Wei for a unit of gas: the next block's base fee and a tip. */
  readonly gasPrice: bigint
  /** Wei for a unit of gas that wallets demand before they send: twice the base fee and the tip. */
  readonly maxFeePerGas: bigint
  /** Whether the wallet is a contract, whose gas others may pay. */
  readonly walletIsContract: boolean
  /** The wallet's balance in base units; undefined when the token's contract gave no number. */
  balanceOf(token: Token): bigint | undefined
  priceOf(token: Token): Price | undefined
  /**
   * Wei that a transaction costs beside its gas for being published on the parent chain; 0 where there is none.
   *
   * @param dataBytes - bytes of its calldata
   * @returns undefined when the chain gave no answer
   */
  l1FeeOf(dataBytes: number): bigint | undefined
  /** Whether the chain's oracle lists the wallet; undefined where it has none, or that gave no answer. */
  readonly isListed: boolean | undefined
  /** The return data of a further read that was asked for, as digits; undefined when it failed. */
  answerTo(read: ContractRead): string | undefined
}

type AnswerTo = ChainState['answerTo']

/** The answers about one wallet, still encoded. */
interface RawState
  extends Pick<ChainState, 'timestampSec' | 'gasPrice' | 'maxFeePerGas' | 'walletIsContract' | 'answerTo'> {
  readonly wallet: Address
}

/** What every scan of a chain reads: the chain itself, the tokens' balances and feeds. Shared by all URLs of the chain. */
export type UsualReads = ReturnType<typeof createUsualReads>

/** @param tokens - the chain's, the native coin among them */
export function createUsualReads(chain: ChainConfig, tokens: readonly Token[]) {
  const timestamp = readBlockTimestamp(chain.multicall)
  const feeds = createFeedReads(tokens.flatMap(({ usdFeed }) => usdFeed ?? []))
  const ofChain = [timestamp, ...(chain.l1Fee?.reads ?? [])]
  return {
    ofChain: () => [...ofChain, ...feeds.list()],
    ofWallet: (wallet: Address) => [
      ...tokens.map((token) => readBalance(chain, token, wallet)),
      ...(chain.screening === undefined ? [] : [readIsSanctioned(chain.screening.oracle, wallet)]),
    ],
    /** @throws RpcError when there is none */
    timestampOf(answerTo: AnswerTo): number {
      const timestampSec = Number(uintAt(answerTo(timestamp), 0) ?? 0)
      if (timestampSec === 0) throw new RpcError('INCONSISTENT', 'Multicall3 gave no block time')
      return timestampSec
    },
    stateOf: (raw: RawState) => decodeState(raw, chain, feeds),
  }
}

/** A round, with the decimals that were read beside it. */
type KnownRound = FeedRound & { readonly decimals: number }

/** The newest round that was read of a feed, and the one before it once that was read. */
interface KnownFeed {
  readonly newest: KnownRound
  readonly previous: KnownRound | undefined
}

/**
 * Reads feeds, and remembers their newest rounds, by which the next are judged: no read can ask for the round before one that is not known yet.
 * After several new rounds at once, the newest that is known stands for the round before until the next scan has read that.
 */
function createFeedReads(feeds: readonly Address[]) {
  const reads = feeds.map((feed) => ({ feed, round: readLatestRound(feed), decimals: readDecimals(feed) }))
  const byFeed = new Map(reads.map((read) => [read.feed, read]))
  const known = new Map<Address, KnownFeed>()
  const always = reads.flatMap(({ round, decimals }) => [round, decimals])

  return {
    /** The latest rounds with their decimals, and the rounds before them that are not known yet. */
    list: () => [
      ...always,
      ...[...known].flatMap(([feed, { newest, previous }]) =>
        previous === undefined && newest.roundId > 0n ? [readRound(feed, newest.roundId - 1n)] : [],
      ),
    ],
    answerOf(feed: Address, answerTo: AnswerTo): FeedAnswer | undefined {
      const read = byFeed.get(feed)
      const round = read && decodeRound(answerTo(read.round) ?? '')
      const decimals = read && uintAt(answerTo(read.decimals), 0)
      if (round === undefined || decimals === undefined || decimals > MAX_FEED_DECIMALS) return undefined
      const newest = { ...round, decimals: Number(decimals) }
      const before = known.get(feed)
      const previous =
        previousOf(newest, before) ??
        readPrevious(feed, { roundId: newest.roundId, decimals: (before?.newest ?? newest).decimals }, answerTo)
      known.set(feed, { newest, previous })
      const compared = previous ?? before?.newest
      return { ...newest, isJump: compared !== undefined && isJump(newest, compared) }
    },
  }
}

function previousOf({ roundId }: KnownRound, known: KnownFeed | undefined): KnownRound | undefined {
  if (known?.newest.roundId === roundId - 1n) return known.newest
  return known?.newest.roundId === roundId ? known.previous : undefined
}

/**
 * The round before one, where it was asked for and the feed has it.
 *
 * @param decimals - those that the feed had when it was first read, since those of the round are no longer known
 */
function readPrevious(
  feed: Address,
  { roundId, decimals }: Pick<KnownRound, 'roundId' | 'decimals'>,
  answerTo: AnswerTo,
): KnownRound | undefined {
  if (roundId === 0n) return undefined
  const round = decodeRound(answerTo(readRound(feed, roundId - 1n)) ?? '')
  return round && { ...round, decimals }
}

/** Decodes balances and prices when they are asked for, each once: an answer uses few of them. */
function decodeState(
  { wallet, ...raw }: RawState,
  chain: ChainConfig,
  feeds: ReturnType<typeof createFeedReads>,
): ChainState {
  const { answerTo, timestampSec } = raw
  const decodeBalance = (token: Token) => uintAt(answerTo(readBalance(chain, token, wallet)), 0)
  const decodePrice = (token: Token) =>
    decidePrice(token, token.usdFeed && feeds.answerOf(token.usdFeed, answerTo), timestampSec)
  return {
    chain,
    ...raw,
    balanceOf: oncePerToken(decodeBalance),
    isListed: chain.screening && decodeIsSanctioned(answerTo(readIsSanctioned(chain.screening.oracle, wallet))),
    l1FeeOf: (dataBytes) => (chain.l1Fee === undefined ? 0n : chain.l1Fee.feeOf(dataBytes, answerTo)),
    priceOf: oncePerToken(decodePrice),
  }
}

function oncePerToken<T>(decode: (token: Token) => T): (token: Token) => T {
  const known = new Map<string, T>()
  return (token) => {
    if (!known.has(token.id)) known.set(token.id, decode(token))
    return known.get(token.id) as T
  }
}

/** The read of an account's balance of a token or native coin. */
export function readBalance(chain: ChainConfig, token: Token, owner: Address): ContractRead {
  return token.address === undefined
    ? readNativeBalance(chain.multicall, owner)
    : readTokenBalance(token.address, owner)
}

/** What one unit of a token is worth. */
export interface Price {
  /** US dollars, above 0. */
  readonly usd: Decimal
  readonly source: 'feed' | 'peg'
}

/**
 * Decides a token's price: that of the feed if it is a price now, else the peg, else none.
 *
 * @param round - undefined where there is no feed or it could not be read
 * @param blockTimestampSec - the time of the block in which the feed was read, since feeds live by the chain's clock
 */
function decidePrice(token: Token, round: FeedAnswer | undefined, blockTimestampSec: number): Price | undefined {
  if (round !== undefined && isPrice(round, token.heartbeatSeconds ?? 0, blockTimestampSec)) {
    return { usd: { units: round.answer, places: round.decimals }, source: 'feed' }
  }
  const peg = token.pegUsd === undefined ? undefined : parseDecimal(token.pegUsd)
  return peg === undefined || peg.units <= 0n ? undefined : { usd: peg, source: 'peg' }
}
