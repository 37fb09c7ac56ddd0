import type { DescMethod } from '@bufbuild/protobuf'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { InvalidHttpRuleError, type Route, type Transcoder } from '../../transcoding/transcoder.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import type { HeaderFields } from '../http/exchange.ts'
import { encodeBody, type Inbound, matchesEtag, sendHttpError, weakEtagOf } from '../http/http-answer.ts'
import { fromTranscodingError } from '../messages/request-errors.ts'
import { findNearestLiteralPath, findNearestPath } from './nearest-path.ts'
import { readRestRequest, refuseOtherThanJson } from './read-rest-request.ts'
import { createRestStreamServer, type RestCall, type RestStreamOptions } from './serve-rest-stream.ts'

export interface RestOptions extends RestStreamOptions {
  readonly transcoder: Transcoder
  /** The methods by path, as the call core gives them. */
  readonly methods: ReadonlyMap<string, CallableMethod>
  readonly maxBodyBytes: number
  readonly compressMinBytes: number
  /** What there is beside the routes, to be suggested for a path that is near it. */
  readonly otherPaths: readonly string[]
}

/** Serves plain JSON over HTTP by the google.api.http options of the methods. */
export interface RestServer {
  /**
   * Answers a request.
   *
   * @throws WaybillError ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED or what was wrong with the path, when it is no call of a method
   */
  readonly serve: (inbound: Inbound) => Promise<void>
  /** The methods that a path takes, sorted; empty for a path that there is not. */
  readonly allowedMethods: (rawPath: string) => readonly string[]
  /** The methods of all routes, and those that other paths take; sorted. */
  readonly httpMethods: readonly string[]
  /** ROUTE_NOT_FOUND with the nearest path that there is. */
  readonly notFound: (rawPath: string) => WaybillError
}

export function createRestServer(options: RestOptions): RestServer {
  const { transcoder, methods, otherPaths } = options
  const templates = transcoder.routes.map(({ template }) => template)
  const routePaths = [...new Set(transcoder.routes.map(writtenPath))]
  const routeMethods = transcoder.routes.map(({ binding }) => binding.httpMethod).filter((method) => method !== '*')
  const serveStream = createRestStreamServer(options)
  for (const { method } of transcoder.routes) refuseRequestStream(method)

  function allowedMethods(rawPath: string): readonly string[] {
    // No route has this method, so the answer names those that there are.
    const match = transcoder.match('OPTIONS', rawPath)
    return match.kind === 'method_not_allowed' ? withOptions(match.allow) : []
  }

  function notFound(rawPath: string): WaybillError {
    const isShort = rawPath.length <= LONGEST_SUGGESTED_FOR
    const nearest = isShort ? findNearest(rawPath) : undefined
    const suggestion = nearest === undefined ? `use one of: ${routePaths.join(', ')}` : `did you mean ${nearest}?`
    return waybillError('ROUTE_NOT_FOUND', { path: rawPath, suggestion })
  }

  function findNearest(rawPath: string): string | undefined {
    return findNearestPath(rawPath, templates) ?? findNearestLiteralPath(rawPath, otherPaths)
  }

  return {
    allowedMethods,
    httpMethods: withOptions([...routeMethods, 'GET', 'HEAD', 'POST']),
    notFound,
    async serve(inbound) {
      const { method: httpMethod, rawPath } = inbound.exchange
      const match = transcoder.match(httpMethod, rawPath)
      switch (match.kind) {
        case 'not_found':
          throw notFound(rawPath)
        case 'method_not_allowed':
          throw waybillError('METHOD_NOT_ALLOWED', {
            method: httpMethod,
            path: rawPath,
            allow: withOptions(match.allow).join(', '),
          })
        case 'malformed':
          throw fromTranscodingError(match.error)
        case 'match': {
          const method = methods.get(pathOf(match.route.method))
          if (method === undefined) throw new TypeError(`${String(match.route.method)} has a route and no handler`)
          const readRequest = () => readRestRequest(inbound.exchange, match, options.maxBodyBytes)
          const call = { method, route: match.route, readRequest }
          await (method.desc.methodKind === 'unary' ? serveCall(inbound, call) : serveStream(inbound, call))
        }
      }
    },
  }

  async function serveCall(inbound: Inbound, { method, route, readRequest }: RestCall): Promise<void> {
    const { exchange, requestId } = inbound
    try {
      const { plain, header } = await method.callUnary({
        protocol: 'rest',
        requestId,
        headers: exchange.headers,
        clientAddress: inbound.clientAddress,
        reportLimit: inbound.reportLimit,
        readTimeoutMs: noTimeout,
        readRequest: async () => {
          refuseOtherThanJson(exchange.headers.accept)
          return readRequest()
        },
        onHangUp: exchange.onHangUp,
      })
      await sendMessage(inbound, { method, route }, plain, header)
    } catch (error) {
      if (!(error instanceof WaybillError)) throw error
      sendHttpError(inbound, error)
    }
  }

  async function sendMessage(
    { exchange, commonHeaders }: Inbound,
    { method, route }: { readonly method: CallableMethod; readonly route: Route },
    answer: object,
    given: Headers | undefined,
  ): Promise<void> {
    const cacheable = isCacheable(method, exchange.method)
    const encodeStable = cacheable ? route.encodeStable : undefined
    const { text, stable = text } = encodeStable?.(answer) ?? { text: route.encodeResponse(answer) }
    const headers: HeaderFields = {
      ...commonHeaders,
      ...(given && Object.fromEntries(given)),
      'content-type': 'application/json',
    }
    if (cacheable) {
      const etag = weakEtagOf(stable)
      headers.etag = etag
      if (matchesEtag(exchange.headers['if-none-match'], etag)) {
        exchange.send({ status: 304, headers })
        return
      }
    }
    const acceptEncoding = exchange.headers['accept-encoding']
    const encoded = await encodeBody(text, acceptEncoding?.toString(), options.compressMinBytes)
    exchange.send({ status: 200, headers: { ...headers, ...encoded.headers }, body: encoded.body })
  }
}

/** What is much longer than all paths that there are is no slip of the pen: to cut up 60 kB of slashes takes milliseconds. */
const LONGEST_SUGGESTED_FOR = 256

function noTimeout(): undefined {}

function pathOf({ parent, name }: DescMethod): string {
  return `/${parent.typeName}/${name}`
}

function withOptions(allow: readonly string[]): readonly string[] {
  return [...new Set([...allow, 'OPTIONS'])].toSorted()
}

function isCacheable({ readsOnly }: CallableMethod, httpMethod: string): boolean {
  return readsOnly && (httpMethod === 'GET' || httpMethod === 'HEAD')
}

/** JSON over HTTP has one request; a stream of them is for the other protocols. */
function refuseRequestStream(method: DescMethod): void {
  if (method.methodKind === 'unary' || method.methodKind === 'server_streaming') return
  throw new InvalidHttpRuleError(method, 'a method that takes a stream cannot be called by plain HTTP')
}

/** The path with the names of its variables as they are written in JSON and in the documentation. */
function writtenPath({ binding, method }: Route): string {
  const jsonNames = new Map(method.input.fields.map(({ name, jsonName }) => [name, jsonName]))
  return binding.path.replaceAll(/(?<=\{)\w+/g, (name) => jsonNames.get(name) ?? name)
}
