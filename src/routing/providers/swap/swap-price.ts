import { getCreate2Address, keccak256 } from 'viem/utils'
import type { Address } from '../../../domain/address.ts'
import { rememberByKey } from '../../../domain/collections.ts'
import { isErc20, type Token } from '../../../domain/currency.ts'
import {
  compareDecimals,
  type Decimal,
  divideDecimals,
  formatDecimal,
  powerOfTen,
  subtractDecimals,
} from '../../../domain/decimal.ts'
import type { Hex } from '../../../domain/hex.ts'
import type { RouteWarning } from '../../../domain/route.ts'
import { type Explanation, explain } from '../../../errors/waybill-error.ts'
import { directTerms } from '../../plans/fee-proxy.ts'
import type { Candidate } from '../../plans/provider.ts'
import type { Payment } from '../../question/parse-question.ts'
import { warn } from '../../quotes/assemble-route.ts'
import type { Price } from '../../scan/wallet-state.ts'

/** A ratio of two whole numbers. */
interface Ratio {
  readonly numerator: bigint
  readonly denominator: bigint
}

/** A swap, and what the pools keep of it. Exact, since a small trade may move few units of a token with few decimals. */
export interface SwapAmounts {
  /** What goes in, base units. */
  readonly amountIn: bigint
  /** What comes out, base units. */
  readonly amountOut: bigint
  /** Units out for each unit in, at the price before the trade. */
  readonly midPrice: Ratio
  /** What the pools keep, in units of the output token at the price before the trade. */
  readonly kept: Ratio
}

/** The swap that takes the least in; of equal ones the first. */
export function cheapestSwap<T extends SwapAmounts>(swaps: readonly T[]): T | undefined {
  const [first, ...others] = swaps
  return others.reduce((best, swap) => (best === undefined || swap.amountIn < best.amountIn ? swap : best), first)
}

/** The explanation for a swap of a native coin or into it: exchanges take coins only wrapped. */
export function explainCoin(exchange: string, { source, destination }: Candidate, payment: Payment): Explanation {
  return explain('COIN_NOT_SWAPPABLE', {
    exchange,
    coin: (isErc20(source) ? destination : source).symbol,
    token: source.symbol,
    chain: source.chain,
    ...directTerms(payment),
  })
}

/** What a swap is judged by. */
interface Market {
  readonly exchange: string
  /** The input token and the output token. */
  readonly source: Token
  readonly destination: Token
  readonly priceOf: (token: Token) => Price | undefined
  /** What the payee is to receive, base units of the output token, above 0. */
  readonly received: bigint
}

const IMPACT_PLACES = 8
const OFF_MARKET_PLACES = 4
const ONE: Decimal = { units: 1n, places: 0 }

/** Feeds and pegs are sometimes a percent off, and pools by their fee. */
const MAX_OFF_MARKET: Decimal = { units: 2n, places: 2 }

/**
 * Prices a swap against the market: what feeds and pegs say of both tokens. Where they say nothing, the pools' own price before the trade stands
 * for it, with the warning PRICE_UNCHECKED: anybody can move a pool.
 */
export function priceSwap(swap: SwapAmounts, market: Market) {
  const price = marketPriceOf(market)
  const { exchange, destination } = market
  const { lpFee, priceImpact } = splitLoss(swap, market.received, price)
  return {
    cost: { type: 'SWAP', stage: 'SENDING', provider: exchange, token: destination, amount: lpFee } as const,
    priceImpact,
    warnings: price === undefined ? [warnUnchecked(market)] : offMarketWarnings(swap.midPrice, price, market),
  }
}

/**
 * Splits the loss of a swap into two disjoint parts: what the pools keep, and the rest. Together they are the input's worth at a price, less the
 * output.
 *
 * @param received - what the payee is to receive, base units of the output token, above 0
 * @param price - units out for each unit in
 */
export function splitLoss(
  { amountIn, amountOut, midPrice, kept }: SwapAmounts,
  received: bigint,
  price: Ratio = midPrice,
) {
  const lost = amountIn * price.numerator - amountOut * price.denominator
  const moved = { units: lost * kept.denominator - kept.numerator * price.denominator, places: 0 }
  const whole = { units: received * price.denominator * kept.denominator, places: 0 }
  return {
    /** What the pools keep, in base units of the output token at their price before the trade. */
    lpFee: divideHalfUp(kept.numerator, kept.denominator),
    /** The loss against the market beside that, as a fraction of what the payee receives; 8 places. Below 0 where the pools give more. */
    priceImpact: divideDecimals(moved, whole, IMPACT_PLACES),
  }
}

/** Base units out for each base unit in, by feeds and pegs; undefined where one of the two has no price. */
function marketPriceOf({ source, destination, priceOf }: Market): Ratio | undefined {
  const [ofSource, ofDestination] = [priceOf(source)?.usd, priceOf(destination)?.usd]
  if (ofSource === undefined || ofDestination === undefined) return undefined
  return {
    numerator: ofSource.units * powerOfTen(destination.decimals + ofDestination.places),
    denominator: ofDestination.units * powerOfTen(source.decimals + ofSource.places),
  }
}

function warnUnchecked({ exchange, source, destination, priceOf }: Market): RouteWarning {
  const unpriced = priceOf(source) === undefined ? source : destination
  return warn('PRICE_UNCHECKED', { exchange, token: unpriced.symbol })
}

/** Warns where the pools themselves, before the trade, are off the market by more than 2 percent to the payer's loss. */
function offMarketWarnings(midPrice: Ratio, market: Ratio, { exchange, source }: Market): RouteWarning[] {
  if (midPrice.numerator === 0n) return []
  const worth = { units: market.numerator * midPrice.denominator, places: 0 }
  const given = { units: market.denominator * midPrice.numerator, places: 0 }
  const lost = subtractDecimals(divideDecimals(worth, given, OFF_MARKET_PLACES), ONE)
  if (compareDecimals(lost, MAX_OFF_MARKET) <= 0) return []
  return [warn('SWAP_OFF_MARKET', { exchange, token: source.symbol, fraction: formatDecimal(lost) })]
}

/** For numbers that are not negative. */
function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor)
}

/** Whether a token is the first in its pool with another: pools sort tokens by address. */
export function isFirst(token: Address, other: Address): boolean {
  return token < other
}

const MAX_POOLS = 10_000

/** The addresses of pools. Each takes two hashes, and a process has few. */
const poolAddresses = rememberByKey(MAX_POOLS, (_, factory: Address, codeHash: Hex, terms: Hex) => {
  const address = getCreate2Address({ from: factory as Hex, salt: keccak256(terms), bytecodeHash: codeHash })
  return address.toLowerCase() as Address
})

/**
 * The address of a factory's pool, whether or not the pool has been created.
 *
 * @param codeHash - keccak256 of the creation code
 * @param terms - what identifies the pool; its keccak256 is the salt
 * @see https://eips.ethereum.org/EIPS/eip-1014
 */
export function create2Address(factory: Address, codeHash: Hex, terms: Hex): Address {
  return poolAddresses(factory + codeHash + terms, factory, codeHash, terms)
}
