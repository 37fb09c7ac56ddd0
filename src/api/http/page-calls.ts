import { waybillError } from '../../errors/waybill-error.ts'
import { TranscodingError } from '../../transcoding/errors/transcoding-error.ts'
import { parseJson } from '../../transcoding/messages/json-text.ts'
import { headerOf } from '../calls/call.ts'
import { fromTranscodingError } from '../messages/request-errors.ts'
import { type Inbound, methodNotAllowed } from './http-answer.ts'
import { readBody } from './request-body.ts'

/** What a page that the process itself serves may ask beside the API: a demo's wallets. JSON goes in and out. */
export interface PageCalls {
  readonly covers: (rawPath: string) => boolean
  /** The methods of a path; none if there is nothing. */
  readonly methodsOf: (rawPath: string) => readonly string[]
  /**
   * Answers a call.
   *
   * @param call.body - decoded; undefined if there is none
   * @returns a value for JSON
   */
  readonly answer: (call: {
    readonly method: string
    readonly rawPath: string
    readonly body: unknown
  }) => Promise<unknown>
}

const MAX_BODY_BYTES = 65_536

/**
 * Answers a call of a page. What changes something is for the process's own pages alone: any page of the browser can reach a port of its machine.
 *
 * @throws WaybillError METHOD_NOT_ALLOWED, ROUTE_NOT_FOUND, NOT_OWN_PAGE, BODY_TOO_LARGE, and what `parse` throws
 */
export async function sendPageCall(
  { exchange, commonHeaders }: Inbound,
  { methodsOf, answer }: PageCalls,
): Promise<void> {
  const { method, rawPath } = exchange
  const methods = methodsOf(rawPath)
  if (methods.length === 0) throw waybillError('ROUTE_NOT_FOUND', { path: rawPath, suggestion: 'begin at /docs' })
  if (!methods.includes(method)) throw methodNotAllowed(exchange, methods)
  if (method !== 'GET' && !isOwnPage(exchange)) throw waybillError('NOT_OWN_PAGE', { path: rawPath })
  const bytes = await readBody(exchange, MAX_BODY_BYTES)
  const value = await answer({ method, rawPath, body: parse(bytes) })
  const headers = { ...commonHeaders, 'cache-control': 'no-store', 'content-type': 'application/json' }
  exchange.send({ status: 200, headers, body: JSON.stringify(value) })
}

function isOwnPage({ headers, authority }: Inbound['exchange']): boolean {
  const [, host] = /^https?:\/\/(.+)$/.exec(headerOf(headers, 'origin') ?? '') ?? []
  const site = headerOf(headers, 'sec-fetch-site')
  return host === authority && (site === null || site === 'same-origin')
}

/** @throws WaybillError BODY_TOO_COMPLEX, INVALID_UTF8, MALFORMED_BODY */
function parse(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined
  try {
    return parseJson(bytes)
  } catch (error) {
    throw error instanceof TranscodingError ? fromTranscodingError(error) : error
  }
}
