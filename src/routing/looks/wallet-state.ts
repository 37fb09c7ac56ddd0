import type { ChainConfig } from '../../chains/chains-file.ts'
import {
  type ContractRead,
  intAt,
  readBlockTimestamp,
  readDecimals,
  readLatestRound,
  readNativeBalance,
  readTokenBalance,
  uintAt,
} from '../../contracts/multicall.ts'
import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { RpcFailure } from '../../nodes/json-rpc.ts'
import { createL1Fee } from './l1-fee.ts'
import { decidePrice, type FeedRound, MOST_FEED_DECIMALS, type Price } from './token-prices.ts'

/** What one look at a chain told about a wallet. Balances, prices and time are of one block. */
export interface ChainState {
  readonly chain: ChainConfig
  readonly timestampSec: number
  /** Wei for a unit of gas: the next block's base fee and a tip. */
  readonly gasPrice: bigint
  /** Whether the wallet is a contract, or delegates to one. */
  readonly walletHasCode: boolean
  /** Base units that the wallet holds; undefined when the token's contract gave no number. */
  balanceOf(token: Token): bigint | undefined
  priceOf(token: Token): Price | undefined
  /**
   * Wei that a transaction costs beside its gas for being published on the chain below; 0 where there is none.
   *
   * @param dataBytes - of its calldata
   * @returns undefined when the chain does not tell
   */
  l1FeeOf(dataBytes: number): bigint | undefined
  /** The return data of a further read that was asked for, as digits; undefined when it failed. */
  answerTo(read: ContractRead): string | undefined
}

/** What was told about a wallet, undecoded. */
export interface Told extends Pick<ChainState, 'timestampSec' | 'gasPrice' | 'walletHasCode' | 'answerTo'> {
  readonly wallet: Address
}

/** What every look at a chain reads: the chain itself, the tokens' balances and feeds. Shared by all URLs of the chain. */
export interface UsualReads {
  ofChain(): readonly ContractRead[]
  ofWallet(wallet: Address): readonly ContractRead[]
  /** @throws RpcFailure when there is none */
  timestampOf(answerTo: ChainState['answerTo']): number
  stateOf(told: Told): ChainState
}

/** @param tokens - the chain's, the native coin among them */
export function createUsualReads(chain: ChainConfig, tokens: readonly Token[]): UsualReads {
  const timestamp = readBlockTimestamp(chain.multicall)
  const rounds = new Map(
    tokens.flatMap(({ usdFeed }) => (usdFeed === undefined ? [] : [[usdFeed, readLatestRound(usdFeed)]])),
  )
  /** A feed's decimals never change; they are asked for until they are known. */
  const unknownDecimals = new Map([...rounds.keys()].map((feed) => [feed, readDecimals(feed)]))
  const knownDecimals = new Map<Address, number>()
  const l1Fee = chain.l1Fee === undefined ? undefined : createL1Fee(chain.l1Fee)
  let ofChain = [timestamp, ...(l1Fee?.reads ?? []), ...rounds.values(), ...unknownDecimals.values()]

  function decimalsOf(feed: Address, answerTo: ChainState['answerTo']): number | undefined {
    const known = knownDecimals.get(feed)
    if (known !== undefined) return known
    const read = unknownDecimals.get(feed)
    const told = read && uintAt(answerTo(read) ?? '', 0)
    if (told === undefined || told > MOST_FEED_DECIMALS) return undefined
    knownDecimals.set(feed, Number(told))
    ofChain = ofChain.filter((each) => each !== read)
    return Number(told)
  }

  function readRound(feed: Address | undefined, answerTo: ChainState['answerTo']): FeedRound | undefined {
    const read = feed && rounds.get(feed)
    if (feed === undefined || read === undefined) return undefined
    const decimals = decimalsOf(feed, answerTo)
    const digits = answerTo(read) ?? ''
    const [answer, updatedAt] = [intAt(digits, 1), uintAt(digits, 3)]
    if (decimals === undefined || answer === undefined || updatedAt === undefined) return undefined
    return { answer, decimals, updatedAtSec: Number(updatedAt) }
  }

  return {
    ofChain: () => ofChain,
    ofWallet: (wallet) => tokens.map((token) => readBalance(chain, token, wallet)),
    timestampOf(answerTo) {
      const timestampSec = Number(uintAt(answerTo(timestamp) ?? '', 0) ?? 0)
      if (timestampSec === 0) throw new RpcFailure('INCONSISTENT', 'Multicall3 told no time')
      return timestampSec
    },
    stateOf({ wallet, ...told }) {
      const { answerTo, timestampSec } = told
      const balances = new Map<string, bigint | undefined>()
      const prices = new Map<string, Price | undefined>()
      const decide = (token: Token) => decidePrice(token, readRound(token.usdFeed, answerTo), timestampSec)
      return {
        chain,
        ...told,
        balanceOf(token) {
          if (!balances.has(token.id))
            balances.set(token.id, uintAt(answerTo(readBalance(chain, token, wallet)) ?? '', 0))
          return balances.get(token.id)
        },
        l1FeeOf: (dataBytes) => (l1Fee === undefined ? 0n : l1Fee.feeOf(dataBytes, answerTo)),
        priceOf(token) {
          if (!prices.has(token.id)) prices.set(token.id, decide(token))
          return prices.get(token.id)
        },
      }
    },
  }
}

/** The read of an account's holdings of a token or native coin. */
export function readBalance(chain: ChainConfig, token: Token, owner: Address): ContractRead {
  return token.address === undefined
    ? readNativeBalance(chain.multicall, owner)
    : readTokenBalance(token.address, owner)
}
