import { type WaybillError, waybillError } from '../errors/waybill-error.ts'

/** The state of a caller's limit, after the call that was just counted. */
export interface LimitState {
  /** What is limited: the calls of a key, or those of an address without one. */
  readonly policy: 'key' | 'address'
  /** Calls a minute. */
  readonly limit: number
  /** Calls that are left in this minute. */
  readonly remaining: number
  /** Until the next minute of this caller, in whole seconds, rounded up. */
  readonly resetSeconds: number
}

/** Receives the state of a limit before the call is let through or refused; undefined withdraws an earlier state. */
export type ReportLimit = (state: LimitState | undefined) => void

/** One minute, in ms: the window of every limit. */
export const WINDOW_MS = 60_000

export function limitExceeded({ limit, resetSeconds }: LimitState): WaybillError {
  return waybillError('RATE_LIMITED', { limit, retryAfterSeconds: resetSeconds })
}

/** At least one: a caller that comes back at once would be refused again. */
export function secondsUntil(endMs: number, nowMs: number): number {
  return Math.max(1, Math.ceil((endMs - nowMs) / 1000))
}
