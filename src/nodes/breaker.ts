/** A circuit breaker: no questions are sent to a source that fails. No I/O, no timers. */

/** Failures in a row that open it, where none of them opens it at once. One failure may be chance. */
const MAX_FAILURES = 3

/** How long it stays open: the first time, and at most. The time doubles with each probe that fails. */
const FIRST_COOLDOWN_MS = 1_000
const MAX_COOLDOWN_MS = 30_000

/** The longest pause that a source may ask for; a longer one is cut to this. */
const MAX_RETRY_AFTER_MS = 60_000

/** What may be sent now. Closed: anything. Half open: one question, which shows whether the source works again. Open: nothing. */
export type Admission = 'YES' | 'PROBE' | 'NO'

/** How a source failed. */
interface SourceFault {
  readonly detail: string
  /** Whether one such failure opens the breaker, because it cost callers much or is certain to repeat. */
  readonly opensAtOnce: boolean
  /** How long the source asks to be left alone; opens the breaker at once. */
  readonly retryAfterMs?: number | undefined
}

export type Breaker = ReturnType<typeof createBreaker>

/** Called when it opens, with the reason, and when it closes; not when a failed probe keeps it open. */
export type OnBreakerChange = (
  change: { readonly open: true; readonly detail: string } | { readonly open: false },
) => void

/** Makes a breaker, closed. */
export function createBreaker(onChange: OnBreakerChange) {
  let failures = 0
  /** Openings since it was last closed. */
  let openings = 0
  let openUntilMs: number | undefined
  let isProbing = false

  const cooldownMs = () => Math.min(FIRST_COOLDOWN_MS * 2 ** openings, MAX_COOLDOWN_MS)

  function open({ detail, retryAfterMs = 0 }: SourceFault, nowMs: number): void {
    openUntilMs = nowMs + Math.max(cooldownMs(), Math.min(retryAfterMs, MAX_RETRY_AFTER_MS))
    openings += 1
    if (openings === 1) onChange({ open: true, detail })
  }

  return {
    /** `PROBE` is given to one caller at a time, who must then call `succeed`, `fail` or `abandon`. */
    admit(nowMs: number): Admission {
      if (openUntilMs === undefined) return 'YES'
      if (isProbing || nowMs < openUntilMs) return 'NO'
      isProbing = true
      return 'PROBE'
    },
    isClosed: () => openUntilMs === undefined,
    succeed(): void {
      const wasOpen = openUntilMs !== undefined
      failures = 0
      openings = 0
      openUntilMs = undefined
      isProbing = false
      if (wasOpen) onChange({ open: false })
    },
    fail(fault: SourceFault, nowMs: number): void {
      isProbing = false
      failures += 1
      if (openUntilMs !== undefined) {
        // A question that was sent before it opened shows nothing new.
        if (nowMs >= openUntilMs) open(fault, nowMs)
      } else if (fault.opensAtOnce || fault.retryAfterMs !== undefined || failures >= MAX_FAILURES) open(fault, nowMs)
    },
    /**
     * A question ended without showing whether the source works, for instance because its caller gave up.
     *
     * @param admission - what `admit` gave for this question: only the caller of a probe ends it
     */
    abandon(admission: Admission): void {
      if (admission === 'PROBE') isProbing = false
    },
    /** Milliseconds until it admits a question again, for a caller whose question has just failed. */
    againInMs(nowMs: number): number {
      // The failure that the caller asks about may not have been counted yet.
      return openUntilMs !== undefined && openUntilMs > nowMs ? openUntilMs - nowMs : cooldownMs()
    },
  }
}
