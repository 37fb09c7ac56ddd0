/** A token bucket: so many at once, and so many a second in the long run. */
export interface Allowance {
  readonly burst: number
  readonly perSecond: number
}

/** Counts against an allowance. */
export interface AllowanceCounter {
  /** Counts one. @returns whether it was allowed */
  readonly take: () => boolean
  readonly giveBack: () => void
}

/** @param nowMs - a monotonic clock */
export function createAllowance({ burst, perSecond }: Allowance, nowMs: () => number): AllowanceCounter {
  let left = burst
  let countedAtMs = nowMs()
  return {
    take() {
      const now = nowMs()
      left = Math.min(burst, left + ((now - countedAtMs) / 1000) * perSecond)
      countedAtMs = now
      if (left < 1) return false
      left -= 1
      return true
    },
    giveBack() {
      left = Math.min(burst, left + 1)
    },
  }
}
