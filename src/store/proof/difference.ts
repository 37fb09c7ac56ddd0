/** A stored value that does not follow from the rest of what is stored. */
export interface Difference {
  readonly check: 'statistics' | 'changes' | 'payment' | 'request'
  /** Which combination, change, payment or request. */
  readonly where: string
  readonly stored: string
  readonly expected: string
}

/** Differences of one kind that are reported, at most: enough to see what is wrong where a whole table is. */
export const MAX_DIFFERENCES = 1_000
