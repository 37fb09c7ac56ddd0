import type { Decimal } from '../../domain/decimal.ts'
import { divideDecimals } from '../../domain/decimal.ts'

/** A ratio of two whole numbers. */
export interface Ratio {
  readonly numerator: bigint
  readonly denominator: bigint
}

/** A swap, and what the pools keep of it; exact, since a small trade may take few units of a token that has few decimals. */
export interface SwapAmounts {
  /** What goes in, base units. */
  readonly amountIn: bigint
  /** What comes out, base units. */
  readonly amountOut: bigint
  /** Units that come out for each that goes in, at the price before the trade. */
  readonly midPrice: Ratio
  /** What the pools keep, in units of what comes out at the price before the trade. */
  readonly kept: Ratio
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
 * Splits the loss of a swap in two that have nothing in common: what the pools keep, and the move of the price. Together they are what goes
 * in, at the price before the trade, less what comes out.
 *
 * @param received - what the payee is to receive, base units of the token that comes out, above 0
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

/** Of numbers that are not negative. */
function divideHalfUp(dividend: bigint, divisor: bigint): bigint {
  return (2n * dividend + divisor) / (2n * divisor)
}
