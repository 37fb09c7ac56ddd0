/** A token bucket: so many at once, and so many a second in the long run. */
export interface Allowance {
  readonly burst: number
  readonly perSecond: number
}

/** Makes what counts against an allowance. @param nowMs - a monotonic clock */
export function createAllowance({ burst, perSecond }: Allowance, nowMs: () => number) {
  let left = burst
  let countedAtMs = nowMs()
  return {
    /** Counts one. @returns whether it was allowed */
    take(): boolean {
      const now = nowMs()
      left = Math.min(burst, left + ((now - countedAtMs) / 1000) * perSecond)
      countedAtMs = now
      if (left < 1) return false
      left -= 1
      return true
    },
    giveBack(): void {
      left = Math.min(burst, left + 1)
    },
  }
}
