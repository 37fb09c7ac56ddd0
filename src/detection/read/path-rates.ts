import type { ConversionConfig } from '../../chains/chains-file.ts'
import { addressesOfPath, addressInPath, findConversionPath, maxRateAgeSeconds } from '../../chains/conversion-path.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import { readAggregator, readPathRate } from '../../contracts/contract-reads.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { readDecimals, readLatestRound } from '../../contracts/price-feed.ts'
import { addressOf, splitWords, uintOf } from '../../contracts/words.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import { FIAT_DECIMALS, type Token } from '../../domain/currency.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { decimalsIn, findRoundAt, isRefused } from './block-prices.ts'
import type { ChainReader } from './chain-reader.ts'
import type { ContractCaller } from './gather-calls.ts'

/** The configured path of a conversion, with its rates around the payment's block. */
export interface RatedPath {
  /** Rates whose oldest feed is older are stale. */
  readonly maxAgeSeconds: number
  /** That at the block, that at its parent, both, or none. */
  readonly rates: readonly PathRate[]
}

/** A conversion whose rate is to be read. */
export interface RateQuery {
  readonly invoiceCurrency: string
  /** What was paid with. */
  readonly token: Token
  readonly blockNumber: number
  readonly timestampSec: number
  /** Whether the payment counts by these rates already; otherwise the rate at the parent block is read too. */
  isEnough(path: RatedPath): boolean
}

export interface RateReaderOptions {
  readonly reader: Pick<ChainReader, 'headers'>
  readonly conversion: ConversionConfig | undefined
  readonly native: Token
  readonly tokens: TokenDirectory
}

/**
 * Makes what finds the rates of our own conversion paths on one chain. It asks ChainlinkConversionPath at the payment's block and, only where the payment does not count by that rate, at
 * the parent block. Where the node no longer has that state, it searches the rounds of the feeds that the contract uses now.
 */
export function createRateReader({ reader, conversion, native, tokens }: RateReaderOptions) {
  /** Decimals of a currency in a path, as the contract finds them; undefined where only the chain can tell. */
  const decimalsIn = (token: Token) => (address: Address) =>
    [token, native].find((known) => addressInPath(known) === address)?.decimals ??
    tokens.byAddress(native.chain, address)?.decimals

  async function rateAt(contract: Address, moment: Moment, through: ContractCaller): Promise<PathRate | undefined> {
    const { path, token, blockNumber, timestampSec } = moment
    const [answer] = await through.calls([{ ...readPathRate(contract, path), block: blockNumber }])
    if (!isRefused(answer)) return pathRateIn(answer)
    await moment.requireBlock()
    return findPathRateAt(through, { contract, path, timestampSec, decimalsOf: decimalsIn(token) })
  }

  async function ratedPath(query: RateQuery, requireBlock: () => Promise<void>, through: ContractCaller) {
    const { invoiceCurrency, token, blockNumber, timestampSec } = query
    const configured = findConversionPath(conversion, invoiceCurrency, token)
    if (conversion === undefined || configured === undefined) return undefined
    const path = addressesOfPath(configured, token)
    const maxAgeSeconds = maxRateAgeSeconds(configured)
    const at = { path, token, requireBlock }
    const atBlock = await rateAt(conversion.path, { ...at, blockNumber, timestampSec }, through)
    const rated: RatedPath = { maxAgeSeconds, rates: atBlock === undefined ? [] : [atBlock] }
    if (blockNumber === 0 || query.isEnough(rated)) return rated
    // A search by time finds the parent's rounds: those before this block's second.
    const before = { blockNumber: blockNumber - 1, timestampSec: timestampSec - 1 }
    const atParent = await rateAt(conversion.path, { ...at, ...before }, through)
    return { maxAgeSeconds, rates: [...rated.rates, ...(atParent === undefined ? [] : [atParent])] }
  }

  return {
    /**
     * @param through - makes the calls, and merges those that are made at the same time
     * @returns paths in the order of the queries; undefined where none is configured
     * @throws RpcError when no node answers, or none that knows the block
     */
    async ratesAt(
      queries: readonly RateQuery[],
      through: ContractCaller,
      signal?: AbortSignal,
    ): Promise<(RatedPath | undefined)[]> {
      const last = Math.max(...queries.map(({ blockNumber }) => blockNumber))
      let checked: Promise<void> | undefined
      // A node that refuses the call because it lags would give the rounds of an earlier block.
      const requireBlock = () => (checked ??= requireHeader(reader, last, signal))
      return Promise.all(queries.map((query) => ratedPath(query, requireBlock, through)))
    },
  }
}

interface Moment {
  readonly path: readonly Address[]
  readonly token: Token
  readonly blockNumber: number
  readonly timestampSec: number
  /** @throws RpcError where the node does not know the block */
  readonly requireBlock: () => Promise<void>
}

async function requireHeader(
  reader: Pick<ChainReader, 'headers'>,
  blockNumber: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const [header] = await reader.headers([blockNumber], signal)
  if (header === undefined) throw new RpcError('REFUSED', `the node does not know block ${blockNumber} yet`)
}

/** Decodes the answer to a call for a path's rate; undefined where there is none. A negative feed answer gives a rate of 0, which is none. */
export function pathRateIn(answer: RpcAnswer | undefined): PathRate | undefined {
  const words = answer?.ok ? splitWords(String(answer.result).slice(2), 3) : undefined
  if (words === undefined) return undefined
  const [rate, oldestSec, scale] = words.map(uintOf) as [bigint, bigint, bigint]
  return rate === 0n || scale === 0n ? undefined : { rate, oldestSec, scale }
}

/** What a conversion path gave at one moment. */
export interface PathRate {
  /** Base units of the token for `scale` base units of the invoice currency. Above 0. */
  readonly rate: bigint
  readonly scale: bigint
  /** When the feed of the path that is unchanged for longest was updated, in seconds. */
  readonly oldestSec: bigint
}

/** A conversion path at a time whose state the node no longer has. */
interface PastPath {
  /** The ChainlinkConversionPath. */
  readonly contract: Address
  readonly path: readonly Address[]
  readonly timestampSec: number
  /** Decimals of tokens and coins that are configured. */
  readonly decimalsOf: (address: Address) => number | undefined
}

/** A step of a path: one feed, taken as it is or inverted. */
interface PathLeg {
  /** The feed's answer at the time. */
  readonly answer: bigint
  readonly updatedAtSec: number
  readonly feedDecimals: number
  readonly isReversed: boolean
  readonly inputDecimals: number
  readonly outputDecimals: number
}

/**
 * Computes the rate of a path from the rounds of its feeds, for nodes that no longer have the state of that block. Takes the feeds that the contract
 * uses now.
 *
 * @param reader - merges calls that are made at the same time
 * @returns undefined where a feed is missing, had no answer above 0 then, or does not answer earlier rounds
 * @throws RpcError where the node refuses a call at its latest block
 */
export async function findPathRateAt(reader: ContractCaller, past: PastPath): Promise<PathRate | undefined> {
  const hops = past.path.slice(1).map((output, index) => ({ input: past.path[index] as Address, output }))
  const legs = await Promise.all(hops.map((hop) => readLeg(reader, hop, past)))
  return legs.some((leg) => leg === undefined) ? undefined : rateOfLegs(legs as PathLeg[], past.timestampSec)
}

async function readLeg(
  reader: ContractCaller,
  { input, output }: { readonly input: Address; readonly output: Address },
  { contract, timestampSec, decimalsOf }: PastPath,
): Promise<PathLeg | undefined> {
  const decimals = async (address: Address) => decimalsOf(address) ?? (await findDecimals(reader, address))
  const [straight, reversed, inputDecimals, outputDecimals] = await Promise.all([
    findAggregator(reader, contract, [input, output]),
    findAggregator(reader, contract, [output, input]),
    decimals(input),
    decimals(output),
  ])
  const feed = straight ?? reversed
  if (feed === undefined || inputDecimals === undefined || outputDecimals === undefined) return undefined
  const [feedDecimals, round] = await Promise.all([
    findDecimals(reader, feed),
    // If the node refuses the latest round, it may refuse others too, and the search would end at a wrong round.
    callLatest(reader, readLatestRound(feed)).then(() => findRoundAt(reader, feed, timestampSec)),
  ])
  if (feedDecimals === undefined || round === undefined || round.answer <= 0n) return undefined
  const { answer, updatedAtSec } = round
  const isReversed = straight === undefined
  return { answer, updatedAtSec, feedDecimals, isReversed, inputDecimals, outputDecimals }
}

/** @throws RpcError for any failure but a revert, since the node may answer otherwise a moment later */
async function callLatest(reader: ContractCaller, read: ContractRead) {
  const [answer] = await reader.calls([{ ...read, block: 'latest' }])
  if (isRefused(answer)) throw answer.error
  return answer
}

/** The feed that the contract uses from one currency to another. */
async function findAggregator(reader: ContractCaller, contract: Address, [input, output]: readonly [Address, Address]) {
  const word = wordIn(await callLatest(reader, readAggregator(contract, input, output)))
  const feed = word === undefined ? undefined : addressOf(word)
  return feed === ZERO_ADDRESS ? undefined : feed
}

/** An address without a contract represents a fiat currency. */
async function findDecimals(reader: ContractCaller, address: Address): Promise<number | undefined> {
  const answer = await callLatest(reader, readDecimals(address))
  return answer?.ok === true && answer.result === '0x' ? FIAT_DECIMALS : decimalsIn(answer)
}

/** The digits of an answer that is one word. */
function wordIn(answer: RpcAnswer | undefined): string | undefined {
  const data = answer?.ok === true ? String(answer.result) : ''
  return /^0x[0-9a-f]{64}$/i.test(data) ? data.slice(2) : undefined
}

const PRECISION = 10n ** 18n

/** Computes what `getRate` of ChainlinkConversionPath does, truncated after each step as there; undefined where the rate is 0. */
function rateOfLegs(legs: readonly PathLeg[], timestampSec: number): PathRate | undefined {
  let rate = PRECISION
  for (const leg of legs) {
    const { answer, feedDecimals, isReversed, inputDecimals, outputDecimals } = leg
    const unit = 10n ** BigInt(feedDecimals)
    rate *= tenToThe(feedDecimals - inputDecimals) * tenToThe(outputDecimals - feedDecimals)
    rate = isReversed ? (rate * unit) / answer : (rate * answer) / unit
    rate /= tenToThe(inputDecimals - feedDecimals)
    rate /= tenToThe(feedDecimals - outputDecimals)
  }
  const oldestSec = Math.min(timestampSec, ...legs.map(({ updatedAtSec }) => updatedAtSec))
  return rate === 0n ? undefined : { rate, scale: PRECISION, oldestSec: BigInt(oldestSec) }
}

/** 1 for negative exponents. */
function tenToThe(exponent: number): bigint {
  return exponent > 0 ? 10n ** BigInt(exponent) : 1n
}
