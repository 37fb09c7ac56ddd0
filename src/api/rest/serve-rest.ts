import type { DescMethod, Message } from '@bufbuild/protobuf'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { RouteMatch } from '../../transcoding/paths/router.ts'
import { parseTemplate } from '../../transcoding/paths/template-parser.ts'
import { InvalidHttpRuleError, type Route, type Transcoder } from '../../transcoding/transcoder.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import { pathOf } from '../calls/served-method.ts'
import type { Exchange, HeaderFields } from '../http/exchange.ts'
import {
  acceptsJson,
  encodeBody,
  fieldsOf,
  type Inbound,
  matchesEtag,
  methodNotAllowed,
  sendHttpError,
  weakEtagOf,
} from '../http/http-answer.ts'
import { readMediaType } from '../http/media-type.ts'
import { decodeContent, findCompression, readBody } from '../http/request-body.ts'
import { writtenPath } from '../messages/proto-options.ts'
import { fromTranscodingError } from '../messages/request-errors.ts'
import { findNearestPath } from './nearest-path.ts'
import { type RestCall, type RestStreamOptions, serveStream } from './serve-rest-stream.ts'

export interface RestOptions extends RestStreamOptions {
  readonly transcoder: Transcoder
  /** By path, from the call core. */
  readonly methods: ReadonlyMap<string, CallableMethod>
  readonly maxBodyBytes: number
  readonly compressMinBytes: number
  /** Paths beside the routes, which may be suggested for an unknown path. */
  readonly otherPaths: readonly string[]
}

export type RestServer = ReturnType<typeof createRestServer>

/** Makes what serves JSON over HTTP, by the google.api.http options of the methods. */
export function createRestServer(options: RestOptions) {
  const { transcoder, methods } = options
  for (const { method } of transcoder.routes) refuseRequestStream(method)
  const routeMethods = transcoder.routes.map(({ binding }) => binding.httpMethod).filter((method) => method !== '*')
  const notFound = createNotFound(options)

  function serveRoute(inbound: Inbound, match: MatchedRoute): Promise<void> {
    const { route } = match
    const method = methods.get(pathOf(route.method))
    if (method === undefined) throw new TypeError(`${String(route.method)} has a route and no handler`)
    const call = { method, route, readRequest: () => readRestRequest(inbound.exchange, match, options.maxBodyBytes) }
    return method.desc.methodKind === 'unary' ? serveUnary(inbound, call, options) : serveStream(inbound, call, options)
  }

  return {
    /** The HTTP methods that a path takes, sorted; empty for an unknown path. */
    allowedMethods(rawPath: string): readonly string[] {
      // No route has this method, so the answer names the methods that there are.
      const match = transcoder.match('OPTIONS', rawPath)
      return match.kind === 'method_not_allowed' ? withOptions(match.allow) : []
    },
    /** The HTTP methods of all routes and of the other paths, sorted. */
    httpMethods: withOptions([...routeMethods, 'GET', 'HEAD', 'POST']),
    notFound,
    /**
     * Answers a request.
     *
     * @throws WaybillError ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED or the mistake in the path, when the request calls no method
     */
    async serve(inbound: Inbound): Promise<void> {
      const { exchange } = inbound
      const match = transcoder.match(exchange.method, exchange.rawPath)
      switch (match.kind) {
        case 'not_found':
          throw notFound(exchange.rawPath)
        case 'method_not_allowed':
          throw methodNotAllowed(exchange, withOptions(match.allow))
        case 'malformed':
          throw fromTranscodingError(match.error)
        case 'match':
          return serveRoute(inbound, match)
      }
    },
  }
}

type MatchedRoute = Extract<RouteMatch<Route>, { readonly kind: 'match' }>

/** Makes ROUTE_NOT_FOUND, which suggests the nearest path. */
function createNotFound({ transcoder, otherPaths }: RestOptions) {
  const routePaths = [...new Set(transcoder.routes.map(({ binding, method }) => writtenPath(binding, method)))]
  const templates = [...transcoder.routes.map(({ template }) => template), ...otherPaths.map(parseTemplate)]
  const pages = ['/docs', '/console'].filter((path) => otherPaths.includes(path)).join(' or ')
  return (rawPath: string): WaybillError => {
    if (rawPath === '/' && pages !== '') {
      return waybillError('ROUTE_NOT_FOUND', { path: rawPath, suggestion: `begin at ${pages}` })
    }
    const isShort = rawPath.length <= MAX_SUGGESTED_FOR
    const nearest = isShort ? findNearestPath(rawPath, templates) : undefined
    const suggestion = nearest === undefined ? `use one of: ${routePaths.join(', ')}` : `did you mean ${nearest}?`
    return waybillError('ROUTE_NOT_FOUND', { path: rawPath, suggestion })
  }
}

/** Answers a call of a method that answers with one message. */
async function serveUnary(inbound: Inbound, call: RestCall, { compressMinBytes }: RestOptions): Promise<void> {
  const { exchange, commonHeaders } = inbound
  const outcome = await call.method.callUnary({
    ...inbound,
    protocol: 'rest',
    readRequest: async () => {
      const { accept } = exchange.headers
      if (!acceptsJson(accept))
        throw waybillError('NOT_ACCEPTABLE', { value: accept ?? '', expected: 'application/json' })
      return call.readRequest()
    },
  })
  if ('error' in outcome) return sendHttpError(inbound, outcome.error)
  const { method, route } = call
  const cacheable = isCacheable(method, exchange.method)
  const encodeStable = cacheable ? route.encodeStable : undefined
  const { text, stable = text } = encodeStable?.(outcome.plain) ?? { text: route.encodeResponse(outcome.plain) }
  const headers: HeaderFields = {
    ...commonHeaders,
    ...fieldsOf(outcome.header),
    'content-type': 'application/json',
  }
  if (cacheable) {
    headers.etag = weakEtagOf(stable)
    if (matchesEtag(exchange.headers['if-none-match'], headers.etag)) return exchange.send({ status: 304, headers })
  }
  const acceptEncoding = exchange.headers['accept-encoding']?.toString()
  const encoded = await encodeBody(text, acceptEncoding, compressMinBytes)
  exchange.send({ status: 200, headers: { ...headers, ...encoded.headers }, body: encoded.body })
}

/** A path that is much longer than all paths is no typing error, and to compare 60 kB of slashes would take milliseconds. */
const MAX_SUGGESTED_FOR = 256

function withOptions(allow: readonly string[]): readonly string[] {
  return [...new Set([...allow, 'OPTIONS'])].toSorted()
}

function isCacheable({ readsOnly }: CallableMethod, httpMethod: string): boolean {
  return readsOnly && (httpMethod === 'GET' || httpMethod === 'HEAD')
}

/** REST has one request for each call; streams of requests are for the other protocols. */
function refuseRequestStream(method: DescMethod): void {
  if (method.methodKind === 'unary' || method.methodKind === 'server_streaming') return
  throw new InvalidHttpRuleError(method, 'a method that takes a stream cannot be called by plain HTTP')
}

/**
 * Reads and decodes the request of a route.
 *
 * @throws TranscodingError; WaybillError UNSUPPORTED_CONTENT_TYPE, and those of readBody and decodeContent
 */
async function readRestRequest(
  exchange: Exchange,
  { route, variables }: MatchedRoute,
  maxBytes: number,
): Promise<Message> {
  const { headers, rawQuery } = exchange
  if (!exchange.hasBody) return route.decodeRequest({ variables, rawQuery })
  const contentType = headers['content-type']
  if (route.binding.body !== '' && contentType !== undefined && !isJson(contentType)) {
    throw waybillError('UNSUPPORTED_CONTENT_TYPE', { value: contentType, expected: 'application/json' })
  }
  const encoding = headers['content-encoding']
  findCompression(encoding)
  const sent = await readBody(exchange, maxBytes)
  const body = await decodeContent(sent, encoding, maxBytes)
  return route.decodeRequest({ variables, rawQuery, body })
}

function isJson(contentType: string): boolean {
  const media = readMediaType(contentType)
  return media?.type === 'application/json' && media.isUtf8
}
