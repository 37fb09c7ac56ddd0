import type { Decimal } from '../../domain/decimal.ts'
import { divideDecimals } from '../../domain/decimal.ts'

/** A ratio of two whole numbers. */
export interface Ratio {
  readonly numerator: bigint
  readonly denominator: bigint
}

/** What a swap takes, and how much of that is lost to whom; base units of the token that goes in. */
export interface SwapAmounts {
  /** What goes in. */
  readonly amountIn: bigint
  /** What would go in if the pools kept nothing. */
  readonly withoutFee: bigint
  /** What would go in at the price before the trade. */
  readonly atMidPrice: bigint
  /** Units that come out for each that goes in, at the price before the trade. */
  readonly midPrice: Ratio
}

/** What a swap costs, in the token that comes out, at the price before the trade. */
export interface SwapCosts {
  /** What the pools keep; base units. */
  readonly lpFee: bigint
  /** What the trade itself moves the price by, as a fraction of what the payee receives; 8 places. */
  readonly priceImpact: Decimal
}

const IMPACT_PLACES = 8

/**
 * Splits the loss of a swap in two that have nothing in common: what the pools keep, and the move of the price.
 *
 * @param received - what the payee is to receive, base units of the token that comes out, above 0
 */
export function splitLoss({ amountIn, withoutFee, atMidPrice, midPrice }: SwapAmounts, received: bigint): SwapCosts {
  const { numerator, denominator } = midPrice
  const moved = { units: (withoutFee - atMidPrice) * numerator, places: 0 }
  return {
    lpFee: divideHalfUp((amountIn - withoutFee) * numerator, denominator),
    priceImpact: divideDecimals(moved, { units: received * denominator, places: 0 }, IMPACT_PLACES),
  }
}

/** Of numbers that are not negative. */
function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor)
}
