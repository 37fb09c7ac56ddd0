import type { Message, Registry } from '@bufbuild/protobuf'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { headerOf, type IncomingCall, type Messages } from '../calls/call.ts'
import type { CallableMethod, StreamAnswer } from '../calls/call-core.ts'
import { breakOffStuck, type Exchange } from '../http/exchange.ts'
import {
  type ContentEncoding,
  chooseEncoding,
  compress,
  fieldsOf,
  type Inbound,
  methodNotAllowed,
  UNBUFFERED,
} from '../http/http-answer.ts'
import { findCompression, readPieces } from '../http/request-body.ts'
import { compileCodec, type MessageCodec } from '../messages/message-codec.ts'
import { connectEnd, grpcTrailers, rpcHeaders, sendRpcError } from './call-outcome.ts'
import { maxBodyBytesOf, openEnvelopes, sealEnvelope, sealWebTrailers } from './envelope.ts'
import { type RpcForm, readRpcForm, readTimeout, UNKNOWN_FORM } from './rpc-form.ts'
import {
  type Endpoint,
  formOfConnectGet,
  isConnectGet,
  readConnectGet,
  refuseOtherVersions,
  serveUnary,
  type UnaryOptions,
} from './serve-unary.ts'

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
  if (isUnary && isConnectGet(exchange, method)) {
    return serveUnary(endpoint, inbound, formOfConnectGet(exchange), readConnectGet)
  }
  if (exchange.method !== 'POST') throw methodNotAllowed(exchange, httpMethodsOf(method))
  // Connect has envelopes for methods with streams alone.
  const isOfKind = form.protocol !== 'connect' || form.isEnveloped === !isUnary
  if (!form.isServed || !isOfKind) throw unsupportedContentType(exchange, isUnary)
  return isUnary ? serveUnary(endpoint, inbound, form) : serveStream(endpoint, inbound, form)
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

interface StreamOptions {
  /** Of one message that callers send. */
  readonly maxStreamMessageBytes: number
  readonly compressMinBytes: number
  /** Aborts when the listener is to stop. Streams end then, since they might last for hours. */
  readonly stopping: AbortSignal
  /** How long a reader that takes nothing has to make space for the end of a stream. */
  readonly drainMs: number
}

/** Answers a call of a method that takes or answers a stream by gRPC, gRPC-Web or Connect. */
async function serveStream(endpoint: Endpoint<StreamOptions>, inbound: Inbound, form: RpcForm): Promise<void> {
  const { method, options } = endpoint
  let answer: StreamAnswer
  try {
    answer = await method.callStream(incomingCall(endpoint, inbound, form))
  } catch (error) {
    if (!(error instanceof WaybillError)) throw error
    sendRpcError(inbound, form, error)
    return
  }
  const release = breakOffStuck(inbound.exchange, answer.signal, options.drainMs)
  try {
    await sendAnswers(answer, { ...endpoint, inbound, form })
  } finally {
    release()
  }
}

function incomingCall({ codec, options }: Endpoint<StreamOptions>, inbound: Inbound, form: RpcForm): IncomingCall {
  const { maxStreamMessageBytes, stopping } = options
  const { headers } = inbound
  const requests = readRequests(inbound, form, { decode: codec.decode, maxBytes: maxStreamMessageBytes })
  return {
    ...inbound,
    protocol: form.protocol,
    readTimeoutMs: () => readTimeout(form, headers),
    readRequest: async () => {
      // Known before the body is asked for.
      const isTooLarge = Number(headers['content-length']) > maxBodyBytesOf(form, maxStreamMessageBytes)
      if (isTooLarge) throw waybillError('BODY_TOO_LARGE', { limit: maxStreamMessageBytes })
      return readOnly(requests)
    },
    requests,
    stopping,
  }
}

async function* readRequests(
  { exchange }: Inbound,
  form: RpcForm,
  { decode, maxBytes }: { readonly decode: MessageCodec['decode']; readonly maxBytes: number },
): Messages {
  const isConnect = form.protocol === 'connect'
  if (isConnect) refuseOtherVersions(exchange)
  const encoding = headerOf(exchange.headers, isConnect ? 'connect-content-encoding' : 'grpc-encoding') ?? undefined
  // Checked even if no message is compressed, so that the caller learns of it with its first call.
  findCompression(encoding)
  const terms = { isText: form.isText, encoding, maxBytes }
  for await (const message of openEnvelopes(readPieces(exchange), terms)) yield decode(message, form.format)
}

/** The one request of a call that takes no stream. */
async function readOnly(requests: Messages): Promise<Message> {
  let only: Message | undefined
  for await (const request of requests) {
    if (only !== undefined) throw waybillError('WRONG_REQUEST_COUNT', { count: 'more than one message' })
    only = request
  }
  if (only === undefined) throw waybillError('WRONG_REQUEST_COUNT', { count: 'no message' })
  return only
}

interface AnswerTerms extends Endpoint<StreamOptions> {
  readonly inbound: Inbound
  readonly form: RpcForm
}

/** The headers are sent with the first message, so that the handler may set them until then. */
async function sendAnswers({ answers, header, trailer }: StreamAnswer, terms: AnswerTerms): Promise<void> {
  const { inbound, form } = terms
  let writer: MessageWriter | undefined
  try {
    for await (const answer of answers) {
      writer ??= beginAnswers(header(), terms)
      await writer.write(answer)
    }
    writer ??= beginAnswers(header(), terms)
    await writer.end(trailer())
  } catch (thrown) {
    const isKnown = thrown instanceof WaybillError
    if (writer === undefined) {
      if (!isKnown) throw thrown
      return sendRpcError(inbound, form, thrown, { header: header(), trailer: trailer() })
    }
    const error = isKnown ? thrown : waybillError('INTERNAL', {}, { cause: thrown })
    inbound.onRefused(error)
    // If the caller is gone, nothing more can be written. The call core has logged the call.
    await writer.end(trailer(), error).catch(() => {})
    // A message that could not be encoded: the call core does not know of it, so it is logged further up.
    if (!isKnown) throw thrown
  }
}

type MessageWriter = ReturnType<typeof beginAnswers>

function beginAnswers(header: Headers | undefined, { inbound, form, codec, options }: AnswerTerms) {
  const encoding = answerEncoding(inbound, form)
  const encodingHeader = form.protocol === 'connect' ? 'connect-content-encoding' : 'grpc-encoding'
  const ofStream = { ...UNBUFFERED, ...(encoding && { [encodingHeader]: encoding }) }
  const headers = rpcHeaders(inbound, form, fieldsOf(header), ofStream)
  const writer = inbound.exchange.begin({ status: 200, headers, hasTrailers: form.protocol === 'grpc' })
  const write = (envelope: Uint8Array) =>
    writer.write(form.isText ? Buffer.from(Buffer.from(envelope).toString('base64')) : envelope)
  return {
    /** Resolves when there is space for more; rejects when the caller is gone. */
    async write(answer: object): Promise<void> {
      const encoded = codec.encode(answer, form.format)
      const bytes = typeof encoded === 'string' ? Buffer.from(encoded) : encoded
      const isCompressed = encoding !== undefined && bytes.length >= options.compressMinBytes
      await write(sealEnvelope(isCompressed ? await compress(bytes, encoding) : bytes, isCompressed))
    },
    async end(trailer: Headers | undefined, error?: WaybillError): Promise<void> {
      if (form.protocol === 'connect') await write(connectEnd(trailer, error))
      else if (form.protocol === 'grpc-web') await write(sealWebTrailers(grpcTrailers(trailer, error)))
      writer.end(form.protocol === 'grpc' ? grpcTrailers(trailer, error) : undefined)
    },
  }
}

/** Chosen among the compressions that the caller accepts; if it names none, that of its requests. */
function answerEncoding({ exchange: { headers } }: Inbound, { protocol }: RpcForm): ContentEncoding | undefined {
  const prefix = protocol === 'connect' ? 'connect' : 'grpc'
  const stated = protocol === 'connect' ? 'connect-content-encoding' : 'grpc-encoding'
  const accepted = headerOf(headers, `${prefix}-accept-encoding`) ?? headerOf(headers, stated)
  return chooseEncoding(accepted ?? undefined)
}
