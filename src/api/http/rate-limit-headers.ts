import type { LimitState, ReportLimit } from '../../auth/caller.ts'
import type { HeaderFields } from './exchange.ts'

const names = ['ratelimit-policy', 'ratelimit', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']

/** The names of {@link rateLimitHeaders}, for pages that may read them. */
export const RATE_LIMIT_HEADERS = names.join(', ')

/**
 * The state of a rate limit: RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers: `q` calls in `w` seconds; `r` are
 * left, for `t` seconds), and the older X- headers, whose reset is in seconds from now, too.
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

/** Makes a function that adds the state to headers, or removes it from them again. */
export function reportLimitIn(...headers: readonly HeaderFields[]): ReportLimit {
  return (state) => {
    for (const fields of headers) {
      if (state !== undefined) Object.assign(fields, rateLimitHeaders(state))
      else for (const name of names) delete fields[name]
    }
  }
}
