import { type FeedAnswer, isPrice } from '../../contracts/price-feed.ts'
import type { Token } from '../../domain/currency.ts'
import type { Decimal } from '../../domain/decimal.ts'
import { parseDecimal } from '../../domain/decimal.ts'

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
export function decidePrice(token: Token, round: FeedAnswer | undefined, blockTimestampSec: number): Price | undefined {
  if (round !== undefined && isPrice(round, token.heartbeatSeconds ?? 0, blockTimestampSec)) {
    return { usd: { units: round.answer, places: round.decimals }, source: 'feed' }
  }
  const peg = token.pegUsd === undefined ? undefined : parseDecimal(token.pegUsd)
  return peg === undefined || peg.units <= 0n ? undefined : { usd: peg, source: 'peg' }
}
