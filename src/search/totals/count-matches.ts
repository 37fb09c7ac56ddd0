import type { PaymentFilter } from '../filter/payment-filter.ts'
import type { IncludeTotal } from '../filter/search-input.ts'
import type { StatedCount, TotalRepository } from '../sql/total-repository.ts'

/** How many payments match, and how true that is. */
export interface Total {
  readonly count: number
  readonly relation: 'EXACT' | 'AT_LEAST' | 'ESTIMATED'
}

/** Counting stops here, so that its cost is bounded. */
const COUNT_EXACT_TO = 10_000

/** An estimate is not asked for where counting is as cheap: so many, expected to take some 50 ms at most. */
const COUNT_CHEAPLY_TO = 1_000
const CHEAP_COST = 5_000

/** What was expected to be cheap and is not is broken off. */
const CHEAP_MS = 300

/** The largest count that the wire's 32 bits hold. */
const LARGEST_COUNT = 2 ** 31 - 1

/**
 * Counts the matches as far as was asked for; undefined when it was not. What the statistics know exactly is exact whatever was asked
 * and however many they are.
 */
export async function countMatches(
  repository: TotalRepository,
  filter: PaymentFilter,
  includeTotal: IncludeTotal,
  signal: AbortSignal | undefined,
): Promise<Total | undefined> {
  if (includeTotal === 'none') return undefined
  const stated = await repository.stated(filter, signal)
  if (stated.least === stated.most) return { count: Math.min(stated.most, LARGEST_COUNT), relation: 'EXACT' }
  return includeTotal === 'exact'
    ? countExactly(repository, filter, stated, signal)
    : estimate(repository, filter, stated, signal)
}

async function countExactly(
  repository: TotalRepository,
  filter: PaymentFilter,
  { least }: StatedCount,
  signal: AbortSignal | undefined,
): Promise<Total> {
  const atLeast = { count: COUNT_EXACT_TO, relation: 'AT_LEAST' } as const
  if (least > COUNT_EXACT_TO) return atLeast
  const count = await repository.counted(filter, COUNT_EXACT_TO + 1, signal)
  return count > COUNT_EXACT_TO ? atLeast : { count, relation: 'EXACT' }
}

async function estimate(
  repository: TotalRepository,
  filter: PaymentFilter,
  stated: StatedCount,
  signal: AbortSignal | undefined,
): Promise<Total> {
  const expected = await repository.expected(filter, COUNT_CHEAPLY_TO + 1, signal)
  const count =
    stated.least > COUNT_CHEAPLY_TO || expected.cost > CHEAP_COST
      ? undefined
      : await countCheaply(repository, filter, signal)
  if (count !== undefined && count <= COUNT_CHEAPLY_TO) return { count, relation: 'EXACT' }
  const likely = Math.round(stated.expected ?? expected.matches)
  const least = Math.max(stated.least, count ?? 0)
  return { count: Math.min(Math.max(Math.min(likely, stated.most), least), LARGEST_COUNT), relation: 'ESTIMATED' }
}

/** Undefined when it takes too long. */
async function countCheaply(
  repository: TotalRepository,
  filter: PaymentFilter,
  signal: AbortSignal | undefined,
): Promise<number | undefined> {
  const tooLong = AbortSignal.timeout(CHEAP_MS)
  try {
    return await repository.counted(filter, COUNT_CHEAPLY_TO + 1, signal ? AbortSignal.any([signal, tooLong]) : tooLong)
  } catch (error) {
    if (error === tooLong.reason && tooLong.aborted) return undefined
    throw error
  }
}
