import type { IncludeTotal, PaymentFilter } from '../filter/payment-filter.ts'
import type { StatisticsCount, TotalRepository } from '../sql/total-repository.ts'

/** How many payments match, and how exact the count is. */
export interface Total {
  readonly count: number
  readonly relation: 'EXACT' | 'AT_LEAST' | 'ESTIMATED'
}

/** An exact count stops here, so that its cost is bounded. */
const MAX_EXACT_COUNT = 10_000

/** Instead of estimating, matches are counted where that is cheap: up to this number, at a planner's cost of some 50 ms. */
const MAX_CHEAP_COUNT = 1_000
const MAX_CHEAP_COST = 5_000

/** A count that was expected to be cheap is cancelled after this long. */
const CHEAP_COUNT_TIMEOUT_MS = 300

/** The largest count that the API's int32 holds. */
const MAX_COUNT = 2 ** 31 - 1

/**
 * Counts the matches as exactly as `includeTotal` demands; undefined for `none`. Where the statistics know the number, it is exact at any
 * size, even for `estimated`.
 */
export async function countMatches(
  repository: TotalRepository,
  filter: PaymentFilter,
  includeTotal: IncludeTotal,
  signal: AbortSignal | undefined,
): Promise<Total | undefined> {
  if (includeTotal === 'none') return undefined
  const known = await repository.countByStatistics(filter, signal)
  if (known.atLeast === known.atMost) return { count: Math.min(known.atMost, MAX_COUNT), relation: 'EXACT' }
  return includeTotal === 'exact'
    ? countExactly(repository, filter, known, signal)
    : estimate(repository, filter, known, signal)
}

async function countExactly(
  repository: TotalRepository,
  filter: PaymentFilter,
  { atLeast }: StatisticsCount,
  signal: AbortSignal | undefined,
): Promise<Total> {
  const capped = { count: MAX_EXACT_COUNT, relation: 'AT_LEAST' } as const
  if (atLeast > MAX_EXACT_COUNT) return capped
  const count = await repository.countRows(filter, MAX_EXACT_COUNT + 1, signal)
  return count > MAX_EXACT_COUNT ? capped : { count, relation: 'EXACT' }
}

async function estimate(
  repository: TotalRepository,
  filter: PaymentFilter,
  known: StatisticsCount,
  signal: AbortSignal | undefined,
): Promise<Total> {
  const planned = await repository.planCount(filter, MAX_CHEAP_COUNT + 1, signal)
  const isCheap = known.atLeast <= MAX_CHEAP_COUNT && planned.cost <= MAX_CHEAP_COST
  const count = isCheap ? await countCheaply(repository, filter, signal) : undefined
  if (count !== undefined && count <= MAX_CHEAP_COUNT) return { count, relation: 'EXACT' }
  const likely = Math.round(known.likely ?? planned.matches)
  const atLeast = Math.max(known.atLeast, count ?? 0)
  return { count: Math.min(Math.max(Math.min(likely, known.atMost), atLeast), MAX_COUNT), relation: 'ESTIMATED' }
}

/** Undefined where it took too long. */
async function countCheaply(
  repository: TotalRepository,
  filter: PaymentFilter,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const tooLong = AbortSignal.timeout(CHEAP_COUNT_TIMEOUT_MS)
  try {
    return await repository.countRows(
      filter,
      MAX_CHEAP_COUNT + 1,
      signal ? AbortSignal.any([signal, tooLong]) : tooLong,
    )
  } catch (error) {
    if (error === tooLong.reason && tooLong.aborted) return undefined
    throw error
  }
}
