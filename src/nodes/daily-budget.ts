import type { Lane } from './lanes.ts'

/** Spends what a plan allows a day (UTC), so that following a chain always has enough. No I/O, no timers. */
export interface DailyBudget {
  take(amount: number, lane: Lane): void
  /** Milliseconds until the lane may spend again; 0 when it may now. */
  readyInMs(lane: Lane): number
  /** What is left today. */
  left(): number
}

const DAY_MS = 86_400_000
/** Before this time the use of live calls says little: half of the rest is kept for them. */
const MEASURED_AFTER_MS = 600_000
const KEPT_UNMEASURED = 0.5
/** Live calls may become more. */
const MARGIN = 1.2
/** Other lanes look again after this time whether something is left over. */
const LOOK_AGAIN_MS = 60_000

/** @param perDay - requests or calls @param clock - milliseconds since 1970 */
export function createDailyBudget(perDay: number, clock: () => number): DailyBudget {
  const startedAtMs = clock()
  let liveSinceStart = 0
  let day = Math.floor(startedAtMs / DAY_MS)
  let used = 0

  function turnDay(): number {
    const nowMs = clock()
    const today = Math.floor(nowMs / DAY_MS)
    if (today !== day) used = 0
    day = today
    return nowMs
  }

  function keptForLive(nowMs: number): number {
    const restMs = (day + 1) * DAY_MS - nowMs
    const elapsedMs = nowMs - startedAtMs
    if (elapsedMs < MEASURED_AFTER_MS) return perDay * KEPT_UNMEASURED * (restMs / DAY_MS)
    return (liveSinceStart / elapsedMs) * restMs * MARGIN
  }

  return {
    take(amount, lane) {
      turnDay()
      used += amount
      if (lane === 'LIVE') liveSinceStart += amount
    },
    readyInMs(lane) {
      const nowMs = turnDay()
      const restMs = (day + 1) * DAY_MS - nowMs
      if (used >= perDay) return restMs
      if (lane === 'LIVE' || perDay - used > keptForLive(nowMs)) return 0
      return Math.min(restMs, LOOK_AGAIN_MS)
    },
    left() {
      turnDay()
      return Math.max(0, perDay - used)
    },
  }
}
