import type { Account } from '../domain/account.ts'
import { type WaybillError, waybillError } from '../errors/waybill-error.ts'
import type { Shop } from './rules/shop.ts'

/** The key behind a call, and the account it acts for. */
export interface Caller {
  readonly account: Account
  /** The key's id, which is not secret. */
  readonly keyId: string
  /**
   * Which accounts' unmatched events the key may see: those of all accounts and of none, or of `account` alone. Absent without the scope
   * `operations:read`.
   */
  readonly operates?: 'ALL' | 'ACCOUNT' | undefined
  /** The part of the process's running calls that nobody takes from the key, 0 to 1; absent for the usual one, and for a publishable key. */
  readonly share?: number | undefined
  /** The page that calls with a publishable key; absent for a secret key. */
  readonly page?: Page | undefined
}

/** A page with a publishable key. */
export interface Page {
  /** The client address, by which its calls are counted. */
  readonly address: string
  /** The origins of the key. */
  readonly origins: readonly string[]
  readonly shop: Shop
}

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
