import { readAggregator } from '../../contracts/contract-reads.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { MAX_FEED_DECIMALS, readDecimals, readLatestRound } from '../../contracts/price-feed.ts'
import { addressOf, uintOf } from '../../contracts/words.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import { FIAT_DECIMALS } from '../../domain/currency.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { findRoundAt } from './feed-rounds.ts'
import type { ContractCaller } from './gather-calls.ts'

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
  if (answer?.ok === false && answer.error.kind !== 'REVERTED') throw answer.error
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
  if (answer?.ok === true && answer.result === '0x') return FIAT_DECIMALS
  const word = wordIn(answer)
  if (word === undefined) return undefined
  const decimals = uintOf(word)
  return decimals <= MAX_FEED_DECIMALS ? Number(decimals) : undefined
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
