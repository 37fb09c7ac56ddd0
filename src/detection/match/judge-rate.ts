import type { PathRate } from '../read/path-rate-rounds.ts'
import type { RatedPath } from '../read/path-rates.ts'
import type { Match } from './match-event.ts'
import type { SeenEvent } from './read-transaction.ts'

/** A payment must bring at least this part of what our path says, in percent: feeds move between blocks, and payers may use other feeds. */
const MIN_PERCENT = 98n

/**
 * Decides whether a conversion counts. The payer chooses the path and no event contains it, so the fiat amount of the event is only the payer's claim. What
 * the proxy moved must be worth at least 98 % of that amount at the rate of our own path; where several rates are fresh, the one that favours
 * the payer counts. Amounts are truncated to base units as the contract truncates them.
 *
 * Not to be called for an event that an operator accepted as a payment.
 *
 * @param match - returned as it is unless it is a conversion that does not count
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
  const minUpdatedAtSec = BigInt(timestampSec - path.maxAgeSeconds)
  const fresh = path.rates.filter(({ oldestSec }) => oldestSec >= minUpdatedAtSec)
  if (fresh.length === 0) return staleRate(path.maxAgeSeconds, newestOf(first, others))
  const expected = fresh.map(({ rate, scale }) => (conversion.amount * rate) / scale)
  const lowest = expected.reduce((a, b) => (a < b ? a : b))
  if (event.amount * 100n >= lowest * MIN_PERCENT) return match
  return rateOff({ rateProblem: 'TOO_LITTLE', expectedAmount: lowest.toString() })
}

function newestOf(first: PathRate, others: readonly PathRate[]): bigint {
  return others.reduce((newest, { oldestSec }) => (oldestSec > newest ? oldestSec : newest), first.oldestSec)
}

function rateOff(detail: Readonly<Record<string, string>>): Match {
  return { kind: 'UNMATCHED', reason: 'RATE_OFF', detail }
}

function staleRate(maxAgeSeconds: number, updatedAtSec: bigint): Match {
  const detail = { rateUpdatedAtSec: updatedAtSec.toString(), maxRateAgeSeconds: maxAgeSeconds.toString() }
  return { kind: 'UNMATCHED', reason: 'STALE_RATE', detail }
}
