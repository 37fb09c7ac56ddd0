import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from 'node:http2'
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Logger } from '../domain/logger.ts'
import { type WaybillError, waybillError } from '../errors.ts'
import { codeName, httpErrorBody, wireFormOf } from './error-mapping.ts'
import { type HeaderFields, http1Exchange, http2Exchange } from './exchange.ts'
import { errorHeaders } from './http-answer.ts'
import type { RequestHandler } from './http-server.ts'

/** Bounds on what a connection may cost before and around its calls. */
export interface ConnectionLimits {
  /** Request line and headers together. */
  readonly maxHeaderBytes: number
  /** From the connection to its first bytes, and to the end of the headers. */
  readonly headersTimeoutMs: number
  /** From the first byte of an HTTP/1.1 request to its last. Over HTTP/2 the deadline of the call bounds its body. */
  readonly requestTimeoutMs: number
  /** Without any byte in either direction, in the middle of a request as well. */
  readonly idleTimeoutMs: number
  /** At once on one HTTP/2 connection. */
  readonly maxStreams: number
}

export const DEFAULT_CONNECTION_LIMITS: ConnectionLimits = {
  maxHeaderBytes: 64 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 120_000,
  maxStreams: 256,
}

export interface ListenerOptions {
  readonly host: string
  /** 0 for any that is free. */
  readonly port: number
  readonly handle: RequestHandler
  /** What the answers to that carry which is no request. */
  readonly commonHeaders: HeaderFields
  /** The methods that are of use here; sorted. */
  readonly httpMethods: readonly string[]
  readonly limits: ConnectionLimits
  readonly logger: Logger
  /** Fired by stop, before anything is closed. */
  readonly stopping: AbortController
}

export interface Listener {
  readonly host: string
  readonly port: number
  /** `http://127.0.0.1:8080` */
  readonly url: string
  /**
   * Stops: no new connection, no new request; what is in flight gets its answer; what is left after the grace period is cut
   * off. Resolves when every connection is closed. May be called again.
   */
  readonly stop: (options: { readonly graceMs: number }) => Promise<void>
}

/** How long a connection may be silent before the kernel asks whether the other side is still there. */
const KEEP_ALIVE_DELAY_MS = 30_000

/**
 * Listens on one plaintext port for HTTP/1.1 and HTTP/2 with prior knowledge. The first four bytes tell which: no HTTP/1.1
 * request begins with `PRI `.
 *
 * @throws Error of node:net when the port cannot be had
 */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const { limits, stopping } = options
  const http1 = createHttp1(options)
  const http2 = createHttp2(options)
  const sessions = new Set<ServerHttp2Session>()
  http2.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    if (stopping.signal.aborted) session.close()
  })

  const sockets = new Set<Socket>()
  /** Connections that have not said yet what they speak. */
  const undecided = new Set<Socket>()
  // Half open, since HTTP/1.1 clients may close their side behind their last request. Kept alive, so that peers that vanish
  // without a word are noticed.
  const netOptions = { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS }
  const port = createNetServer(netOptions, (socket) => {
    sockets.add(socket)
    undecided.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      undecided.delete(socket)
    })
    decideProtocol(socket, limits.headersTimeoutMs, (protocol) => {
      undecided.delete(socket)
      // Over HTTP/2 nobody closes one side alone: the client is gone, and the session would go on without it.
      if (protocol === 'http2') socket.allowHalfOpen = false
      const server = protocol === 'http2' ? http2 : http1
      server.emit('connection', socket)
    })
  })
  port.listen(options.port, options.host)
  await once(port, 'listening')
  const address = port.address() as AddressInfo

  async function stop(graceMs: number): Promise<void> {
    stopping.abort()
    port.close()
    for (const socket of undecided) socket.destroy()
    for (const session of sessions) session.close()
    http1.closeIdleConnections()
    const timer = setTimeout(() => destroyAll(sockets), graceMs)
    await Promise.all([...sockets].map((socket) => new Promise((resolve) => socket.once('close', resolve))))
    clearTimeout(timer)
    // Never listened, so this only ends its timers.
    http1.close(() => {})
  }

  let stopped: Promise<void> | undefined
  return {
    host: address.address,
    port: address.port,
    url: `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`,
    stop({ graceMs }) {
      stopped ??= stop(graceMs)
      return stopped
    },
  }
}

function destroyAll(sockets: ReadonlySet<Socket>): void {
  for (const socket of sockets) socket.destroy()
}

const HTTP2_START = Buffer.from('PRI ')

/** Waits for as many bytes as tell the protocol, puts them back and calls back; gives up after `timeoutMs`. */
function decideProtocol(socket: Socket, timeoutMs: number, decided: (protocol: 'http1' | 'http2') => void): void {
  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  const giveUp = () => socket.destroy()
  socket.on('error', giveUp)
  socket.once('close', () => clearTimeout(timer))
  let seen = Buffer.alloc(0)
  const onReadable = () => {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) seen = Buffer.concat([seen, chunk])
    const protocol = protocolOf(seen)
    if (protocol === undefined) return
    clearTimeout(timer)
    socket.off('readable', onReadable)
    socket.off('end', giveUp)
    socket.off('error', giveUp)
    socket.unshift(seen)
    decided(protocol)
  }
  socket.on('readable', onReadable)
  socket.on('end', giveUp)
}

function protocolOf(seen: Buffer): 'http1' | 'http2' | undefined {
  const start = seen.subarray(0, HTTP2_START.length)
  if (!HTTP2_START.subarray(0, start.length).equals(start)) return 'http1'
  return start.length === HTTP2_START.length ? 'http2' : undefined
}

function createHttp1(options: ListenerOptions): HttpServer {
  const { handle, limits, stopping } = options
  const server = createHttpServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: Math.min(1000, limits.headersTimeoutMs),
    keepAliveTimeout: limits.idleTimeoutMs,
    // A host is asked for by what wants one, not by the parser, which would answer in words of its own.
    requireHostHeader: false,
  })
  server.timeout = limits.idleTimeoutMs
  const inFlight = new WeakMap<Duplex, Set<ServerResponse>>()
  server.on('request', (request, response) => {
    const responses = inFlight.get(request.socket) ?? new Set()
    inFlight.set(request.socket, responses.add(response))
    response.once('close', () => {
      responses.delete(response)
      if (stopping.signal.aborted) request.socket.end()
    })
    void handle(http1Exchange(request, response, () => stopping.signal.aborted))
  })
  // Node would refuse what it does not know to expect without a body; it may be ignored (RFC 9110, 10.1.1).
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connect', ({ url = '' }, socket) => {
    socket.on('error', () => {}).resume()
    const allow = options.httpMethods.join(', ')
    refuse(waybillError('METHOD_NOT_ALLOWED', { method: 'CONNECT', path: url, allow }), socket, options)
  })
  const refused = new WeakSet<Duplex>()
  server.on('clientError', (error: ClientError, socket) => {
    // The parser fails anew at every piece of what still comes.
    if (refused.has(socket)) return
    refused.add(socket)
    const [response, ...others] = inFlight.get(socket) ?? []
    const isMidway = response?.headersSent === true || others.length > 0
    if (!socket.writable || isMidway || goneCodes.has(error.code)) socket.destroy()
    else refuse(reasonOf(error, limits), socket, options)
  })
  // Its timeouts are enforced from here on; they would never be, since it does not listen itself.
  server.emit('listening')
  return server
}

function createHttp2({ handle, limits }: ListenerOptions): Http2Server {
  const server = createHttp2Server({
    // Beyond these nghttp2 resets the stream without a word, so what is too large for us comes through, to be answered.
    settings: {
      maxConcurrentStreams: limits.maxStreams,
      maxHeaderListSize: HTTP2_HEADER_ALLOWANCE * limits.maxHeaderBytes,
      enablePush: false,
    },
    maxHeaderListPairs: Math.ceil((HTTP2_HEADER_ALLOWANCE * limits.maxHeaderBytes) / HTTP2_FIELD_OVERHEAD),
    unknownProtocolTimeout: limits.headersTimeoutMs,
  })
  server.on('stream', (stream, headers, flags) => {
    void handle(http2Exchange(stream, headers, (flags & END_STREAM) !== 0))
  })
  server.on('session', (session) => {
    session.setTimeout(limits.idleTimeoutMs, () => session.close())
    session.on('error', () => {})
  })
  server.on('sessionError', () => {})
  return server
}

/** How many times the limit HTTP/2 lets through. */
const HTTP2_HEADER_ALLOWANCE = 2

/** What a header counts beside its name and value (RFC 9113, 6.5.2), in bytes. */
const HTTP2_FIELD_OVERHEAD = 32

/** NGHTTP2_FLAG_END_STREAM */
const END_STREAM = 0x1

interface ClientError extends Error {
  readonly code?: string
  readonly reason?: unknown
}

/** Nobody is there any more: reset, or closed in the middle of a request. */
const goneCodes = new Set<string | undefined>(['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE'])

/** How long a refused connection is read on, so that the answer is not lost in a reset, in ms. */
const LINGER_MS = 2000

/** Answers what is no request. */
function refuse(
  error: WaybillError,
  socket: Duplex,
  { commonHeaders, logger }: Pick<ListenerOptions, 'commonHeaders' | 'logger'>,
): void {
  const { code, httpStatus: status } = wireFormOf(error.reason)
  const requestId = randomUUID()
  const body = httpErrorBody(error)
  logger.info({ requestId, code: codeName(code), reason: error.reason }, 'request')
  const headers = {
    ...commonHeaders,
    ...errorHeaders(error),
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    'x-request-id': requestId,
    connection: 'close',
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, ...lines, '', body].join('\r\n'))
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

function reasonOf(error: ClientError, limits: ConnectionLimits): WaybillError {
  if (error.code === 'HPE_HEADER_OVERFLOW') return waybillError('HEADERS_TOO_LARGE', { limit: limits.maxHeaderBytes })
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return waybillError('REQUEST_TOO_SLOW', { timeoutMs: limits.requestTimeoutMs })
  }
  return waybillError('MALFORMED_REQUEST', {
    detail: typeof error.reason === 'string' ? error.reason : 'it cannot be read',
  })
}
