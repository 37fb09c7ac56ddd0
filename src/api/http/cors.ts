import type { IncomingHttpHeaders } from 'node:http'
import { headerOf } from '../calls/call.ts'
import type { Exchange, HeaderFields } from './exchange.ts'
import { RATE_LIMIT_HEADERS } from './http-answer.ts'

export type CorsPolicy = ReturnType<typeof createCorsPolicy>

/** The origins that publishable keys have. */
export interface KeyOrigins {
  readonly has: (origin: string) => boolean
  readonly lookup: (origin: string) => Promise<boolean>
}

/** The caching headers of every answer that depends on its caller. */
export const privateHeaders = {
  'cache-control': 'private',
  vary: 'origin, x-api-key, x-account, accept-encoding',
} as const

/** The headers that pages may read, gRPC-Web's trailers included. */
const EXPOSED_HEADERS = [
  'date, x-request-id, x-waybill-demo, etag, retry-after, grpc-status, grpc-message, grpc-status-details-bin, content-encoding, deprecation, sunset, link',
  ...RATE_LIMIT_HEADERS,
].join(', ')

/**
 * Makes the policy which web pages may call.
 *
 * @param origins - `https://app.example`, as browsers send them, or `*` for all
 * @param ofKeys - origins whose pages have keys of their own
 */
export function createCorsPolicy(origins: readonly string[], ofKeys: KeyOrigins | undefined) {
  const allowed = new Set(origins)
  const isListed = (origin: string) => allowed.has(origin) || allowed.has('*')
  return {
    /** The CORS headers of every answer to a page of this origin. */
    headersFor(origin: string | null): HeaderFields {
      if (origin === null || !(isListed(origin) || ofKeys?.has(origin) === true)) return {}
      return { 'access-control-allow-origin': origin, 'access-control-expose-headers': EXPOSED_HEADERS }
    },
    /** Whether pages of an origin may call; looks for keys that were made just now. */
    isAllowed: async (origin: string): Promise<boolean> => isListed(origin) || (await ofKeys?.lookup(origin)) === true,
  }
}

/** Whether a request is the question of a browser whether a page may call (Fetch standard, "CORS-preflight request"). */
export function isPreflight({ method, headers }: Pick<Exchange, 'method' | 'headers'>): boolean {
  return method === 'OPTIONS' && 'origin' in headers && 'access-control-request-method' in headers
}

/** How long a browser may cache the answer to a preflight, in seconds: the maximum of Chromium. */
const PREFLIGHT_MAX_AGE_SEC = 7200

/** The headers of the answer to a preflight whose origin is allowed. */
export function preflightHeaders(
  policy: CorsPolicy,
  headers: IncomingHttpHeaders,
  methods: readonly string[],
): HeaderFields {
  const asked = headerOf(headers, 'access-control-request-headers')
  return {
    ...policy.headersFor(headerOf(headers, 'origin')),
    'access-control-allow-methods': methods.join(', '),
    'access-control-max-age': String(PREFLIGHT_MAX_AGE_SEC),
    ...(asked !== null && { 'access-control-allow-headers': asked }),
  }
}
