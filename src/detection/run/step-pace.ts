import type { FollowOutcome } from './follow-step.ts'

/** How long a chain's follower waits between two steps: values and rules, without I/O. */

/** When the next step is due. */
export interface Pace {
  readonly waitMs: number
  /** Steps in a row that failed. */
  readonly failures: number
}

const MIN_POLL_MS = 250
const MAX_POLL_MS = 2_000
const FIRST_BACKOFF_MS = 500
const MAX_BACKOFF_MS = 30_000
/** How often to check whether the process that follows the chain still does, and what it has written. */
const WATCH_EVERY_MS = 750

/** Time between two looks at a chain that has nothing new: half its block time, within limits. */
export function pollIntervalOf(blockTimeSeconds: number): number {
  return Math.min(MAX_POLL_MS, Math.max(MIN_POLL_MS, blockTimeSeconds * 500))
}

/** The pace after a step that did not throw. */
export function paceAfter(outcome: FollowOutcome['kind'], pollMs: number): Pace {
  if (outcome === 'MORE') return { waitMs: 0, failures: 0 }
  return { waitMs: outcome === 'ELSEWHERE' ? WATCH_EVERY_MS : pollMs, failures: 0 }
}

/**
 * The pace after a step that threw. The time doubles with each failure, unless the node says when to ask again; where another process took the chain
 * over, that is no failure.
 *
 * @param failures - in a row before this one
 */
export function paceAfterError(
  failures: number,
  {
    isFollowing,
    pollMs,
    retryAfterMs,
  }: {
    readonly isFollowing: boolean
    readonly pollMs: number
    /** How long the node asked to be left alone. */
    readonly retryAfterMs?: number | undefined
  },
): Pace {
  if (!isFollowing) return { waitMs: pollMs, failures: 0 }
  const waitMs = Math.max(FIRST_BACKOFF_MS, retryAfterMs ?? FIRST_BACKOFF_MS * 2 ** failures)
  return { waitMs: Math.min(MAX_BACKOFF_MS, waitMs), failures: failures + 1 }
}
