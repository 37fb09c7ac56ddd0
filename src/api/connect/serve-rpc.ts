import type { Registry } from '@bufbuild/protobuf'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { CallableMethod } from '../calls/call-core.ts'
import type { Exchange } from '../http/exchange.ts'
import { type Inbound, methodNotAllowed } from '../http/http-answer.ts'
import { compileCodec } from './message-codec.ts'
import { type RpcForm, readRpcForm, UNKNOWN_FORM } from './rpc-form.ts'
import {
  type ConnectUnaryServer,
  createConnectUnaryServer,
  isConnectGet,
  readConnectGet,
  readConnectPost,
} from './serve-connect.ts'
import { createGrpcUnaryServer, type GrpcUnaryServer, type UnaryOptions } from './serve-grpc.ts'
import { createStreamServer, type StreamOptions, type StreamServer } from './serve-streams.ts'

/** A method and the servers of its protocols: unary methods have two, streams one. */
type Endpoint = { readonly method: CallableMethod } & (
  | { readonly kind: 'unary'; readonly grpc: GrpcUnaryServer; readonly connect: ConnectUnaryServer }
  | { readonly kind: 'stream'; readonly stream: StreamServer }
)

export interface RpcOptions extends UnaryOptions, StreamOptions {
  /** By path. */
  readonly methods: ReadonlyMap<string, CallableMethod>
  /** Finds the types in google.protobuf.Any. */
  readonly registry: Registry
  /** Whether a path has a route of REST. */
  readonly isRestPath: (rawPath: string) => boolean
}

/** Serves all methods to gRPC, gRPC-Web and Connect. */
export interface RpcServer {
  /** The HTTP methods that a path takes, sorted; empty for a path of no method. */
  readonly allowedMethods: (rawPath: string) => readonly string[]
  /** The form in which a request is to be answered; undefined for a request that is no call of these protocols. */
  readonly formOf: (exchange: Exchange) => RpcForm | undefined
  /**
   * Answers a request.
   *
   * @param form - from `formOf`
   *
   * @throws WaybillError METHOD_NOT_FOUND, METHOD_NOT_ALLOWED, UNSUPPORTED_CONTENT_TYPE
   */
  readonly serve: (inbound: Inbound, form: RpcForm) => Promise<void>
}

export function createRpcServer(options: RpcOptions): RpcServer {
  const { methods, isRestPath } = options
  const endpoints = new Map([...methods.values()].map((method) => [method.path, createEndpoint(method, options)]))
  const servicePaths = new Set([...methods.values()].map(({ desc }) => `/${desc.parent.typeName}`))

  /** Whether a path is one that clients of RPC call, though it may name no method. */
  function isRpcPath(rawPath: string): boolean {
    const isWritten = rpcPathPattern.test(rawPath) || servicePaths.has(rawPath.slice(0, rawPath.lastIndexOf('/')))
    return isWritten && !isRestPath(rawPath)
  }

  return {
    allowedMethods(rawPath) {
      const endpoint = endpoints.get(rawPath)
      return endpoint === undefined ? [] : httpMethodsOf(endpoint)
    },
    formOf({ headers, rawPath }) {
      const contentType = headers['content-type']
      const form = contentType === undefined ? undefined : readRpcForm(contentType)
      if (endpoints.has(rawPath)) return form ?? UNKNOWN_FORM
      // JSON and protobuf without an envelope may be meant for REST as well.
      return form !== undefined && (form.isEnveloped || isRpcPath(rawPath)) ? form : undefined
    },
    async serve(inbound, form) {
      const endpoint = endpoints.get(inbound.exchange.rawPath)
      if (endpoint === undefined) throw waybillError('METHOD_NOT_FOUND', { path: inbound.exchange.rawPath })
      await serveEndpoint(inbound, endpoint, form)
    },
  }
}

function createEndpoint(method: CallableMethod, options: RpcOptions): Endpoint {
  const codec = compileCodec(method.desc, options.registry)
  if (method.desc.methodKind !== 'unary') {
    return { kind: 'stream', method, stream: createStreamServer(method, codec, options) }
  }
  const grpc = createGrpcUnaryServer(method, codec, options)
  return { kind: 'unary', method, grpc, connect: createConnectUnaryServer(method, codec, options) }
}

async function serveEndpoint(inbound: Inbound, endpoint: Endpoint, form: RpcForm): Promise<void> {
  const { exchange } = inbound
  if (endpoint.kind === 'unary' && isConnectGet(exchange, endpoint.method)) {
    return endpoint.connect(inbound, readConnectGet(exchange))
  }
  if (exchange.method !== 'POST') throw methodNotAllowed(exchange, httpMethodsOf(endpoint))
  // Connect has envelopes for methods with streams alone.
  const isOfKind = form.protocol !== 'connect' || form.isEnveloped === (endpoint.kind === 'stream')
  if (!form.isServed || !isOfKind) throw unsupportedContentType(exchange, endpoint)
  if (endpoint.kind === 'stream') return endpoint.stream(inbound, form)
  if (form.protocol !== 'connect') return endpoint.grpc(inbound, form)
  return endpoint.connect(inbound, readConnectPost(exchange, form.format))
}

function unsupportedContentType({ headers }: Exchange, { kind }: Endpoint): WaybillError {
  const value = headers['content-type'] ?? ''
  const ofConnect = kind === 'unary' ? 'application/' : 'application/connect+'
  const expected = `${ofConnect}json, ${ofConnect}proto, application/grpc or application/grpc-web`
  return waybillError('UNSUPPORTED_CONTENT_TYPE', { value, expected })
}

/** A path as clients of RPC write it: a service with its package, and a method. */
const rpcPathPattern = /^\/(?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*\/[A-Za-z_]\w*$/

function httpMethodsOf({ kind, method }: Endpoint): readonly string[] {
  const isReadByGet = kind === 'unary' && method.readsOnly
  return isReadByGet ? ['GET', 'HEAD', 'OPTIONS', 'POST'] : ['OPTIONS', 'POST']
}
