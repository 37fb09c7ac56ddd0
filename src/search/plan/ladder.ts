import type { PageQuery } from '../query/page-query.ts'
import type { AccountStatistics } from '../sql/account-statistics.ts'
import { type MakeGuess, makeGuess } from './first-guess.ts'
import { isWhole, needsNoGuess, type Way } from './ways.ts'

/** How much the attempts may cost, in index entries. */
export interface LadderOptions {
  /** Ascending, each about twice the one before; after the last one the first way is read without a limit. */
  readonly limits: readonly number[]
  readonly makeGuess: MakeGuess
}

export const DEFAULT_LADDER: LadderOptions = {
  limits: [1_500, 3_000, 6_000, 12_000, 24_000, 48_000, 100_000, 200_000, 400_000],
  makeGuess,
}

/** More entries than any table has. It is a limit in SQL all the same, which keeps PostgreSQL to the index and the order of a way. */
export const ALL = Number.MAX_SAFE_INTEGER

/** One attempt. */
export interface Step {
  readonly way: Way
  /** How many entries it may read; {@link ALL} in the last attempt. */
  readonly limit: number
  /** Whether the entries are read without their rows, and then the rows of the page. */
  readonly isCovered: boolean
}

/** The first limit is the least that is as many times the cost of the cheapest way, since guesses are wrong by about as much. */
const MARGIN = 2.5

/**
 * The attempts at a page, in their order; the last one always gives it. The way that is probably the cheapest goes first. If it does not
 * reach the end of the page within the limit, every other way may cost as much before any may cost more: a wrong guess then costs a
 * few times what the best way does, and not what the wrong one would.
 *
 * @example reference A and network GNOSIS: walk 1,500 entries of A, else 1,500 of GNOSIS, else 6,000 of A, …
 */
export function ladderOf(
  ways: readonly Way[],
  query: PageQuery,
  statistics: AccountStatistics,
  { limits, makeGuess: guessFor }: LadderOptions = DEFAULT_LADDER,
): Step[] {
  const [only] = ways
  if (only !== undefined && isWhole(only) && needsNoGuess(only)) return [{ way: only, limit: ALL, isCovered: false }]
  const guessOf = guessFor(query, statistics)
  const guessed = ways.map((way) => ({ way, guess: guessOf(way) }))
  const byCost = guessed.toSorted((one, other) => one.guess.cost - other.guess.cost)
  const least = MARGIN * (byCost[0]?.guess.cost ?? 0)
  // after the first one every other limit: an attempt may cost four times as much as the one before
  const fromLeast = limits.filter((limit) => limit >= least).filter((_, at) => at % 2 === 0)
  const steps = [...fromLeast, ALL].flatMap((limit) =>
    byCost
      .filter(({ guess }) => guess.start < limit)
      .map(({ way, guess: { start, price, isCovered } }) => ({
        way,
        limit: limit === ALL ? ALL : Math.ceil((limit - start) / price),
        isCovered,
      })),
  )
  const last = steps.findIndex(({ way, limit }) => limit === ALL || isWhole(way))
  return steps.slice(0, last + 1)
}
