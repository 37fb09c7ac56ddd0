import type { Registry } from '@bufbuild/protobuf'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import type { Exchange } from '../http/exchange.ts'
import { type Inbound, methodNotAllowed } from '../http/http-answer.ts'
import { compileCodec, type Endpoint } from './message-codec.ts'
import { type RpcForm, readRpcForm, UNKNOWN_FORM } from './rpc-form.ts'
import { isConnectGet, readConnectGet, readConnectPost, serveConnectUnary } from './serve-connect.ts'
import { serveGrpcUnary, type UnaryOptions } from './serve-grpc.ts'
import { type StreamOptions, serveStream } from './serve-streams.ts'

export interface RpcOptions extends UnaryOptions, StreamOptions {
  /** By path. */
  readonly methods: ReadonlyMap<string, CallableMethod>
  /** Finds the types in google.protobuf.Any. */
  readonly registry: Registry
  /** Whether a path has a route of REST. */
  readonly isRestPath: (rawPath: string) => boolean
}

export type RpcServer = ReturnType<typeof createRpcServer>

/** Makes what serves all methods to gRPC, gRPC-Web and Connect. */
export function createRpcServer(options: RpcOptions) {
  const { methods, registry, isRestPath } = options
  const endpoints = new Map(
    [...methods.values()].map((method) => [
      method.path,
      { method, codec: compileCodec(method.desc, registry), options },
    ]),
  )
  const servicePaths = new Set([...methods.values()].map(({ desc }) => `/${desc.parent.typeName}`))

  /** Whether a path is one that clients of RPC call, though it may name no method. */
  function isRpcPath(rawPath: string): boolean {
    const isWritten = rpcPathPattern.test(rawPath) || servicePaths.has(rawPath.slice(0, rawPath.lastIndexOf('/')))
    return isWritten && !isRestPath(rawPath)
  }

  return {
    /** The HTTP methods that a path takes, sorted; empty for a path of no method. */
    allowedMethods(rawPath: string): readonly string[] {
      const method = methods.get(rawPath)
      return method === undefined ? [] : httpMethodsOf(method)
    },
    /** The form in which a request is to be answered; undefined for a request that is no call of these protocols. */
    formOf({ headers, rawPath }: Exchange): RpcForm | undefined {
      const contentType = headers['content-type']
      const form = contentType === undefined ? undefined : readRpcForm(contentType)
      if (endpoints.has(rawPath)) return form ?? UNKNOWN_FORM
      // JSON and protobuf without an envelope may be meant for REST as well.
      return form !== undefined && (form.isEnveloped || isRpcPath(rawPath)) ? form : undefined
    },
    /**
     * Answers a request.
     *
     * @param form - from `formOf`
     * @throws WaybillError METHOD_NOT_FOUND, METHOD_NOT_ALLOWED, UNSUPPORTED_CONTENT_TYPE
     */
    async serve(inbound: Inbound, form: RpcForm): Promise<void> {
      const endpoint = endpoints.get(inbound.exchange.rawPath)
      if (endpoint === undefined) throw waybillError('METHOD_NOT_FOUND', { path: inbound.exchange.rawPath })
      await serveEndpoint(inbound, endpoint, form)
    },
  }
}

async function serveEndpoint(inbound: Inbound, endpoint: Endpoint<RpcOptions>, form: RpcForm): Promise<void> {
  const { exchange } = inbound
  const { method } = endpoint
  const isUnary = method.desc.methodKind === 'unary'
  if (isUnary && isConnectGet(exchange, method)) return serveConnectUnary(endpoint, inbound, readConnectGet(exchange))
  if (exchange.method !== 'POST') throw methodNotAllowed(exchange, httpMethodsOf(method))
  // Connect has envelopes for methods with streams alone.
  const isOfKind = form.protocol !== 'connect' || form.isEnveloped === !isUnary
  if (!form.isServed || !isOfKind) throw unsupportedContentType(exchange, isUnary)
  if (!isUnary) return serveStream(endpoint, inbound, form)
  if (form.protocol !== 'connect') return serveGrpcUnary(endpoint, inbound, form)
  return serveConnectUnary(endpoint, inbound, readConnectPost(exchange, form.format))
}

function unsupportedContentType({ headers }: Exchange, isUnary: boolean): WaybillError {
  const value = headers['content-type'] ?? ''
  const ofConnect = isUnary ? 'application/' : 'application/connect+'
  const expected = `${ofConnect}json, ${ofConnect}proto, application/grpc or application/grpc-web`
  return waybillError('UNSUPPORTED_CONTENT_TYPE', { value, expected })
}

/** A path as clients of RPC write it: a service with its package, and a method. */
const rpcPathPattern = /^\/(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*\/[A-Za-z_]\w*$/

function httpMethodsOf({ desc, readsOnly }: CallableMethod): readonly string[] {
  return desc.methodKind === 'unary' && readsOnly ? ['GET', 'HEAD', 'OPTIONS', 'POST'] : ['OPTIONS', 'POST']
}
