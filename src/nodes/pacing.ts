/** Keeps requests below a rate: so many a second, and at most one second's worth at once. No timers. */
export interface Pacing {
  /** Milliseconds until the next request is allowed; 0 when it is allowed now. */
  readyInMs(): number
  /** Counts a request, allowed or not. */
  take(): void
}

/**
 * Makes the pacing of one URL.
 *
 * @param perSecond - undefined for no limit
 * @param clock - milliseconds since 1970
 */
export function createPacing(perSecond: number | undefined, clock: () => number): Pacing {
  if (perSecond === undefined) return { readyInMs: () => 0, take() {} }
  let left = perSecond
  let countedAtMs = clock()

  function refill(rate: number): void {
    const nowMs = clock()
    left = Math.min(rate, left + (Math.max(0, nowMs - countedAtMs) * rate) / 1_000)
    countedAtMs = nowMs
  }

  return {
    readyInMs() {
      refill(perSecond)
      return left >= 1 ? 0 : Math.ceil(((1 - left) * 1_000) / perSecond)
    },
    take() {
      refill(perSecond)
      left -= 1
    },
  }
}
