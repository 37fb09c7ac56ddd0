import type { HeaderFields } from './exchange.ts'

/** How a caller stands against a limit of calls a minute. */
export interface LimitState {
  /** What is limited: a key's calls, or what an address does without one. */
  readonly policy: 'key' | 'address'
  readonly limit: number
  readonly remaining: number
  readonly resetSeconds: number
}

/** Hears how a caller stands; undefined takes back what it has heard. */
export type ReportLimit = (state: LimitState | undefined) => void

const names = ['ratelimit-policy', 'ratelimit', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']

/** The names of {@link rateLimitHeaders}, for pages that may read them. */
export const RATE_LIMIT_HEADERS = names.join(', ')

/**
 * How callers stand: RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers: `q` calls in `w` seconds;
 * `r` left, for `t` seconds), and the X- headers that came before them, whose reset is in seconds from now as well.
 */
function rateLimitHeaders({ policy, limit, remaining, resetSeconds }: LimitState): HeaderFields {
  return {
    'ratelimit-policy': `"${policy}";q=${limit};w=60`,
    ratelimit: `"${policy}";r=${remaining};t=${resetSeconds}`,
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': String(remaining),
    'x-ratelimit-reset': String(resetSeconds),
  }
}

/** Makes what puts them into headers, or takes them out again. */
export function reportLimitIn(...headers: readonly HeaderFields[]): ReportLimit {
  return (state) => {
    for (const fields of headers) {
      if (state !== undefined) Object.assign(fields, rateLimitHeaders(state))
      else for (const name of names) delete fields[name]
    }
  }
}
