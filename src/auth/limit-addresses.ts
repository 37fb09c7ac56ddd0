import { dropOldest } from '../domain/collections.ts'
import { type LimitState, limitExceeded, type ReportLimit, secondsUntil, WINDOW_MS } from './caller.ts'

/**
 * Counts one call of an address without a valid key; each process counts by itself.
 *
 * @returns undoes the count and the report, for a call that turned out to have a valid key
 * @throws WaybillError RATE_LIMITED, also reported
 */
export type CountAddress = (address: string, report: ReportLimit) => () => void

/** About 10 MB. Beyond it the address whose minute began first is evicted. */
export const MAX_ADDRESSES = 50_000

/**
 * @param options.callsPerMinute - 0 for no limit
 * @param options.monotonicMs - milliseconds of a monotonic clock
 */
export function createCountAddress(options: {
  readonly callsPerMinute: number
  readonly monotonicMs: () => number
}): CountAddress {
  const { callsPerMinute: limit, monotonicMs } = options
  const windows = new Map<string, { used: number; readonly endMs: number }>()

  function windowOf(address: string, nowMs: number) {
    const current = windows.get(address)
    if (current !== undefined && current.endMs > nowMs) return current
    const window = { used: 0, endMs: nowMs + WINDOW_MS }
    // The map is in the order in which windows end.
    windows.delete(address)
    windows.set(address, window)
    dropOldest(windows, MAX_ADDRESSES)
    return window
  }

  if (limit === 0) return () => () => {}
  return (address, report) => {
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
  }
}
