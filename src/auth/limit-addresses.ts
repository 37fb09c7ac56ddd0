import { type LimitState, limitExceeded, type ReportLimit, secondsUntil, WINDOW_MS } from './rate-limit.ts'

/** Limits what addresses do without a key, in this process alone. */
export interface AddressLimit {
  /**
   * Counts one call of an address.
   *
   * @returns what takes it and its report back, for a call that turned out to have a key
   * @throws WaybillError RATE_LIMITED, also reported
   */
  readonly spend: (address: string, report: ReportLimit) => () => void
}

/** Beyond that the address whose minute began first is forgotten: about 10 MB. */
export const MOST_ADDRESSES = 50_000

/**
 * Makes the limit.
 *
 * @param options.callsPerMinute - 0 for any number
 * @param options.monotonicMs - a clock that never goes back
 */
export function createAddressLimit(options: {
  readonly callsPerMinute: number
  readonly monotonicMs: () => number
}): AddressLimit {
  const { callsPerMinute: limit, monotonicMs } = options
  const windows = new Map<string, { used: number; readonly endMs: number }>()

  function windowOf(address: string, nowMs: number) {
    const current = windows.get(address)
    if (current !== undefined && current.endMs > nowMs) return current
    const window = { used: 0, endMs: nowMs + WINDOW_MS }
    // In the order in which they end.
    windows.delete(address)
    windows.set(address, window)
    for (const oldest of windows.keys()) {
      if (windows.size <= MOST_ADDRESSES) break
      windows.delete(oldest)
    }
    return window
  }

  if (limit === 0) return { spend: () => () => {} }
  return {
    spend(address, report) {
      const nowMs = monotonicMs()
      const window = windowOf(address, nowMs)
      const isOver = window.used >= limit
      if (!isOver) window.used += 1
      const state: LimitState = {
        policy: 'address',
        limit,
        remaining: limit - window.used,
        resetSeconds: secondsUntil(window.endMs, nowMs),
      }
      report(state)
      if (isOver) throw limitExceeded(state)
      return () => {
        window.used -= 1
        report(undefined)
      }
    },
  }
}
