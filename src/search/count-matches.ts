import type { PaymentFilter } from './payment-filter.ts'
import type { PaymentRepository } from './payment-repository.ts'
import type { IncludeTotal } from './search-input.ts'

/** How many payments match, and how true that is. */
export interface Total {
  readonly count: number
  readonly relation: 'EXACT' | 'AT_LEAST' | 'ESTIMATED'
}

/** Counting stops here, so that its cost is bounded. */
const COUNT_EXACT_TO = 10_000

/** An estimate is not asked for where counting is as cheap. */
const COUNT_CHEAPLY_TO = 1_000

/** The largest count that the wire's 32 bits hold. */
const LARGEST_COUNT = 2 ** 31 - 1

/** Counts the matches as far as was asked for; undefined when it was not. */
export async function countMatches(
  repository: Pick<PaymentRepository, 'count' | 'estimate'>,
  filter: PaymentFilter,
  includeTotal: IncludeTotal,
  signal: AbortSignal | undefined,
): Promise<Total | undefined> {
  switch (includeTotal) {
    case 'none':
      return undefined
    case 'exact': {
      const count = await repository.count(filter, COUNT_EXACT_TO + 1, signal)
      return count > COUNT_EXACT_TO ? { count: COUNT_EXACT_TO, relation: 'AT_LEAST' } : { count, relation: 'EXACT' }
    }
    case 'estimated': {
      const count = await repository.count(filter, COUNT_CHEAPLY_TO + 1, signal)
      if (count <= COUNT_CHEAPLY_TO) return { count, relation: 'EXACT' }
      const expected = Math.round(await repository.estimate(filter, signal))
      return { count: Math.min(Math.max(expected, count), LARGEST_COUNT), relation: 'ESTIMATED' }
    }
  }
}
