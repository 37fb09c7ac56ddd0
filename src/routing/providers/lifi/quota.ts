/** How often a source may be asked, as its answers tell it. It does no I/O and has no timers; it holds a few numbers. */
export interface Quota {
  /** Counts a question. @returns 0 when it may be asked, else how many milliseconds from now on it may not */
  take(nowMs: number): number
  /** The answer to a question that was counted has come, with `ratelimit-*` headers or without. */
  answered(headers: Headers, nowMs: number): void
  /** And it was that there were too many. */
  refused(headers: Headers, nowMs: number): void
  /** There will be no answer to a question that was counted. */
  unanswered(): void
}

/** What a source is left alone for when it says that there were too many and not until when. */
const USUAL_PAUSE_MS = 60_000

/** The longest that it is believed: windows are of two hours. */
const LONGEST_PAUSE_MS = 2 * 60 * 60 * 1_000

interface Allowance {
  readonly remaining: number
  readonly untilMs: number
}

/** Makes the quota of a source of which nothing is known yet. */
export function createQuota(): Quota {
  let allowance: Allowance | undefined
  let underWay = 0

  return {
    take(nowMs) {
      if (allowance !== undefined && nowMs >= allowance.untilMs) allowance = undefined
      // Of what is under way the source may not know yet.
      if (allowance !== undefined && allowance.remaining <= underWay) return allowance.untilMs - nowMs
      underWay += 1
      return 0
    },
    answered(headers, nowMs) {
      underWay -= 1
      const [remaining, resetMs] = [countOf(headers, 'ratelimit-remaining'), pauseOf(headers)]
      if (remaining !== undefined && resetMs !== undefined) allowance = { remaining, untilMs: nowMs + resetMs }
    },
    refused(headers, nowMs) {
      allowance = { remaining: 0, untilMs: nowMs + (pauseOf(headers) ?? USUAL_PAUSE_MS) }
    },
    unanswered() {
      underWay -= 1
    },
  }
}

function pauseOf(headers: Headers): number | undefined {
  const seconds = countOf(headers, 'ratelimit-reset') ?? countOf(headers, 'retry-after')
  return seconds === undefined ? undefined : Math.min(seconds * 1_000, LONGEST_PAUSE_MS)
}

function countOf(headers: Headers, name: string): number | undefined {
  const text = headers.get(name)?.trim() ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
