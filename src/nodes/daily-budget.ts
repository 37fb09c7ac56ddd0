import type { Lane } from './node-policy.ts'

/**
 * Divides what a node allows a day among the lanes, so that enough is left for live calls until the day ends. Days are UTC, as providers count
 * them. No I/O, no timers.
 */
export interface DailyBudget {
  /** Counts what is sent, allowed or not. @param amount - requests, or calls where the node counts those of a batch */
  take(amount: number, lane: Lane): void
  /** Milliseconds until the lane may spend again; 0 when it may now. */
  readyInMs(lane: Lane): number
  /** What is left today. */
  left(): number
  /** Whether nothing is left today, for any lane. */
  isUsedUp(): boolean
  /** What was spent since the last call of this, to be added to the stored sum; undefined where nothing was. */
  takeUnstored(): BudgetUse | undefined
  /** Puts back what could not be stored: the next `takeUnstored` returns it again. */
  giveBack(use: BudgetUse): void
  /** Takes over the stored sum of a day: what this process and all others that share the database have spent. */
  recall(stored: BudgetUse): void
}

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

interface BudgetState {
  readonly perDay: number
  readonly clock: () => number
  readonly startedAtMs: number
  /** Spent by live calls since the start. */
  live: number
  /** In days since 1970. */
  day: number
  /** Spent that day by all processes, as far as this one knows. */
  used: number
  /** The part of `used` that is not stored yet. */
  unstored: number
}

/** @param perDay - requests or calls @param clock - milliseconds since 1970 */
export function createDailyBudget(perDay: number, clock: () => number): DailyBudget {
  const startedAtMs = clock()
  const state: BudgetState = {
    perDay,
    clock,
    startedAtMs,
    live: 0,
    day: Math.floor(startedAtMs / DAY_MS),
    used: 0,
    unstored: 0,
  }
  return {
    take(amount, lane) {
      pageDay(state)
      spend(state, amount)
      if (lane === 'LIVE') state.live += amount
    },
    readyInMs: (lane) => readyInMs(state, lane),
    left() {
      pageDay(state)
      return Math.max(0, perDay - state.used)
    },
    isUsedUp: () => readyInMs(state, 'LIVE') > 0,
    takeUnstored() {
      pageDay(state)
      if (state.unstored === 0) return undefined
      const use = { day: dayText(state.day), amount: state.unstored }
      state.unstored = 0
      return use
    },
    giveBack({ day, amount }) {
      pageDay(state)
      if (day === dayText(state.day)) state.unstored += amount
    },
    recall({ day, amount }) {
      pageDay(state)
      if (day === dayText(state.day)) state.used = amount + state.unstored
    },
  }
}

function spend(state: BudgetState, amount: number): void {
  state.used += amount
  state.unstored += amount
}

/** Begins a new day where the last one is over. @returns the time now, in milliseconds since 1970 */
function pageDay(state: BudgetState): number {
  const nowMs = state.clock()
  const today = Math.floor(nowMs / DAY_MS)
  if (today !== state.day) {
    state.used = 0
    state.unstored = 0
  }
  state.day = today
  return nowMs
}

function readyInMs(state: BudgetState, lane: Lane): number {
  const nowMs = pageDay(state)
  const restMs = (state.day + 1) * DAY_MS - nowMs
  if (state.used >= state.perDay) return restMs
  if (lane === 'LIVE' || state.perDay - state.used > keptForLive(state, nowMs)) return 0
  return Math.min(restMs, CHECK_AGAIN_MS)
}

/** How much of the budget live calls are expected to need until the day ends. */
function keptForLive({ perDay, day, startedAtMs, live }: BudgetState, nowMs: number): number {
  const restMs = (day + 1) * DAY_MS - nowMs
  const elapsedMs = nowMs - startedAtMs
  if (elapsedMs < MEASURED_AFTER_MS) return perDay * KEPT_UNMEASURED * (restMs / DAY_MS)
  return (live / elapsedMs) * restMs * LIVE_MARGIN
}

function dayText(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10)
}
