import type { Lane } from './node-policy.ts'

/**
 * Divides what a node allows a day among the lanes, so that enough is left for live calls until the day ends. Days are UTC, as providers count
 * them. No I/O, no timers.
 */
export type DailyBudget = ReturnType<typeof createDailyBudget>

/** What was spent of a budget on a day. */
export interface BudgetUse {
  /** `2026-11-22`, in UTC. */
  readonly day: string
  /** Requests, or calls where the node counts those of a batch. */
  readonly amount: number
}

const DAY_MS = 86_400_000
/** Before a process has run for this long, the use of its live calls says little: half of the rest of the day's budget is kept for them. */
const MEASURED_AFTER_MS = 600_000
const KEPT_UNMEASURED = 0.5
/** More is kept than live calls were measured to use, since they may become more. */
const LIVE_MARGIN = 1.2
/** A lane that has to leave the rest to live calls may look again after this time. */
const CHECK_AGAIN_MS = 60_000

/** @param perDay - requests or calls @param clock - milliseconds since 1970 */
export function createDailyBudget(perDay: number, clock: () => number) {
  const startedAtMs = clock()
  /** Spent by live calls since the start. */
  let live = 0
  /** In days since 1970. */
  let day = Math.floor(startedAtMs / DAY_MS)
  /** Spent that day by all processes, as far as this one knows. */
  let used = 0
  /** The part of `used` that is not stored yet. */
  let unstored = 0

  /** Begins a new day where the last one is over. @returns the time now, in milliseconds since 1970 */
  function pageDay(): number {
    const nowMs = clock()
    const today = Math.floor(nowMs / DAY_MS)
    if (today !== day) used = unstored = 0
    day = today
    return nowMs
  }

  function readyInMs(lane: Lane): number {
    const nowMs = pageDay()
    const restMs = (day + 1) * DAY_MS - nowMs
    if (used >= perDay) return restMs
    if (lane === 'LIVE' || perDay - used > keptForLive(nowMs - startedAtMs, restMs)) return 0
    return Math.min(restMs, CHECK_AGAIN_MS)
  }

  /** How much of the budget live calls are expected to need until the day ends. */
  function keptForLive(elapsedMs: number, restMs: number): number {
    if (elapsedMs < MEASURED_AFTER_MS) return perDay * KEPT_UNMEASURED * (restMs / DAY_MS)
    return (live / elapsedMs) * restMs * LIVE_MARGIN
  }

  return {
    perDay,
    /** Counts what is sent, allowed or not. @param amount - requests, or calls where the node counts those of a batch */
    take(amount: number, lane: Lane): void {
      pageDay()
      used += amount
      unstored += amount
      if (lane === 'LIVE') live += amount
    },
    /** Milliseconds until the lane may spend again; 0 when it may now. */
    readyInMs,
    /** What is left today. */
    left(): number {
      pageDay()
      return Math.max(0, perDay - used)
    },
    /** Whether nothing is left today, for any lane. */
    isUsedUp: () => readyInMs('LIVE') > 0,
    /** What was spent since the last call of this, to be added to the stored sum; undefined where nothing was. */
    takeUnstored(): BudgetUse | undefined {
      pageDay()
      const amount = unstored
      unstored = 0
      return amount === 0 ? undefined : { day: dayText(day), amount }
    },
    /** Puts back what could not be stored: the next `takeUnstored` returns it again. */
    giveBack(use: BudgetUse): void {
      pageDay()
      if (use.day === dayText(day)) unstored += use.amount
    },
    /** Takes over the stored sum of a day: what this process and all others that share the database have spent. */
    recall(stored: BudgetUse): void {
      pageDay()
      if (stored.day === dayText(day)) used = stored.amount + unstored
    },
  }
}

function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}
