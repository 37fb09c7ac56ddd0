import type { Logger } from '../domain/logger.ts'
import { type LimitState, limitExceeded, type ReportLimit, secondsUntil, WINDOW_MS } from './rate-limit.ts'
import type { Lease, LeaseCalls } from './sql/call-windows-repository.ts'

/**
 * Counts one call of a key.
 *
 * @param limit - calls a minute; 0 for any number, of which nothing is reported
 * @throws WaybillError RATE_LIMITED, also reported
 */
export type CountCall = (keyId: string, limit: number, report: ReportLimit) => Promise<void>

export interface CallLimitOptions {
  readonly lease: LeaseCalls
  /** A clock that never goes back. */
  readonly monotonicMs: () => number
  readonly logger: Logger
  /** How long a call waits for the database before the process counts by itself. */
  readonly leaseTimeoutMs?: number | undefined
}

const LEASE_TIMEOUT_MS = 250

/** Beyond that the key that leased longest ago is forgotten; what it had leased is lost to it for the minute. */
export const MOST_KEYS = 10_000

/** What this process knows of a key's minute. */
interface Window {
  /** Calls that it may still let through without asking. */
  leased: number
  /** What the minute had left for all processes when last asked. */
  shared: number
  endMs: number
  /** Calls that wait for a lease. */
  waiting: number
  leasing: Promise<void> | undefined
}

/**
 * Makes the limit of keys. All processes on one database share a key's minute: each leases calls in batches, a tenth of what is
 * left, and lets them through without asking again. So never more than the limit goes through in a minute, and a key is refused
 * early by at most what lies unused in other processes, a tenth of the limit in each.
 *
 * When the database does not answer in time, the process lets the key have its limit, counted by itself, for a minute: a slow
 * database is no reason to refuse callers, and what it costs is bounded by the number of processes.
 */
export function createCountCall(options: CallLimitOptions): CountCall {
  const { monotonicMs, logger, leaseTimeoutMs = LEASE_TIMEOUT_MS } = options
  const windows = new Map<string, Window>()

  function windowOf(keyId: string): Window {
    const found = windows.get(keyId)
    if (found !== undefined) return found
    const window: Window = { leased: 0, shared: 0, endMs: Number.NEGATIVE_INFINITY, waiting: 0, leasing: undefined }
    windows.set(keyId, window)
    for (const oldest of windows.keys()) {
      if (windows.size <= MOST_KEYS) break
      windows.delete(oldest)
    }
    return window
  }

  async function leaseInto(window: Window, keyId: string, limit: number): Promise<void> {
    const askedMs = monotonicMs()
    try {
      const asked = options.lease({ keyId, limit, wanted: window.waiting })
      const lease = await withinTime(asked, leaseTimeoutMs)
      // From when it was asked, so that no call is let through when the minute is over for the database.
      takeLease(window, lease, askedMs + lease.leftMs)
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

/** Whether a call can be let through, or refused, without asking. */
function isDecided({ endMs, leased, shared }: Window, nowMs: number): boolean {
  return endMs > nowMs && (leased > 0 || shared === 0)
}

function takeLease(window: Window, { granted, remaining }: Lease, endMs: number): void {
  window.leased = granted
  window.shared = Math.max(0, remaining)
  window.endMs = endMs
}

/** In the middle of a minute there is left what was known to be; else the whole limit. */
function countAlone(window: Window, limit: number, nowMs: number): void {
  if (window.endMs > nowMs) window.leased = window.shared
  else {
    window.leased = limit
    window.endMs = nowMs + WINDOW_MS
  }
  window.shared = 0
}

async function withinTime<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs)
  try {
    return await Promise.race([promise, timeout])
  } finally {
    clearTimeout(timer)
  }
}
