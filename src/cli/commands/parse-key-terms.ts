import { parseDateBound } from '../../domain/date-bound.ts'
import { explainOrigin } from '../../domain/hosts/origin.ts'
import { UsageError } from '../shared/command.ts'

const UNIT_MS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }
const MAX_DURATION_MS = 100 * 365 * 86_400_000
const MAX_CALLS_PER_MINUTE = 1_000_000

/**
 * Parses a duration such as `30m`, `24h`, `90d` or `2w`; at most a hundred years.
 *
 * @returns milliseconds
 * @throws UsageError
 */
export function parseDuration(option: string, text: string): number {
  const durationMs = durationOf(text)
  if (durationMs !== undefined) return durationMs
  throw new UsageError(`--${option} "${text}" is not a duration: use a number and m, h, d or w, such as 24h`)
}

/**
 * Parses when a key expires: a duration from now, an RFC 3339 time, or the last day in UTC on which it is valid.
 *
 * @throws UsageError when it has none of these forms, or is in the past
 */
export function parseExpiry(text: string, now: Date): Date {
  const durationMs = durationOf(text)
  if (durationMs !== undefined && durationMs > 0) return new Date(now.getTime() + durationMs)
  const bound = parseDateBound(text)
  if (!bound.ok) {
    throw new UsageError(`--expires "${text}" is neither a date such as 2027-12-31 nor a duration such as 90d`)
  }
  if (bound.lastMs <= now.getTime()) throw new UsageError(`--expires "${text}" is in the past`)
  return new Date(bound.lastMs)
}

/**
 * Parses calls a minute; 0 is no limit.
 *
 * @throws UsageError
 */
export function parseRate(text: string): number {
  const rate = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN
  if (rate <= MAX_CALLS_PER_MINUTE) return rate
  throw new UsageError(
    `--rate "${text}" is not a number of calls a minute: use 1 to ${MAX_CALLS_PER_MINUTE}, or 0 for no limit`,
  )
}

/**
 * Parses the part of a process's running calls that a key keeps: `0.25`.
 *
 * @throws UsageError
 */
export function parseShare(text: string): number {
  const share = /^(?:0\.\d{1,4}|1(?:\.0{1,4})?)$/.test(text) ? Number(text) : Number.NaN
  if (share > 0) return share
  throw new UsageError(
    `--share "${text}" is not a part of the process: use a number above 0 and at most 1 with up to 4 decimals, such as 0.25`,
  )
}

/** More would make the answer to every preflight slow to find. */
const MAX_ORIGINS = 100

/**
 * Parses the origins of a publishable key, separated by commas.
 *
 * @throws UsageError when there is none, or one is no exact origin
 */
export function parseOrigins(text = ''): readonly string[] {
  const origins = [...new Set(text.split(',').map((each) => each.trim()))].filter((each) => each !== '')
  if (origins.length === 0) {
    throw new UsageError('--origins is missing: list the origins of the pages, such as https://shop.example')
  }
  if (origins.length > MAX_ORIGINS)
    throw new UsageError(`--origins has ${origins.length} origins: at most ${MAX_ORIGINS}`)
  for (const origin of origins) {
    const detail = explainOrigin(origin)
    if (detail !== undefined) throw new UsageError(`--origins has "${origin}", which is no origin: ${detail}`)
  }
  return origins
}

function durationOf(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d{1,8})([mhdw])$/.exec(text) ?? []
  if (digits === undefined) return undefined
  const durationMs = Number(digits) * (UNIT_MS[unit] ?? Number.NaN)
  return durationMs <= MAX_DURATION_MS ? durationMs : undefined
}
