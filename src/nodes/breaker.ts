/** Keeps calls from a source that fails. It does no I/O and has no timers; it holds a few numbers. */

/** Quick failures in a row that open it: they cost callers next to nothing, and one alone may be chance. */
const MOST_FAILURES = 3

/** It stays open for so long at first, then for twice as long each time that a probe fails. */
const FIRST_COOLDOWN_MS = 1_000
const LONGEST_COOLDOWN_MS = 30_000

/** The longest that a source may ask to be left alone. */
const LONGEST_RETRY_AFTER_MS = 60_000

/** What may be asked of a source now: anything, one thing to see whether it is well again, or nothing. */
export type Admission = 'YES' | 'PROBE' | 'NO'

/** How a source failed. */
export interface SourceFault {
  readonly detail: string
  /** It cost so much, or is so certain, that once is enough. */
  readonly opensAtOnce: boolean
  readonly retryAfterMs?: number
}

export interface Breaker {
  /** `PROBE` is said to one at a time, who has to tell how it went. */
  admit(nowMs: number): Admission
  succeed(): void
  fail(fault: SourceFault, nowMs: number): void
  /** Nothing was learned. */
  abandon(): void
  /** Milliseconds after which it admits something again, if the source has just failed. */
  againInMs(nowMs: number): number
}

/** Is told when it opens, with the reason, and when it closes; not of probes that fail. */
export type OnBreakerChange = (
  change: { readonly open: true; readonly detail: string } | { readonly open: false },
) => void

/** Makes a breaker, closed. */
export function createBreaker(onChange: OnBreakerChange): Breaker {
  let failures = 0
  /** Times in a row that it opened. */
  let openings = 0
  let openUntilMs: number | undefined
  let isProbed = false

  const cooldownMs = () => Math.min(FIRST_COOLDOWN_MS * 2 ** openings, LONGEST_COOLDOWN_MS)

  function open({ detail, retryAfterMs = 0 }: SourceFault, nowMs: number): void {
    openUntilMs = nowMs + Math.max(cooldownMs(), Math.min(retryAfterMs, LONGEST_RETRY_AFTER_MS))
    openings += 1
    if (openings === 1) onChange({ open: true, detail })
  }

  return {
    admit(nowMs) {
      if (openUntilMs === undefined) return 'YES'
      if (isProbed || nowMs < openUntilMs) return 'NO'
      isProbed = true
      return 'PROBE'
    },
    succeed() {
      const wasOpen = openUntilMs !== undefined
      failures = 0
      openings = 0
      openUntilMs = undefined
      isProbed = false
      if (wasOpen) onChange({ open: false })
    },
    fail(fault, nowMs) {
      isProbed = false
      failures += 1
      if (openUntilMs !== undefined) {
        // What was under way when it opened says nothing new.
        if (nowMs >= openUntilMs) open(fault, nowMs)
      } else if (fault.opensAtOnce || fault.retryAfterMs !== undefined || failures >= MOST_FAILURES) open(fault, nowMs)
    },
    abandon() {
      isProbed = false
    },
    againInMs(nowMs) {
      // A failure that is just being told of may not have come here yet.
      return openUntilMs !== undefined && openUntilMs > nowMs ? openUntilMs - nowMs : cooldownMs()
    },
  }
}
