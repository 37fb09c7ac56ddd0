/** How often a source may be asked, by the `ratelimit-*` headers of its answers. No I/O, no timers. */
export type Quota = ReturnType<typeof createQuota>

/** The pause after too many questions, where the source does not say until when. */
const USUAL_PAUSE_MS = 60_000

/** The longest pause that is believed: LI.FI's windows last two hours. */
const MAX_PAUSE_MS = 2 * 60 * 60 * 1_000

interface Allowance {
  readonly remaining: number
  readonly untilMs: number
}

/** Makes the quota of a source that has not answered yet. */
export function createQuota() {
  let allowance: Allowance | undefined
  let underWay = 0

  return {
    /** Counts a question. @returns 0 when it may be asked, else the milliseconds for which it may not */
    take(nowMs: number): number {
      if (allowance !== undefined && nowMs >= allowance.untilMs) allowance = undefined
      // The source has not counted yet what is under way.
      if (allowance !== undefined && allowance.remaining <= underWay) return allowance.untilMs - nowMs
      underWay += 1
      return 0
    },
    /** The answer to a counted question has come, with `ratelimit-*` headers or without. */
    answered(headers: Headers, nowMs: number): void {
      underWay -= 1
      const [remaining, resetMs] = [countOf(headers, 'ratelimit-remaining'), pauseOf(headers)]
      if (remaining !== undefined && resetMs !== undefined) allowance = { remaining, untilMs: nowMs + resetMs }
    },
    /** That answer said that there were too many questions. */
    refused(headers: Headers, nowMs: number): void {
      allowance = { remaining: 0, untilMs: nowMs + (pauseOf(headers) ?? USUAL_PAUSE_MS) }
    },
    /** A counted question will have no answer. */
    unanswered(): void {
      underWay -= 1
    },
  }
}

function pauseOf(headers: Headers): number | undefined {
  const seconds = countOf(headers, 'ratelimit-reset') ?? countOf(headers, 'retry-after')
  return seconds === undefined ? undefined : Math.min(seconds * 1_000, MAX_PAUSE_MS)
}

function countOf(headers: Headers, name: string): number | undefined {
  const text = headers.get(name)?.trim() ?? ''
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined
}
