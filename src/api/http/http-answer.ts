import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { LimitState, ReportLimit } from '../../auth/caller.ts'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { CallOrigin } from '../calls/call.ts'
import { httpErrorBody, retryAfterSeconds, wireFormOfError } from '../calls/error-mapping.ts'
import type { Exchange, HeaderFields } from './exchange.ts'
import { firstElements, partsOf } from './media-type.ts'
import { ACCEPTED_ENCODINGS } from './request-body.ts'

/** A request as the protocols get it. */
export interface Inbound extends CallOrigin {
  readonly exchange: Exchange
  /** The headers of every answer to it. */
  readonly commonHeaders: HeaderFields
  /** As `commonHeaders`, for gRPC, whose answers no cache keeps and no page reads. */
  readonly grpcHeaders: HeaderFields
  /** Called with each error that is sent. */
  readonly onRefused: (error: WaybillError) => void
}

/** Headers that a handler has set, as the fields of an answer. */
export function fieldsOf(headers: Headers | undefined): HeaderFields {
  return headers === undefined ? {} : Object.fromEntries(headers)
}

/** A header of every stream: proxies such as nginx would otherwise hold messages back until their buffer is full. */
export const UNBUFFERED: HeaderFields = { 'x-accel-buffering': 'no' }

/** METHOD_NOT_ALLOWED, which names the methods that the path takes. */
export function methodNotAllowed({ method, rawPath, authority }: Exchange, allow: readonly string[]): WaybillError {
  const path = method === 'CONNECT' ? authority : rawPath
  return waybillError('METHOD_NOT_ALLOWED', { method, path, allow: allow.join(', ') })
}

/** The compressions of answers. */
export type ContentEncoding = 'gzip' | 'br'

const compressors = { gzip: promisify(gzip), br: promisify(brotliCompress) }

/** Node's default is the highest quality, which takes fifty times as long. */
const BROTLI_PARAMS = { [constants.BROTLI_PARAM_QUALITY]: 4 }

/** A body as it is sent. */
export interface EncodedBody {
  readonly body: Uint8Array | string
  readonly headers: HeaderFields
}

/**
 * Compresses a body for callers that take it, unless it is small: compressing a page of 43 kB costs a third of the throughput, and a
 * small answer would not arrive any sooner.
 *
 * @param minBytes - smaller bodies are not compressed
 */
export async function encodeBody(
  body: Uint8Array | string,
  acceptEncoding: string | undefined,
  minBytes: number,
): Promise<EncodedBody> {
  const encoding = body.length < minBytes ? undefined : chooseEncoding(acceptEncoding)
  if (encoding === undefined) return { body: asBytes(body), headers: {} }
  return { body: await compress(body, encoding), headers: { 'content-encoding': encoding } }
}

export function compress(bytes: Uint8Array | string, encoding: ContentEncoding): Promise<Uint8Array> {
  return compressors[encoding](bytes, encoding === 'br' ? { params: BROTLI_PARAMS } : {})
}

/** A longer text is sent as bytes: it was put together from thousands of pieces, which it would keep until its last byte is sent. */
const MAX_TEXT_LENGTH = 4096

function asBytes(body: Uint8Array | string): Uint8Array | string {
  return typeof body === 'string' && body.length > MAX_TEXT_LENGTH ? Buffer.from(body) : body
}

/** Chooses by Accept-Encoding (RFC 9110, 12.5.3). Between equals gzip, which takes less memory and time. */
export function chooseEncoding(acceptEncoding: string | undefined): ContentEncoding | undefined {
  const qualities = qualitiesOf(acceptEncoding ?? '')
  const rest = qualities.get('*') ?? 0
  const gzip = qualities.get('gzip') ?? rest
  const br = qualities.get('br') ?? rest
  if (gzip === 0 && br === 0) return undefined
  return br > gzip ? 'br' : 'gzip'
}

/** Whether Accept allows JSON (RFC 9110, 12.5.1). The most specific range decides. */
export function acceptsJson(accept: string | undefined): boolean {
  if (accept === undefined || accept === '') return true
  const qualities = qualitiesOf(accept)
  const quality = qualities.get('application/json') ?? qualities.get('application/*') ?? qualities.get('*/*') ?? 0
  return quality > 0
}

/** Reads the values of Accept and its like with their weights (RFC 9110, 12.4.2); the default weight is 1. */
export function qualitiesOf(header: string): ReadonlyMap<string, number> {
  const qualities = new Map<string, number>()
  for (const element of firstElements(header)) {
    const [name = '', ...parameters] = partsOf(element.toLowerCase())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
    if (name !== '') qualities.set(name, quality === undefined ? 1 : Number(quality) || 0)
  }
  return qualities
}

/** An entity tag for a text. Weak, since it is the same whether the body is compressed or not. */
export function weakEtagOf(text: string): string {
  return `W/"${hash('sha1', text, 'base64url')}"`
}

/** Whether If-None-Match names the tag, by weak comparison (RFC 9110, 13.1.2). */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch.trim() === '*') return true
  const opaque = etag.replace(/^W\//, '')
  return firstElements(ifNoneMatch).some((each) => each.trim().replace(/^W\//, '') === opaque)
}

/** Answers with an error as REST writes it. */
export function sendHttpError({ exchange, commonHeaders, onRefused }: Inbound, error: WaybillError): void {
  onRefused(error)
  exchange.send({
    status: wireFormOfError(error, 'rest').httpStatus,
    headers: { ...commonHeaders, ...errorHeaders(error), 'content-type': 'application/json' },
    body: httpErrorBody(error),
  })
}

/** The headers that belong to an error by HTTP's rules. */
export function errorHeaders(error: WaybillError): HeaderFields {
  const { reason, metadata } = error
  const retryAfter = retryAfterSeconds(error)
  if (retryAfter !== undefined) return { 'retry-after': String(retryAfter) }
  if (reason === 'METHOD_NOT_ALLOWED' && metadata.allow !== undefined) return { allow: metadata.allow }
  if (reason === 'UNSUPPORTED_CONTENT_ENCODING')
    return { 'accept-encoding': [...ACCEPTED_ENCODINGS, 'identity'].join(', ') }
  if (reason === 'MISSING_API_KEY' || reason === 'INVALID_API_KEY' || reason === 'INVALID_TICKET')
    return { 'www-authenticate': 'ApiKey realm="waybill"' }
  return {}
}

/** The names of {@link rateLimitHeaders}. */
export const RATE_LIMIT_HEADERS = [
  'ratelimit-policy',
  'ratelimit',
  'x-ratelimit-limit',
  'x-ratelimit-remaining',
  'x-ratelimit-reset',
] as const

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
      else for (const name of RATE_LIMIT_HEADERS) delete fields[name]
    }
  }
}
