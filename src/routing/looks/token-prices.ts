import type { Token } from '../../domain/currency.ts'
import type { Decimal } from '../../domain/decimal.ts'
import { parseDecimal } from '../../domain/decimal.ts'

/** What one unit of a token is worth. */
export interface Price {
  /** US dollars, above 0. */
  readonly usd: Decimal
  readonly source: 'feed' | 'peg'
}

/** The last answer of a price feed. */
export interface FeedAnswer {
  readonly answer: bigint
  readonly decimals: number
  readonly updatedAtSec: number
}

/**
 * Decides a token's price: that of the feed if it is above 0 and fresh, else the peg, else none.
 *
 * @param round - undefined where there is no feed or it could not be read
 * @param blockTimestampSec - the time of the block in which the feed was read, since feeds live by the chain's clock
 */
export function decidePrice(token: Token, round: FeedAnswer | undefined, blockTimestampSec: number): Price | undefined {
  if (round !== undefined && isGood(round, token.heartbeatSeconds ?? 0, blockTimestampSec)) {
    return { usd: { units: round.answer, places: round.decimals }, source: 'feed' }
  }
  const peg = token.pegUsd === undefined ? undefined : parseDecimal(token.pegUsd)
  return peg === undefined || peg.units <= 0n ? undefined : { usd: peg, source: 'peg' }
}

function isGood(round: FeedAnswer, heartbeatSeconds: number, blockTimestampSec: number): boolean {
  const ageSec = blockTimestampSec - round.updatedAtSec
  return round.answer > 0n && ageSec >= 0 && ageSec <= heartbeatSeconds
}
