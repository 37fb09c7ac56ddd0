import type { Address } from '../domain/address.ts'
import type { ChainConfig } from '../domain/chains-file.ts'
import type { Token } from '../domain/currency.ts'
import { createJsonRpc, type JsonRpc, type RpcCall, RpcFailure } from './json-rpc.ts'
import {
  type ContractRead,
  decodeAggregate3,
  encodeAggregate3,
  intAt,
  readBlockTimestamp,
  readDecimals,
  readLatestRound,
  readNativeBalance,
  readTokenBalance,
  uintAt,
} from './multicall.ts'
import { decidePrice, type FeedRound, type Price } from './prices.ts'

/** What one look at a chain told about a wallet. Balances, prices and time are of one block. */
export interface ChainState {
  readonly chain: ChainConfig
  readonly timestampSec: number
  /** Wei for a unit of gas: the next block's base fee and the median tip of the last blocks. */
  readonly gasPrice: bigint
  /** Whether the wallet is a contract, or delegates to one. */
  readonly walletHasCode: boolean
  /** Base units that the wallet holds; undefined when the token's contract gave no number. */
  balanceOf(token: Token): bigint | undefined
  priceOf(token: Token): Price | undefined
  /** The return data of a further read that was asked for, as digits; undefined when it failed. */
  answerTo(read: ContractRead): string | undefined
}

/** Looks at one chain through one URL. */
export interface ChainReader {
  /**
   * Reads everything in one HTTP request.
   *
   * @param reads - beside the balances and prices of all the chain's tokens
   * @throws RpcFailure when the node is unreachable, on another chain, behind, or answers what cannot be right
   */
  read(wallet: Address, reads: readonly ContractRead[], signal: AbortSignal): Promise<ChainState>
}

export interface ChainReaderOptions {
  readonly chain: ChainConfig
  readonly url: string
  /** The chain's tokens, the native coin among them. */
  readonly tokens: readonly Token[]
  readonly fetch: typeof fetch
  /** Milliseconds since 1970. */
  readonly clock: () => number
}

/** Blocks whose tips are looked at. */
const FEE_HISTORY_BLOCKS = 5

/** A head is stale when it is older than this and than as many usual blocks: some chains make blocks only when there is work. */
const STALE_HEAD_SECONDS = 300
const STALE_HEAD_BLOCKS = 20

/** Makes the reader of a chain's URL. It checks the URL's chain id in its first request and then knows it. */
export function createChainReader(options: ChainReaderOptions): ChainReader {
  const { chain, tokens } = options
  const rpc: JsonRpc = createJsonRpc(options.url, options.fetch)
  const feedDecimals = new Map<Address, number>()
  let chainIdChecked = false

  /** The chain itself, the tokens' balances and feeds: what every look reads. */
  function usualReads(wallet: Address): ContractRead[] {
    const reads = [readBlockTimestamp(chain.multicall)]
    for (const token of tokens) {
      reads.push(readBalance(chain, token, wallet))
      if (token.usdFeed === undefined) continue
      reads.push(readLatestRound(token.usdFeed))
      if (!feedDecimals.has(token.usdFeed)) reads.push(readDecimals(token.usdFeed))
    }
    return reads
  }

  function readRound(feed: Address | undefined, answerTo: ChainState['answerTo']): FeedRound | undefined {
    if (feed === undefined) return undefined
    const decimals = feedDecimals.get(feed) ?? Number(uintAt(answerTo(readDecimals(feed)) ?? '', 0) ?? -1)
    const digits = answerTo(readLatestRound(feed)) ?? ''
    const [answer, updatedAt] = [intAt(digits, 1), uintAt(digits, 3)]
    if (decimals < 0 || answer === undefined || updatedAt === undefined) return undefined
    feedDecimals.set(feed, decimals)
    return { answer, decimals, updatedAtSec: Number(updatedAt) }
  }

  function stateOf(wallet: Address, answers: Answers, gasPrice: bigint, code: string): ChainState {
    const answerTo = (read: ContractRead) => answers.get(keyOf(read))
    const timestampSec = Number(uintAt(answerTo(readBlockTimestamp(chain.multicall)) ?? '', 0) ?? 0)
    if (timestampSec === 0) throw new RpcFailure('INCONSISTENT', 'Multicall3 told no time')
    const ageSec = Math.floor(options.clock() / 1000) - timestampSec
    if (ageSec > Math.max(STALE_HEAD_SECONDS, STALE_HEAD_BLOCKS * chain.blockTimeSeconds)) {
      throw new RpcFailure('INCONSISTENT', `its newest block is ${ageSec} seconds old`)
    }
    return {
      chain,
      timestampSec,
      gasPrice,
      walletHasCode: code.length > 2,
      balanceOf: (token) => uintAt(answerTo(readBalance(chain, token, wallet)) ?? '', 0),
      priceOf: (token) => decidePrice(token, readRound(token.usdFeed, answerTo), timestampSec),
      answerTo,
    }
  }

  return {
    async read(wallet, furtherReads, signal) {
      const reads = withoutRepetition([...usualReads(wallet), ...furtherReads])
      const calls: RpcCall[] = [
        { method: 'eth_call', params: [{ to: chain.multicall, data: encodeAggregate3(reads) }, 'latest'] },
        { method: 'eth_feeHistory', params: [`0x${FEE_HISTORY_BLOCKS.toString(16)}`, 'latest', [50]] },
        { method: 'eth_getCode', params: [wallet, 'latest'] },
      ]
      if (!chainIdChecked) calls.push({ method: 'eth_chainId', params: [] })
      const [aggregate, feeHistory, code, chainId] = await rpc.callAll(calls, signal)
      if (!chainIdChecked) checkChainId(chain, chainId)
      chainIdChecked = true
      if (typeof code !== 'string' || !code.startsWith('0x')) throw new RpcFailure('INCONSISTENT', 'no code')
      return stateOf(wallet, decodeAnswers(reads, aggregate), decodeGasPrice(feeHistory), code)
    },
  }
}

type Answers = ReadonlyMap<string, string | undefined>

function keyOf(read: ContractRead): string {
  return read.to + read.data
}

function withoutRepetition(reads: readonly ContractRead[]): ContractRead[] {
  return [...new Map(reads.map((read) => [keyOf(read), read])).values()]
}

function decodeAnswers(reads: readonly ContractRead[], aggregate: unknown): Answers {
  if (typeof aggregate !== 'string') throw new RpcFailure('INCONSISTENT', 'no data')
  if (aggregate === '0x')
    throw new RpcFailure('INCONSISTENT', 'there is no Multicall3 contract at the configured address')
  try {
    const answers = decodeAggregate3(aggregate, reads.length)
    return new Map(reads.map((read, i) => [keyOf(read), answers[i]]))
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause
    throw new RpcFailure('INCONSISTENT', `what Multicall3 returned is broken: ${cause.message}`, { cause })
  }
}

/** The read of an account's holdings of a token or native coin. */
export function readBalance(chain: ChainConfig, token: Token, owner: Address): ContractRead {
  return token.address === undefined
    ? readNativeBalance(chain.multicall, owner)
    : readTokenBalance(token.address, owner)
}

function checkChainId(chain: ChainConfig, answer: unknown): void {
  const id = quantity(answer)
  if (id === BigInt(chain.chainId)) return
  throw new RpcFailure('INCONSISTENT', `it says that its chain id is ${id ?? 'none'}, not ${chain.chainId}`)
}

function quantity(answer: unknown): bigint | undefined {
  return typeof answer === 'string' && /^0x[0-9a-f]{1,64}$/i.test(answer) ? BigInt(answer) : undefined
}

/**
 * The price of gas from the answer to `eth_feeHistory(5, latest, [50])`: the next block's base fee, which stands behind those of
 * the blocks themselves, and the median of the blocks' median tips.
 *
 * @throws RpcFailure when it is no fee history
 */
export function decodeGasPrice(answer: unknown): bigint {
  const { baseFeePerGas, reward } = (answer ?? {}) as { baseFeePerGas?: unknown; reward?: unknown }
  const nextBaseFee = Array.isArray(baseFeePerGas) ? quantity(baseFeePerGas.at(-1)) : undefined
  if (nextBaseFee === undefined || !Array.isArray(reward)) throw new RpcFailure('INCONSISTENT', 'no fee history')
  const tips = reward.map((block: unknown) => (Array.isArray(block) ? quantity(block[0]) : undefined))
  const known = tips.filter((tip) => tip !== undefined).toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0))
  if (known.length < tips.length) throw new RpcFailure('INCONSISTENT', 'a fee history without tips')
  return nextBaseFee + (known[known.length >> 1] ?? 0n)
}
