import { hash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import type { ReportLimit } from '../../auth/rate-limit.ts'
import type { WaybillError } from '../../errors/waybill-error.ts'
import { httpErrorBody, retryAfterSeconds, wireFormOfError } from '../calls/error-mapping.ts'
import type { Exchange, HeaderFields } from './exchange.ts'

/** A request as the protocols get it: its exchange, its id, and what every answer to it says in the header. */
export interface Inbound {
  readonly exchange: Exchange
  readonly requestId: string
  readonly commonHeaders: HeaderFields
  /** As commonHeaders, for gRPC, whose answers no cache keeps and no page reads. */
  readonly grpcHeaders: HeaderFields
  /** From where the request comes, in the form in which callers without a key are told apart. */
  readonly clientAddress: () => string
  /** Puts into both headers how the caller stands against its limit. */
  readonly reportLimit: ReportLimit
  /** Hears of each error that is sent. */
  readonly onRefused: (error: WaybillError) => void
}

/** The ways to compress that there are here. */
export type ContentEncoding = 'gzip' | 'br'

const compressors = { gzip: promisify(gzip), br: promisify(brotliCompress) }

/** The highest quality, which is Node's default, takes fifty times as long. */
const BROTLI_PARAMS = { [constants.BROTLI_PARAM_QUALITY]: 4 }

/** A body as it is sent. */
export interface EncodedBody {
  readonly body: Uint8Array | string
  readonly headers: HeaderFields
}

/**
 * Compresses a body where the caller takes it and it is large enough: compressing a page of 43 kB costs a third of the
 * throughput, and a small answer would not get there any sooner.
 *
 * @param minBytes - bodies below this go out as they are
 */
export async function encodeBody(
  body: Uint8Array | string,
  acceptEncoding: string | undefined,
  minBytes: number,
): Promise<EncodedBody> {
  const encoding = body.length < minBytes ? undefined : chooseEncoding(acceptEncoding)
  if (encoding === undefined) return { body: asBytes(body), headers: {} }
  const compressed = await compressors[encoding](body, encoding === 'br' ? { params: BROTLI_PARAMS } : {})
  return { body: compressed, headers: { 'content-encoding': encoding } }
}

/** A text is made of thousands of pieces, which would wait with it until its last byte is out. */
const MOST_TEXT = 4096

function asBytes(body: Uint8Array | string): Uint8Array | string {
  return typeof body === 'string' && body.length > MOST_TEXT ? Buffer.from(body) : body
}

/** Chooses by Accept-Encoding (RFC 9110, 12.5.3); gzip where both are as good, since it takes less memory and time. */
export function chooseEncoding(acceptEncoding: string | undefined): ContentEncoding | undefined {
  const qualities = qualitiesOf(acceptEncoding ?? '')
  const rest = qualities.get('*') ?? 0
  const gzip = qualities.get('gzip') ?? rest
  const br = qualities.get('br') ?? rest
  if (gzip === 0 && br === 0) return undefined
  return br > gzip ? 'br' : 'gzip'
}

/** Whether Accept allows JSON (RFC 9110, 12.5.1): the most specific range that fits decides. */
export function acceptsJson(accept: string | undefined): boolean {
  if (accept === undefined || accept === '') return true
  const qualities = qualitiesOf(accept)
  const quality = qualities.get('application/json') ?? qualities.get('application/*') ?? qualities.get('*/*') ?? 0
  return quality > 0
}

/** Reads the values of Accept and the like with their weights, which are 1 where none stands (RFC 9110, 12.4.2). */
export function qualitiesOf(header: string): ReadonlyMap<string, number> {
  const qualities = new Map<string, number>()
  for (const item of header.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
    if (name !== '') qualities.set(name, quality === undefined ? 1 : Number(quality) || 0)
  }
  return qualities
}

/** An entity tag over a text. Weak: it stays the same when the body goes out compressed. */
export function weakEtagOf(text: string): string {
  return `W/"${hash('sha1', text, 'base64url')}"`
}

/** Whether If-None-Match names the tag, by weak comparison (RFC 9110, 13.1.2). */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  if (ifNoneMatch.trim() === '*') return true
  const opaque = etag.replace(/^W\//, '')
  return ifNoneMatch.split(',').some((each) => each.trim().replace(/^W\//, '') === opaque)
}

/** Answers with an error in plain JSON. */
export function sendHttpError({ exchange, commonHeaders, onRefused }: Inbound, error: WaybillError): void {
  onRefused(error)
  exchange.send({
    status: wireFormOfError(error).httpStatus,
    headers: { ...commonHeaders, ...errorHeaders(error), 'content-type': 'application/json' },
    body: httpErrorBody(error),
  })
}

/** What HTTP wants in the header of an error. */
export function errorHeaders(error: WaybillError): HeaderFields {
  const { reason, metadata } = error
  const retryAfter = retryAfterSeconds(error)
  if (retryAfter !== undefined) return { 'retry-after': String(retryAfter) }
  if (reason === 'METHOD_NOT_ALLOWED' && metadata.allow !== undefined) return { allow: metadata.allow }
  if (reason === 'UNSUPPORTED_CONTENT_ENCODING') return { 'accept-encoding': 'gzip, br, identity' }
  if (reason === 'MISSING_API_KEY' || reason === 'INVALID_API_KEY' || reason === 'INVALID_TICKET')
    return { 'www-authenticate': 'ApiKey realm="waybill"' }
  return {}
}
