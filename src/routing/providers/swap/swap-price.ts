import type { Token } from '../../../domain/currency.ts'
import {
  compareDecimals,
  type Decimal,
  divideDecimals,
  formatDecimal,
  powerOfTen,
  subtractDecimals,
} from '../../../domain/decimal.ts'
import type { RouteWarning } from '../../../domain/route.ts'
import type { Price } from '../../looks/token-prices.ts'
import { warn } from '../../quotes/assemble-route.ts'

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

/** The costs of a swap, in the output token at the price before the trade. */
interface SwapCosts {
  /** What the pools keep; base units. */
  readonly lpFee: bigint
  /** The loss by the trade's own move of the price, as a fraction of what the payee receives; 8 places. */
  readonly priceImpact: Decimal
}

const IMPACT_PLACES = 8
const OFF_MARKET_PLACES = 4
const ONE: Decimal = { units: 1n, places: 0 }

/**
 * Splits the loss of a swap into two disjoint parts: what the pools keep, and the move of the price. Together they are the input's worth at the
 * price before the trade, less the output.
 *
 * @param received - what the payee is to receive, base units of the output token, above 0
 */
export function splitLoss({ amountIn, amountOut, midPrice, kept }: SwapAmounts, received: bigint): SwapCosts {
  const worth = { numerator: amountIn * midPrice.numerator, denominator: midPrice.denominator }
  const lost = { numerator: worth.numerator - amountOut * worth.denominator, denominator: worth.denominator }
  const moved = {
    units: lost.numerator * kept.denominator - kept.numerator * lost.denominator,
    places: 0,
  }
  const whole = { units: received * lost.denominator * kept.denominator, places: 0 }
  return {
    lpFee: divideHalfUp(kept.numerator, kept.denominator),
    priceImpact: divideDecimals(moved, whole, IMPACT_PLACES),
  }
}

interface Market {
  readonly exchange: string
  /** The input token and the output token. */
  readonly source: Token
  readonly destination: Token
  readonly priceOf: (token: Token) => Price | undefined
}

/** Feeds and pegs are sometimes a percent off, and pools by their fee. */
const MAX_OFF_MARKET: Decimal = { units: 2n, places: 2 }

/**
 * Warns where pools are off the market by more than 2 percent to the payer's loss. The price impact does not show that, since it counts from the
 * pools' own price, and small pools are not worth arbitrage.
 *
 * @param midPrice - units out for each unit in, at the price before the trade
 */
export function offMarketWarnings(midPrice: Ratio, { exchange, source, destination, priceOf }: Market): RouteWarning[] {
  const [ofSource, ofDestination] = [priceOf(source)?.usd, priceOf(destination)?.usd]
  if (ofSource === undefined || ofDestination === undefined || midPrice.numerator === 0n) return []
  const worth = {
    units: ofSource.units * powerOfTen(destination.decimals + ofDestination.places) * midPrice.denominator,
    places: 0,
  }
  const given = {
    units: ofDestination.units * powerOfTen(source.decimals + ofSource.places) * midPrice.numerator,
    places: 0,
  }
  const lost = subtractDecimals(divideDecimals(worth, given, OFF_MARKET_PLACES), ONE)
  if (compareDecimals(lost, MAX_OFF_MARKET) <= 0) return []
  return [warn('SWAP_OFF_MARKET', { exchange, token: source.symbol, fraction: formatDecimal(lost) })]
}

/** For numbers that are not negative. */
function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor)
}
