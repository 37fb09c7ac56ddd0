import type { IncomingHttpHeaders } from 'node:http'
import { headerOf } from '../calls/call.ts'
import type { HeaderFields } from './exchange.ts'
import { RATE_LIMIT_HEADERS } from './rate-limit-headers.ts'

/** Which web pages may call. */
export interface CorsPolicy {
  /** The CORS headers of every answer to a page of this origin. */
  readonly headersFor: (origin: string | null) => HeaderFields
  readonly vary: string
}

/** The request headers that answers depend on. */
const VARY = 'x-api-key, x-account, accept-encoding'

/** The caching headers of every answer that depends on its caller. */
export function privateHeaders({ vary }: CorsPolicy): HeaderFields {
  return { 'cache-control': 'private', vary }
}

/** The headers that pages may read, gRPC-Web's trailers included. */
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

/** How long a browser may cache the answer to a preflight, in seconds: the maximum of Chromium. */
const PREFLIGHT_MAX_AGE_SEC = 7200

/** The headers of the answer to a preflight (Fetch standard, "CORS-preflight request"), beside those of the origin. */
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
