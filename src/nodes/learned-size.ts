/** Learns how much a node takes at once, from what it took and what it refused: values and rules, without I/O. */

export interface LearnedSize {
  /** What to ask for. */
  readonly size: number
  readonly most: number
  /** The largest that was taken; 0 before the first. */
  readonly taken: number
  /** The smallest that was refused. Absent: none was. */
  readonly refused?: number | undefined
  /** Questions of this size in a row that were taken. */
  readonly successes: number
  /** After how many of them a larger one is tried. */
  readonly probeAfter: number
  readonly isProbing: boolean
}

/** After a refused probe the next one waits for twice as many. */
const FIRST_PROBE_AFTER = 50
/** After a probe that was taken the next one comes after half as many. */
const MIN_PROBE_AFTER = 5
const MAX_PROBE_AFTER = 100_000
const PROBE_GROWTH = 1.25
/** A limit is known well enough when it lies within this part of what was taken. */
const CLOSE_ENOUGH = 0.1

/** @param first - what is asked for at first @param most - what is never exceeded */
export function startSize(first: number, most: number): LearnedSize {
  return { size: Math.min(first, most), most, taken: 0, successes: 0, probeAfter: FIRST_PROBE_AFTER, isProbing: false }
}

/** After a question of a size was taken. A smaller one than was allowed teaches nothing. */
export function sizeAfterTaken(known: LearnedSize, asked: number): LearnedSize {
  if (asked < known.size) return known
  const taken = Math.max(known.taken, asked)
  if (known.refused === undefined) return { ...known, taken, size: Math.min(known.most, asked * 2) }
  if (known.isProbing) {
    // What was refused for another reason than its size is soon reached again.
    const probeAfter = Math.max(MIN_PROBE_AFTER, Math.floor(known.probeAfter / 2))
    return { ...known, taken, size: taken, refused: taken + 1, isProbing: false, successes: 0, probeAfter }
  }
  if (!isSettled(taken, known.refused)) return { ...known, taken, size: middleOf(taken, known.refused) }
  const successes = known.successes + 1
  if (successes < known.probeAfter || taken >= known.most) return { ...known, taken, size: taken, successes }
  const size = Math.min(known.most, Math.max(taken + 1, Math.floor(taken * PROBE_GROWTH)))
  return { ...known, taken, size, successes: 0, isProbing: true }
}

/**
 * After a question of a size was refused for its size.
 *
 * @param hint - what the node says it takes: the next guess
 */
export function sizeAfterRefused(known: LearnedSize, asked: number, hint?: number): LearnedSize {
  const base = { ...known, successes: 0, isProbing: false }
  if (known.isProbing && known.taken < asked) {
    const probeAfter = Math.min(MAX_PROBE_AFTER, known.probeAfter * 2)
    return { ...base, size: known.taken, refused: known.taken + 1, probeAfter }
  }
  const refused = Math.min(known.refused ?? asked, asked)
  // What was taken once may be refused later.
  const taken = known.taken < asked ? known.taken : 0
  if (hint !== undefined && hint >= 1 && hint < asked && hint > taken) {
    return { ...base, taken, size: hint, refused: hint + 1 }
  }
  return { ...base, taken, refused, size: taken === 0 ? Math.max(1, Math.floor(asked / 2)) : nextBelow(taken, refused) }
}

function isSettled(taken: number, refused: number): boolean {
  return refused - taken <= Math.max(1, Math.floor(taken * CLOSE_ENOUGH))
}

function middleOf(taken: number, refused: number): number {
  return Math.floor((taken + refused) / 2)
}

function nextBelow(taken: number, refused: number): number {
  return isSettled(taken, refused) ? taken : middleOf(taken, refused)
}
