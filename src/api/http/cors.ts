import type { IncomingHttpHeaders } from 'node:http'
import { headerOf } from '../calls/call.ts'
import type { HeaderFields } from './exchange.ts'
import { RATE_LIMIT_HEADERS } from './rate-limit-headers.ts'

/** Which web pages may call. */
export interface CorsPolicy {
  /** What goes into the header of every answer to a page of this origin. */
  readonly headersFor: (origin: string | null) => HeaderFields
  readonly vary: string
}

/** What answers depend on, for caches. */
const VARY = 'x-api-key, x-account, accept-encoding'

/** What every answer that depends on its caller tells caches. */
export function privateHeaders({ vary }: CorsPolicy): HeaderFields {
  return { 'cache-control': 'private', vary }
}

/** What pages may read of an answer, gRPC-Web's trailers included. */
const EXPOSED_HEADERS = [
  'x-request-id, x-waybill-demo, x-waybill-seen, etag, retry-after, grpc-status, grpc-message, grpc-status-details-bin, content-encoding',
  RATE_LIMIT_HEADERS,
].join(', ')

/**
 * Makes the policy.
 *
 * @param origins - `https://app.example`, as browsers send them, or `*` for all; none by default
 */
export function createCorsPolicy(origins: readonly string[]): CorsPolicy {
  const allowed = new Set(origins)
  const vary = allowed.size === 0 ? VARY : `origin, ${VARY}`
  return {
    vary,
    headersFor(origin) {
      if (origin === null || !(allowed.has(origin) || allowed.has('*'))) return {}
      return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS }
    },
  }
}

/** How long a browser may keep the answer to a preflight, in seconds: the longest that Chromium takes. */
const PREFLIGHT_MAX_AGE_SEC = 7200

/** What the answer to a preflight (Fetch standard, "CORS-preflight request") carries beside the origin. */
export function preflightHeaders(
  policy: CorsPolicy,
  headers: IncomingHttpHeaders,
  methods: readonly string[],
): HeaderFields {
  if (Object.keys(policy.headersFor(headerOf(headers, 'origin'))).length === 0) return {}
  const asked = headerOf(headers, 'access-control-request-headers')
  return {
    'access-control-allow-methods': methods.join(', '),
    'access-control-max-age': String(PREFLIGHT_MAX_AGE_SEC),
    ...(asked !== null && { 'access-control-allow-headers': asked }),
  }
}
