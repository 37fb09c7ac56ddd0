import { dropOldest } from '../domain/collections.ts'
import type { Logger } from '../domain/logger.ts'
import { withLimit } from '../postgres/cancellable.ts'
import { type LimitState, limitExceeded, type ReportLimit, secondsUntil, WINDOW_MS } from './caller.ts'
import type { Lease, LeaseCalls } from './sql/call-windows-repository.ts'

/**
 * Counts one call of a key.
 *
 * @param limit - calls a minute; 0 for no limit, and then nothing is reported
 * @throws WaybillError RATE_LIMITED, also reported
 */
export type CountCall = (keyId: string, limit: number, report: ReportLimit) => Promise<void>

export interface CallLimitOptions {
  readonly lease: LeaseCalls
  /** Milliseconds of a monotonic clock. */
  readonly monotonicMs: () => number
  readonly logger: Logger
  /** How long a call waits for the database before this process counts alone. */
  readonly leaseTimeoutMs?: number | undefined
}

const LEASE_TIMEOUT_MS = 250

/** Beyond it the key with the oldest lease is evicted; it loses its unused calls of that minute. */
export const MAX_KEYS = 10_000

/** This process's view of a key's current minute. */
interface Window {
  /** Calls that this process may still let through without another lease. */
  leased: number
  /** Calls left for all processes at the last lease. */
  shared: number
  endMs: number
  /** Calls that wait for a lease. */
  waiting: number
  leasing: Promise<void> | undefined
}

/**
 * All processes on one database share a key's limit. Each leases calls in batches, a tenth of what is left, and lets them through
 * without another query. So no more than the limit goes through in a minute, and a key is refused too early by at most the leases
 * that other processes have not used, a tenth of the limit each.
 *
 * When the database does not answer in time, this process counts alone for a minute and grants the whole limit: callers are not
 * refused for a slow database, and the excess is bounded by the number of processes.
 */
export function createCountCall(options: CallLimitOptions): CountCall {
  const { monotonicMs, logger, leaseTimeoutMs = LEASE_TIMEOUT_MS } = options
  const windows = new Map<string, Window>()

  function windowOf(keyId: string): Window {
    const found = windows.get(keyId)
    if (found !== undefined) return found
    const window: Window = { leased: 0, shared: 0, endMs: Number.NEGATIVE_INFINITY, waiting: 0, leasing: undefined }
    windows.set(keyId, window)
    dropOldest(windows, MAX_KEYS)
    return window
  }

  async function leaseInto(window: Window, keyId: string, limit: number): Promise<void> {
    const startedMs = monotonicMs()
    try {
      const lease = await withLimit(leaseTimeoutMs, (signal) =>
        options.lease({ keyId, limit, wanted: window.waiting }, signal),
      )
      // From before the query, so that the window never outlasts the minute of the database.
      takeLease(window, lease, startedMs + lease.leftMs)
    } catch (err) {
      logger.warn({ err, key: keyId }, 'calls of a key are counted by this process alone for a minute')
      countAlone(window, limit, monotonicMs())
    } finally {
      window.leasing = undefined
    }
    if (windows.delete(keyId)) windows.set(keyId, window)
  }

  return async (keyId, limit, report) => {
    if (limit === 0) return
    const window = windowOf(keyId)
    while (!isDecided(window, monotonicMs())) {
      window.waiting += 1
      window.leasing ??= leaseInto(window, keyId, limit)
      await window.leasing
      window.waiting -= 1
    }
    const isOver = window.leased === 0
    if (!isOver) window.leased -= 1
    const state: LimitState = {
      policy: 'key',
      limit,
      remaining: window.leased + window.shared,
      resetSeconds: secondsUntil(window.endMs, monotonicMs()),
    }
    report(state)
    if (isOver) throw limitExceeded(state)
  }
}

/** Whether a call can be let through or refused without another lease. */
function isDecided({ endMs, leased, shared }: Window, nowMs: number): boolean {
  return endMs > nowMs && (leased > 0 || shared === 0)
}

function takeLease(window: Window, { granted, remaining }: Lease, endMs: number): void {
  window.leased = granted
  window.shared = Math.max(0, remaining)
  window.endMs = endMs
}

/** Within a minute that has begun grants the rest that was last known, else the whole limit. */
function countAlone(window: Window, limit: number, nowMs: number): void {
  if (window.endMs > nowMs) window.leased = window.shared
  else {
    window.leased = limit
    window.endMs = nowMs + WINDOW_MS
  }
  window.shared = 0
}
