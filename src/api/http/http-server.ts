import { randomUUID } from 'node:crypto'
import type { Logger } from '../../domain/logger.ts'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { headerOf } from '../calls/call.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import { codeName, toWaybillError, wireFormOfError } from '../calls/error-mapping.ts'
import { logOutcome } from '../calls/log-calls.ts'
import type { CountOpen } from '../calls/require-caller.ts'
import {
  type ConnectUnaryServer,
  isConnectGet,
  readConnectFormat,
  readConnectGet,
  readConnectPost,
  sendConnectError,
} from '../connect/serve-connect.ts'
import { type GrpcUnaryServer, readGrpcForm, sendGrpcError } from '../connect/serve-grpc.ts'
import { isStreamContentType, type StreamServer } from '../connect/serve-streams.ts'
import { type AbuseCounter, costOfRefusal } from '../listener/abuse.ts'
import type { RestServer } from '../rest/serve-rest.ts'
import type { ReadClientAddress } from './client-address.ts'
import { type CorsPolicy, preflightHeaders, privateHeaders } from './cors.ts'
import type { Exchange, HeaderFields } from './exchange.ts'
import { type Inbound, sendHttpError } from './http-answer.ts'
import { reportLimitIn } from './rate-limit-headers.ts'

/** A method and the servers of its protocols: unary methods have two, streams one. */
export type RpcEndpoint =
  | {
      readonly kind: 'unary'
      readonly method: CallableMethod
      readonly grpc: GrpcUnaryServer
      readonly connect: ConnectUnaryServer
    }
  | { readonly kind: 'stream'; readonly method: CallableMethod; readonly stream: StreamServer }

export interface HttpServerOptions {
  readonly rest: RestServer
  /** By path. */
  readonly endpoints: ReadonlyMap<string, RpcEndpoint>
  readonly logger: Logger
  /** Whether this process can answer; nothing of the reason goes out. */
  readonly isReady: () => Promise<boolean>
  /** Counts what is no call: preflights, and paths and methods that there are not. Not health. */
  readonly countOpen: CountOpen
  readonly abuse: Pick<AbuseCounter, 'charge'>
  readonly readClientAddress: ReadClientAddress
  readonly cors: CorsPolicy
  /** Which hosts may be asked for, by `Host` or `:authority`; all by default. */
  readonly isHostAllowed: (authority: string) => boolean
  /** Request line and headers together. HTTP/1.1 keeps to it by itself. */
  readonly maxHeaderBytes: number
  /** What every answer carries beside the rest. */
  readonly extraHeaders: HeaderFields
}

/** Answers every request of the port. Never rejects. */
export type RequestHandler = (exchange: Exchange) => Promise<void>

export function createRequestHandler(options: HttpServerOptions): RequestHandler {
  const { rest, endpoints, logger } = options
  const servicePaths = new Set([...endpoints.values()].map(({ method }) => `/${method.desc.parent.typeName}`))

  async function answer(inbound: Inbound): Promise<void> {
    const { exchange } = inbound
    refuseLargeHeaders(exchange, options.maxHeaderBytes)
    if (!options.isHostAllowed(exchange.authority)) {
      throw waybillError('HOST_NOT_ALLOWED', { value: exchange.authority })
    }
    if (exchange.method === 'CONNECT') throw methodNotAllowed(exchange, rest.httpMethods)
    refuseFragment(exchange)
    const endpoint = endpoints.get(exchange.rawPath)
    if (exchange.method === 'OPTIONS') return sendOptions(inbound, endpoint)
    if (healthPaths.has(exchange.rawPath)) return sendHealth(inbound, options.isReady)
    if (endpoint !== undefined) return serveRpc(inbound, endpoint)
    if (isRpcCall(exchange)) throw waybillError('METHOD_NOT_FOUND', { path: exchange.rawPath })
    return rest.serve(inbound)
  }

  function sendOptions(inbound: Inbound, endpoint: RpcEndpoint | undefined): void {
    const { exchange, commonHeaders } = inbound
    const allow = methodsOf(exchange.rawPath, endpoint)
    if (allow.length === 0) throw rest.notFound(exchange.rawPath)
    options.countOpen(inbound.clientAddress(), inbound.reportLimit)
    const preflight = preflightHeaders(options.cors, exchange.headers, allow)
    exchange.send({ status: 204, headers: { ...commonHeaders, ...preflight, allow: allow.join(', ') } })
  }

  function methodsOf(rawPath: string, endpoint: RpcEndpoint | undefined): readonly string[] {
    if (rawPath === '*') return rest.httpMethods
    if (endpoint !== undefined) return rpcMethods(endpoint)
    return healthPaths.has(rawPath) ? healthMethods : rest.allowedMethods(rawPath)
  }

  /** In the form that the caller will understand. */
  function sendError(inbound: Inbound, error: WaybillError): void {
    const { exchange } = inbound
    const form = readGrpcForm(exchange.headers['content-type'] ?? '')
    if (form !== undefined) sendGrpcError(inbound, form, error)
    else if (isConnectCall(exchange)) sendConnectError(inbound, error)
    else sendHttpError(inbound, error)
  }

  function isRpcCall(exchange: Exchange): boolean {
    return exchange.headers['content-type'] !== undefined && (isGrpc(exchange) || isConnectCall(exchange))
  }

  /** Whether a call of Connect is meant, be it of a method that there is or not. */
  function isConnectCall({ headers, rawPath }: Exchange): boolean {
    if (readConnectFormat(headers['content-type'] ?? '') === undefined) return false
    return endpoints.has(rawPath) || (isRpcPath(rawPath) && rest.allowedMethods(rawPath).length === 0)
  }

  function isRpcPath(rawPath: string): boolean {
    return rpcPathPattern.test(rawPath) || servicePaths.has(rawPath.slice(0, rawPath.lastIndexOf('/')))
  }

  /** What was no call counts against its address, and is refused like one. */
  function countRefused(inbound: Inbound, error: WaybillError): WaybillError {
    if (error.reason === 'RATE_LIMITED' || wireFormOfError(error).httpStatus === 500) return error
    try {
      options.countOpen(inbound.clientAddress(), inbound.reportLimit)
      return error
    } catch (limited) {
      return toWaybillError(limited, () => undefined)
    }
  }

  /** Nothing may come out of here any more; what was begun and cannot be ended is broken off. */
  function answerLast(inbound: Inbound, error: WaybillError): void {
    try {
      sendError(inbound, error)
    } catch (err) {
      logger.error({ requestId: inbound.requestId, err }, 'no answer could be sent')
    }
    inbound.exchange.abandon()
  }

  return async (exchange) => {
    const startMs = performance.now()
    const requestId = requestIdOf(exchange)
    const grpcHeaders = { 'x-request-id': requestId, ...options.extraHeaders }
    const commonHeaders = {
      ...grpcHeaders,
      ...privateHeaders(options.cors),
      ...options.cors.headersFor(headerOf(exchange.headers, 'origin')),
    }
    const reportLimit = reportLimitIn(commonHeaders, grpcHeaders)
    let isKeyless = false
    const inbound: Inbound = {
      exchange,
      requestId,
      commonHeaders,
      grpcHeaders,
      clientAddress: () => options.readClientAddress(exchange.peerAddress(), exchange.headers),
      reportLimit(state) {
        isKeyless = state?.policy === 'address'
        reportLimit(state)
      },
      onRefused: (error) => options.abuse.charge(exchange.peerAddress(), costOfRefusal(error, isKeyless)),
    }
    try {
      await answer(inbound)
    } catch (thrown) {
      // Not a call, or one whose answer could not be written: the core has no line of it.
      const error = countRefused(
        inbound,
        toWaybillError(thrown, () => undefined),
      )
      const fields = {
        requestId,
        httpMethod: exchange.method,
        path: exchange.rawPath.slice(0, 200),
        code: codeName(wireFormOfError(error).code),
        reason: error.reason,
        durationMs: Math.round((performance.now() - startMs) * 100) / 100,
      }
      logOutcome(logger, fields, error, 'request')
      answerLast(inbound, error)
    }
  }
}

function methodNotAllowed({ method, rawPath, authority }: Exchange, allow: readonly string[]): WaybillError {
  const path = method === 'CONNECT' ? authority : rawPath
  return waybillError('METHOD_NOT_ALLOWED', { method, path, allow: allow.join(', ') })
}

/** A target has no fragment: clients that send one have left a `#` in a value as it is, and whatever follows would be lost. */
function refuseFragment({ rawPath, rawQuery }: Exchange): void {
  if (!rawPath.includes('#') && !rawQuery.includes('#')) return
  throw waybillError('MALFORMED_URL', { detail: 'it has a #, which is written %23 in a value' })
}

function refuseLargeHeaders({ httpVersion, headers }: Exchange, limit: number): void {
  if (httpVersion === '1.1') return
  let bytes = 0
  for (const name in headers) bytes += name.length + (headers[name]?.length ?? 0)
  if (bytes > limit) throw waybillError('HEADERS_TOO_LARGE', { limit })
}

/** A path as clients of RPC write it: a service with its package, and a method. */
const rpcPathPattern = /^\/(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*\/[A-Za-z_]\w*$/

/** Request ids that callers may choose: what can stand in logs and headers without harm. */
const saneRequestId = /^[\w.:/+=@-]{1,128}$/

function requestIdOf({ headers }: Exchange): string {
  const sent = headers['x-request-id']
  return typeof sent === 'string' && saneRequestId.test(sent) ? sent : randomUUID()
}

function isGrpc({ headers }: Exchange): boolean {
  return readGrpcForm(headers['content-type'] ?? '') !== undefined
}

async function serveRpc(inbound: Inbound, endpoint: RpcEndpoint): Promise<void> {
  const { exchange } = inbound
  const contentType = exchange.headers['content-type'] ?? ''
  if (endpoint.kind === 'unary' && isConnectGet(exchange, endpoint.method)) {
    return endpoint.connect(inbound, readConnectGet(exchange))
  }
  if (exchange.method !== 'POST') {
    throw methodNotAllowed(exchange, rpcMethods(endpoint))
  }
  if (endpoint.kind === 'stream') {
    if (!isStreamContentType(contentType)) throw unsupportedContentType(contentType, streamTypes)
    return endpoint.stream(inbound)
  }
  const form = readGrpcForm(contentType)
  if (form !== undefined) return endpoint.grpc(inbound, form)
  const format = readConnectFormat(contentType)
  if (format !== undefined) return endpoint.connect(inbound, readConnectPost(exchange, format))
  throw unsupportedContentType(contentType, unaryTypes)
}

const unaryTypes = 'application/json, application/proto, application/grpc or application/grpc-web'
const streamTypes = 'application/connect+json, application/connect+proto, application/grpc or application/grpc-web'

function unsupportedContentType(value: string, expected: string): WaybillError {
  return waybillError('UNSUPPORTED_CONTENT_TYPE', { value, expected })
}

function rpcMethods({ kind, method }: RpcEndpoint): readonly string[] {
  const readsOnly = kind === 'unary' && method.readsOnly
  return readsOnly ? ['GET', 'HEAD', 'OPTIONS', 'POST'] : ['OPTIONS', 'POST']
}

export const healthPaths: ReadonlySet<string> = new Set(['/healthz', '/readyz'])
const healthMethods = ['GET', 'HEAD', 'OPTIONS']

async function sendHealth({ exchange, commonHeaders }: Inbound, isReady: () => Promise<boolean>): Promise<void> {
  if (exchange.method !== 'GET' && exchange.method !== 'HEAD') {
    throw methodNotAllowed(exchange, healthMethods)
  }
  const isGood = exchange.rawPath === '/healthz' || (await isReady())
  exchange.send({
    status: isGood ? 200 : 503,
    headers: { ...commonHeaders, 'cache-control': 'no-store', 'content-type': 'application/json' },
    body: JSON.stringify({ status: isGood ? 'ok' : 'unavailable' }),
  })
}
