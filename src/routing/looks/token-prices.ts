import type { Token } from '../../domain/currency.ts'
import type { Decimal } from '../../domain/decimal.ts'
import { parseDecimal } from '../../domain/decimal.ts'

/** What one unit of a token is worth. */
export interface Price {
  /** US dollars, above 0. */
  readonly usd: Decimal
  readonly source: 'feed' | 'peg'
}

/** The last round of a price feed. */
export interface FeedRound {
  readonly answer: bigint
  readonly decimals: number
  readonly updatedAtSec: number
}

/** Feeds answer with 8 or 18 decimals; anything far beyond is no feed. */
export const MOST_FEED_DECIMALS = 36

/**
 * Decides a token's price: the feed's, if it is above 0 and fresh, else the peg, else none.
 *
 * @param round - undefined where there is no feed or it could not be read
 * @param blockTimestampSec - the time of the block that the round was read in; a chain's age is counted by its own clock
 */
export function decidePrice(token: Token, round: FeedRound | undefined, blockTimestampSec: number): Price | undefined {
  if (round !== undefined && isGood(round, token.heartbeatSeconds ?? 0, blockTimestampSec)) {
    return { usd: { units: round.answer, places: round.decimals }, source: 'feed' }
  }
  const peg = token.pegUsd === undefined ? undefined : parseDecimal(token.pegUsd)
  return peg === undefined || peg.units <= 0n ? undefined : { usd: peg, source: 'peg' }
}

function isGood(round: FeedRound, heartbeatSeconds: number, blockTimestampSec: number): boolean {
  const ageSec = blockTimestampSec - round.updatedAtSec
  return round.answer > 0n && round.decimals <= MOST_FEED_DECIMALS && ageSec >= 0 && ageSec <= heartbeatSeconds
}
