import { caip2Of } from '../../domain/chain.ts'
import type { Token } from '../../domain/currency.ts'
import {
  addDecimals,
  type Decimal,
  decimalToNumber,
  formatAmount,
  formatDecimal,
  MAX_DECIMAL_PLACES,
  multiplyDecimals,
} from '../../domain/decimal.ts'
import type { Route, RouteSpeed, RouteWarning } from '../../domain/route.ts'
import { type Reason } from '../../errors/reasons.ts'
import { type Explanation, explain, inOneLine, type ReasonParameters } from '../../errors/waybill-error.ts'
import { gasToAllow } from '../gas/gas.ts'
import { totalGas } from '../gas/steps.ts'
import { secondsOfBlocks } from '../plans/configured-contract.ts'
import { breakDownCosts, type CostLine, fractionOf } from '../plans/costs.ts'
import type { Candidate, Quote } from '../plans/provider.ts'
import type { ChainState, Price } from '../scan/wallet-state.ts'

/** A route before it is ranked. */
export interface UnrankedRoute {
  readonly route: Omit<Route, 'tags'>
  readonly isDirect: boolean
  /** Fractions of what the payee receives, of 8 places. */
  readonly feeRate: Decimal
  readonly priceImpact: Decimal
  readonly totalCost: Decimal
  /** Whether a cost is left out because a price is unknown. */
  readonly unpriced: boolean
  /** What it was assembled from. */
  readonly quoted: QuotedCandidate
  /** The gas limit of each step, with what its chain counts as gas for publishing it. */
  readonly gasLimits: readonly bigint[]
}

/** What a route is assembled from. */
interface QuotedCandidate {
  readonly id: string
  readonly provider: string
  readonly candidate: Candidate
  readonly quote: Quote
  /** Of the source chain. */
  readonly state: ChainState
  /** The source chain's native coin. */
  readonly native: Token
  /** In US dollars, on whatever chain the token is. */
  readonly priceOf: (token: Token) => Price | undefined
  readonly expiresAt: Date
}

const FAST_SECONDS = 60
const STANDARD_SECONDS = 20 * 60

/** The speed class of a duration. */
export function speedOf(durationSeconds: number): RouteSpeed {
  if (durationSeconds <= FAST_SECONDS) return 'FAST'
  return durationSeconds <= STANDARD_SECONDS ? 'STANDARD' : 'SLOW'
}

/**
 * Turns a quote into a route: checks balance and gas, counts the costs, formats amounts.
 *
 * @returns an explanation when the wallet holds less than the contract may pull; a lack of gas keeps the route
 */
export function assembleRoute(quoted: QuotedCandidate): UnrankedRoute | Explanation {
  const { candidate, quote, state } = quoted
  const { source, destination } = candidate
  const balance = state.balanceOf(source) ?? 0n
  if (balance < quote.maxPulled) return explain('INSUFFICIENT_BALANCE', lackOf(source, balance, quote.maxPulled))

  const gas = judgeGas(quoted)
  if ('reason' in gas) return gas
  const costs = breakDownCosts([...gas.lines, ...quote.costs], destination, quoted.priceOf)
  const feeRate = fractionOf(costs.feeAmount, { units: quote.received, places: destination.decimals })
  const totalCost = addDecimals(feeRate, quote.priceImpact)
  const unpriced = costs.unpriced && warn('GAS_UNPRICED', { currency: costs.unpriced.symbol })
  const steps = quote.steps.map(({ kind }) => kind)
  const seconds = quote.durationSeconds ?? secondsOfBlocks(state.chain, steps.length)
  return {
    isDirect: candidate.kind === 'DIRECT' || candidate.kind === 'CONVERSION',
    feeRate,
    priceImpact: quote.priceImpact,
    totalCost,
    unpriced: costs.unpriced !== undefined,
    quoted,
    gasLimits: gas.limits,
    route: {
      id: quoted.id,
      fee: decimalToNumber(costs.feeAmount),
      speed: speedOf(seconds),
      priceImpact: decimalToNumber(quote.priceImpact),
      chain: source.chain,
      token: source.symbol,
      chainId: caip2Of(state.chain.chainId),
      tokenAddress: source.address,
      sourceAmount: formatAmount(quote.sourceAmount, source.decimals),
      sourceAmountInUsd: worthOf(quote.sourceAmount, source, quoted.priceOf(source)),
      feeAmount: formatDecimal(costs.feeAmount),
      feeCurrency: destination.id,
      feeInUsd: costs.feeInUsd && formatDecimal(costs.feeInUsd),
      feeIsComplete: costs.unpriced === undefined,
      feeRate: decimalToNumber(feeRate),
      totalCost: decimalToNumber(totalCost),
      feeBreakdown: costs.lines,
      estimatedDurationSeconds: seconds,
      provider: quoted.provider,
      expiresAt: new Date(Math.min(quote.expiresAtMs ?? Number.POSITIVE_INFINITY, quoted.expiresAt.getTime())),
      warnings: [...gas.warnings, ...(unpriced ? [unpriced] : []), ...(quote.warnings ?? [])],
      atomic: quote.atomic,
      readiness: { hasEnoughGas: gas.isEnough, needsApproval: steps.includes('APPROVE'), steps },
    },
  }
}

/** @returns US dollars; undefined without a price */
function worthOf(amount: bigint, { decimals }: Token, price: Price | undefined): string | undefined {
  return price && formatDecimal(multiplyDecimals({ units: amount, places: decimals }, price.usd, MAX_DECIMAL_PLACES))
}

/** What a wallet lacks of a token, for messages. */
export function lackOf({ decimals, symbol, chain }: Token, have: bigint, need: bigint) {
  const inUnits = (amount: bigint) => formatAmount(amount, decimals)
  return { have: inUnits(have), need: inUnits(need), missing: inUnits(need - have), token: symbol, chain }
}

interface JudgedGas {
  readonly lines: readonly CostLine[]
  /** By step. */
  readonly limits: readonly bigint[]
  /** undefined where it cannot be known. */
  readonly isEnough: boolean | undefined
  readonly warnings: readonly RouteWarning[]
}

/** Compares the gas of all steps with the native coins that the payment itself leaves. */
function judgeGas({ candidate, quote, state, native }: QuotedCandidate): JudgedGas | Explanation {
  const gas = totalGas(quote.steps) * state.gasPrice
  const l1Fees = l1FeesOf(quote, state)
  if (l1Fees === undefined) {
    return explain('CONTRACT_UNREADABLE', { contract: 'l1Fee', chain: native.chain, what: 'what publishing takes' })
  }
  const l1Fee = l1Fees.reduce((sum, fee) => sum + fee, 0n)
  const limits = quote.steps.map(
    ({ gasLimit, allow }, i) => allow ?? gasToAllow(gasLimit + l1GasOf(l1Fees[i] ?? 0n, state)),
  )
  const demanded = limits.map((limit, i) => (quote.steps[i]?.allow === undefined ? gasToAllow(limit) : limit))
  const need = gasNeeded(quote, l1Fees, demanded, state)
  const spent = candidate.source.id === native.id ? quote.maxPulled : 0n
  const have = (state.balanceOf(native) ?? 0n) - spent
  const line = { type: 'GAS', stage: 'SENDING', token: native } as const
  const published = state.chain.l1Fee === undefined ? [] : [{ ...line, provider: L1_PROVIDER, amount: l1Fee }]
  const counted = { lines: [{ ...line, amount: gas }, ...published], limits }
  if (state.walletIsContract) return { ...counted, isEnough: undefined, warnings: [warn('GAS_MAY_BE_SPONSORED', {})] }
  if (have >= need) return { ...counted, isEnough: true, warnings: [] }
  const { token: currency, ...lack } = lackOf(native, have, need)
  return { ...counted, isEnough: false, warnings: [warn('INSUFFICIENT_GAS', { ...lack, currency })] }
}

/**
 * The wei that a wallet must hold to send all steps, one after the other. A wallet sends a transaction only where it could pay for its whole
 * gas limit at the price that it offers, though less is used in the end. A limit that was not measured may be a quarter above the table.
 *
 * @param l1Fees - by step, wei
 * @param limits - by step, gas
 */
function gasNeeded(
  { steps }: Quote,
  l1Fees: readonly bigint[],
  limits: readonly bigint[],
  { chain, maxFeePerGas }: ChainState,
): bigint {
  let spent = 0n
  let needed = 0n
  for (const [i, { gasLimit }] of steps.entries()) {
    const [l1Fee, limit] = [l1Fees[i] ?? 0n, limits[i] ?? gasLimit]
    const beside = chain.l1Fee?.isGas ? 0n : l1Fee
    const demanded = spent + limit * maxFeePerGas + beside
    if (demanded > needed) needed = demanded
    // At the same price, since the base fee may rise until the next step.
    spent += gasLimit * maxFeePerGas + l1Fee
  }
  return needed
}

/** The provider of the gas line for publishing, which tells it from the other gas line. */
const L1_PROVIDER = 'l1-data'

/** The fee for publishing each step. Steps are encoded only on chains that charge one. @returns undefined where the chain gave no answer */
export function l1FeesOf({ steps }: Quote, state: ChainState): readonly bigint[] | undefined {
  if (state.chain.l1Fee === undefined) return steps.map(() => 0n)
  const fees = steps.map((step) => state.l1FeeOf((step.transaction().data.length - 2) / 2))
  return fees.every((fee) => fee !== undefined) ? fees : undefined
}

/** What a fee for publishing adds to the gas that the transaction's limit has to cover. */
export function l1GasOf(l1Fee: bigint, { chain, gasPrice }: ChainState): bigint {
  if (!chain.l1Fee?.isGas || gasPrice === 0n) return 0n
  return (l1Fee + gasPrice - 1n) / gasPrice
}

/** Makes a warning from the table of reasons. */
export function warn<R extends Reason>(reason: R, parameters: ReasonParameters<R>): RouteWarning {
  return toWarning(explain(reason, parameters))
}

/** What stands in the way, as a warning. */
export function toWarning({ reason, metadata, ...texts }: Explanation): RouteWarning {
  return { reason, message: inOneLine(texts), ...(metadata && { metadata }) }
}
