import { create, type DescMethodStreaming, type Message } from '@bufbuild/protobuf'
import {
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type Interceptor,
} from '@connectrpc/connect'
import type { UniversalServerRequest } from '@connectrpc/connect/protocol'
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { headerOf, type IncomingCall, type Messages, type Protocol, toHeaders } from '../calls/call.ts'
import type { AnsweredStream, CallableMethod } from '../calls/call-core.ts'
import { encodeGrpcMessage, fromConnectError, toConnectError } from '../calls/error-mapping.ts'
import { readConnectTimeout, readGrpcTimeout } from '../calls/read-timeout.ts'
import { breakOffStuck } from '../http/break-off-stuck.ts'
import type { HeaderFields } from '../http/exchange.ts'
import type { Inbound } from '../http/http-answer.ts'
import { readGrpcForm } from './serve-grpc.ts'

/** Serves a method that takes a stream or answers with one to gRPC, gRPC-Web and Connect. */
export type StreamServer = (inbound: Inbound) => Promise<void>

export interface StreamOptions {
  readonly maxBodyBytes: number
  readonly compressMinBytes: number
  /** Fires when the listener is to stop: streams end then, since they might last for ever. */
  readonly stopping: AbortSignal
  /** How long a reader that has stopped has to make room for the end of a stream. */
  readonly drainMs: number
}

/** What connect carries from the request to the core. */
interface Carried {
  readonly inbound: Inbound
  /** Hears of the call's beginning. */
  readonly onCall: (answered: AnsweredStream) => void
}

const carriedKey = createContextKey<Carried | undefined>(undefined)

/**
 * Lets connect-node speak the protocols, with the call core as the one interceptor in the place of its handlers. It stands
 * before anything of the body is read, so what connect finds wrong with the body comes out of the core like everything else.
 */
export function createStreamServer(method: CallableMethod, options: StreamOptions): StreamServer {
  const handler = createHandler(method, options)
  return async (inbound) => {
    const { exchange, commonHeaders } = inbound
    const aborter = new AbortController()
    exchange.onHangUp(() => aborter.abort())
    let release = () => {}
    const onCall = ({ signal }: AnsweredStream) => {
      release = breakOffStuck(exchange, signal, options.drainMs)
    }
    const request: UniversalServerRequest = {
      httpVersion: exchange.httpVersion,
      method: exchange.method,
      // Only the query of a unary call by GET is read from it.
      url: `http://localhost${method.path}`,
      header: toHeaders(exchange.headers),
      // Left unread, it must not take the answer with it.
      body: exchange.body.iterator({ destroyOnReturn: false }),
      signal: aborter.signal,
      contextValues: createContextValues().set(carriedKey, { inbound, onCall }),
    }
    const { status, header, body, trailer } = await handler(request)
    const headers = { ...commonHeaders, ...fieldsOf(header) }
    const writer = exchange.begin({ status, headers, hasTrailers: trailer !== undefined })
    try {
      for await (const chunk of body ?? []) await writer.write(chunk)
      writer.end(trailer && trailersOf(trailer))
    } catch (error) {
      // The other side is gone; the core has heard of it as well and ends the call.
      if (!(error instanceof WaybillError)) throw error
    } finally {
      release()
    }
  }
}

/** Whether a method that takes a stream or answers with one can be called with this Content-Type. */
export function isStreamContentType(contentType: string): boolean {
  return (
    readGrpcForm(contentType)?.isText === false ||
    /^application\/connect\+(?:proto|json)\s*(?:;.*)?$/i.test(contentType)
  )
}

function createHandler(method: CallableMethod, { maxBodyBytes, compressMinBytes, stopping }: StreamOptions) {
  const desc = method.desc as DescMethodStreaming
  const callCore: Interceptor = (next) => async (request) => {
    const carried = request.contextValues.get(carriedKey)
    if (carried === undefined || !request.stream) throw new TypeError('only streams of this server come here')
    const incoming = incomingCall(carried.inbound, request.message, stopping)
    const answered = await method.callStream(incoming).catch((error: unknown) => {
      if (error instanceof WaybillError) carried.inbound.onRefused(error)
      return throwConnect(error)
    })
    carried.onCall(answered)
    // Connect's own way to the end, past an empty handler, for the header and trailer that it has prepared.
    const response = await next({ ...request, message: placeholder(desc) })
    if (!response.stream) throw new TypeError('a stream was answered with one message')
    return { ...response, message: throwingConnect(answered, response) }
  }
  const router = createConnectRouter({
    interceptors: [callCore],
    acceptCompression: [compressionGzip, compressionBrotli],
    compressMinBytes,
    readMaxBytes: maxBodyBytes,
    jsonOptions: { alwaysEmitImplicit: true, ignoreUnknownFields: false },
  })
  router.rpc(desc, emptyHandler(desc) as never)
  const [handler] = router.handlers
  if (handler === undefined) throw new TypeError(`${String(desc)} was not registered`)
  return handler
}

function incomingCall(inbound: Inbound, requests: Messages, stopping: AbortSignal): IncomingCall {
  const { exchange, requestId, clientAddress, reportLimit } = inbound
  const { headers } = exchange
  const judged = withReasons(requests)
  const protocol = protocolOf(headerOf(headers, 'content-type') ?? '')
  return {
    protocol,
    requestId,
    headers,
    clientAddress,
    reportLimit,
    readTimeoutMs: () => (protocol === 'connect' ? readConnectTimeout(headers) : readGrpcTimeout(headers)),
    readRequest: () => readOnly(judged),
    requests: judged,
    onHangUp: exchange.onHangUp,
    stopping,
  }
}

function protocolOf(contentType: string): Protocol {
  return readGrpcForm(contentType)?.protocol ?? 'connect'
}

/** What connect finds wrong with the requests has reasons before a handler sees it, which may throw errors of connect itself. */
async function* withReasons(requests: Messages): Messages {
  try {
    yield* requests
  } catch (error) {
    throw error instanceof ConnectError ? fromConnectError(error) : error
  }
}

/** The one message of a call that takes no stream. */
async function readOnly(requests: Messages): Promise<Message> {
  const messages: Message[] = []
  for await (const message of requests) {
    if (messages.push(message) > 1) throw waybillError('WRONG_REQUEST_COUNT', { count: 'more than one message' })
  }
  const [message] = messages
  if (message === undefined) throw waybillError('WRONG_REQUEST_COUNT', { count: 'no message' })
  return message
}

function throwConnect(error: unknown): never {
  throw error instanceof WaybillError ? toConnectError(error) : error
}

/** The messages with what the handler says beside them: connect sends the header with the first, the trailer after the last. */
async function* throwingConnect(
  { messages, header, trailer }: AnsweredStream,
  response: { readonly header: Headers; readonly trailer: Headers },
): Messages {
  let isFirst = true
  const addHeader = () => {
    if (isFirst) addAll(header(), response.header)
    isFirst = false
  }
  try {
    for await (const message of messages) {
      addHeader()
      yield message
    }
  } catch (error) {
    throwConnect(error)
  } finally {
    addHeader()
    addAll(trailer(), response.trailer)
  }
}

function addAll(given: Headers | undefined, headers: Headers): void {
  for (const [name, value] of given ?? []) headers.append(name, value)
}

/** In the place of a handler. */
function emptyHandler(desc: DescMethodStreaming) {
  return desc.methodKind === 'client_streaming' ? async () => create(desc.output) : none
}

async function* none(): Messages {}

async function* placeholder(desc: DescMethodStreaming): Messages {
  yield create(desc.input)
}

/** Connect escapes more of the message than grpc-js reads. */
function trailersOf(trailer: Headers): HeaderFields {
  const fields = fieldsOf(trailer)
  const message = fields['grpc-message']
  return message === undefined ? fields : { ...fields, 'grpc-message': encodeGrpcMessage(decodeURIComponent(message)) }
}

function fieldsOf(headers: Headers | undefined): HeaderFields {
  return headers === undefined ? {} : Object.fromEntries(headers)
}
