/** How many entries of a list match, and how exact the count is. */
export interface Total {
  readonly count: number
  readonly relation: 'EXACT' | 'AT_LEAST' | 'ESTIMATED'
}

export type IncludeTotal = 'none' | 'estimated' | 'exact'

/** An exact count stops here, so that its cost is bounded. */
export const MAX_EXACT_COUNT = 10_000

/** Instead of estimating, matches are counted up to this number, where that is cheap. */
export const MAX_CHEAP_COUNT = 1_000

/** The largest count that the API's int32 holds. */
export const MAX_COUNT = 2 ** 31 - 1
