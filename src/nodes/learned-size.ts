/** Learns how much a node takes (calls in a batch, blocks in a range, requests a minute) from what it took and refused: values and rules, without I/O. */

export interface LearnedSize {
  /** To ask for next. */
  readonly size: number
  /** Never exceeded. */
  readonly max: number
  /** The largest that was taken; 0 before the first. */
  readonly taken: number
  /** No size from here on is taken, as far as is known. Absent: none was refused. */
  readonly refused?: number | undefined
  /** Questions of this size that were taken in a row. */
  readonly successes: number
  /** After so many successes a larger size is tried: a probe. */
  readonly probeAfter: number
  readonly isProbing: boolean
}

/** Successes before a probe: at first, at least and at most. They double after a probe that was refused, and halve after one that was taken. */
const FIRST_PROBE_AFTER = 50
const MIN_PROBE_AFTER = 5
const MAX_PROBE_AFTER = 2_400
/** The size of a probe, beside the largest that was taken. */
const PROBE_GROWTH = 1.25
/** The search for the limit ends when `refused` is above `taken` by no more than this part of it. */
const CLOSE_ENOUGH = 0.1

/** A size of which nothing is learned. @param first - to ask for at first @param max - never exceeded */
export function startSize(first: number, max: number): LearnedSize {
  return { size: Math.min(first, max), max, taken: 0, successes: 0, probeAfter: FIRST_PROBE_AFTER, isProbing: false }
}

/** After a question was taken. One that was smaller than it might have been teaches nothing. */
export function sizeAfterTaken(known: LearnedSize, asked: number): LearnedSize {
  if (asked < known.size) return known
  const taken = Math.max(known.taken, asked)
  if (known.refused === undefined) return { ...known, taken, size: Math.min(known.max, asked * 2) }
  if (known.isProbing) {
    // The refusal before was perhaps not for the size, so the next probe comes sooner.
    const probeAfter = Math.max(MIN_PROBE_AFTER, Math.floor(known.probeAfter / 2))
    return { ...known, taken, size: taken, refused: taken + 1, isProbing: false, successes: 0, probeAfter }
  }
  if (!isKnownWell(taken, known.refused)) return { ...known, taken, size: middleOf(taken, known.refused) }
  const successes = known.successes + 1
  if (successes < known.probeAfter || taken >= known.max) return { ...known, taken, size: taken, successes }
  const size = Math.min(known.max, Math.max(taken + 1, Math.floor(taken * PROBE_GROWTH)))
  return { ...known, taken, size, successes: 0, isProbing: true }
}

/**
 * After a question was refused for its size.
 *
 * @param hint - the size that the node says it takes, which is tried next
 */
export function sizeAfterRefused(known: LearnedSize, asked: number, hint?: number): LearnedSize {
  const base = { ...known, successes: 0, isProbing: false }
  if (known.isProbing && known.taken < asked) {
    const probeAfter = Math.min(MAX_PROBE_AFTER, known.probeAfter * 2)
    return { ...base, size: known.taken, refused: known.taken + 1, probeAfter }
  }
  const refused = Math.min(known.refused ?? asked, asked)
  // A node may lower its limit: then what it took before counts no more.
  const taken = known.taken < asked ? known.taken : 0
  if (hint !== undefined && hint >= 1 && hint < asked && hint > taken) {
    return { ...base, taken, size: hint, refused: hint + 1 }
  }
  return { ...base, taken, refused, size: taken === 0 ? Math.max(1, Math.floor(asked / 2)) : nextBelow(taken, refused) }
}

function isKnownWell(taken: number, refused: number): boolean {
  return refused - taken <= Math.max(1, Math.floor(taken * CLOSE_ENOUGH))
}

function middleOf(taken: number, refused: number): number {
  return Math.floor((taken + refused) / 2)
}

function nextBelow(taken: number, refused: number): number {
  return isKnownWell(taken, refused) ? taken : middleOf(taken, refused)
}
