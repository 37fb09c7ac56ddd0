import type { SeenEvent } from '../read/read-transaction.ts'
import type { Match } from './match-event.ts'

/** What a conversion path gave at one moment. */
export interface PathRate {
  /** Base units of the token for `scale` base units of the invoice currency. Above 0. */
  readonly rate: bigint
  readonly scale: bigint
  /** When the feed of the path that is longest unchanged was written, in seconds. */
  readonly oldestSec: bigint
}

/** The configured path of a conversion, with its rates around the payment's block. */
export interface RatedPath {
  /** Older rates are stale. */
  readonly maxAgeSeconds: number
  /** At the block, at its parent, or neither. */
  readonly rates: readonly PathRate[]
}

/** A payment may bring this much less than our path says, in percent: feeds move between blocks, and payers may use other feeds. */
const LEAST_PERCENT = 98n

/**
 * Decides whether a conversion counts. Its fiat amount is the payer's word, since he chooses the path, and no event tells it. So what
 * the proxy moved must come to at least 98 % of that amount at the rate of our own path; of several rates that are not stale the one counts
 * that favours the payer. Amounts are cut to base units as the contract cuts them.
 *
 * What the operator has accepted is not to be judged here.
 *
 * @param match - passed on as it is unless it is a conversion that does not count
 * @param path - undefined: none is configured for the currencies
 * @param timestampSec - of the payment's block
 */
export function judgeRate(
  match: Match,
  event: SeenEvent,
  { path, timestampSec }: { readonly path: RatedPath | undefined; readonly timestampSec: number },
): Match {
  const { conversion } = event
  if (match.kind !== 'PAYMENT' || conversion === undefined) return match
  if (path === undefined) return rateOff({ rateProblem: 'NO_PATH' })
  const [first, ...others] = path.rates
  if (first === undefined) return rateOff({ rateProblem: 'NO_RATE' })
  const oldestTakenSec = BigInt(timestampSec - path.maxAgeSeconds)
  const fresh = path.rates.filter(({ oldestSec }) => oldestSec >= oldestTakenSec)
  if (fresh.length === 0) return staleRate(path.maxAgeSeconds, largest(first, others))
  const expected = fresh.map(({ rate, scale }) => (conversion.amount * rate) / scale)
  const least = expected.reduce((a, b) => (a < b ? a : b))
  if (event.amount * 100n >= least * LEAST_PERCENT) return match
  return rateOff({ rateProblem: 'TOO_LITTLE', expectedAmount: least.toString() })
}

function largest(first: PathRate, others: readonly PathRate[]): bigint {
  return others.reduce((newest, { oldestSec }) => (oldestSec > newest ? oldestSec : newest), first.oldestSec)
}

function rateOff(detail: Readonly<Record<string, string>>): Match {
  return { kind: 'UNMATCHED', reason: 'RATE_OFF', detail }
}

function staleRate(maxAgeSeconds: number, updatedAtSec: bigint): Match {
  const detail = { rateUpdatedAtSec: updatedAtSec.toString(), maxRateAgeSeconds: maxAgeSeconds.toString() }
  return { kind: 'UNMATCHED', reason: 'STALE_RATE', detail }
}
