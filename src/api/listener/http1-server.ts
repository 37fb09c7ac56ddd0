import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { Holder } from '../calls/shares.ts'
import { http1Exchange, MAX_HEADER_BYTES, MAX_HEADERS } from '../http/exchange.ts'
import { costOfRefusal } from './abuse.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import type { HeldConnection } from './connection-shares.ts'
import { destroyAfter, readRest, refuseHttp1, type ServerTerms } from './refuse-connection.ts'

/** Serves HTTP/1.1 on the connections that are handed to it with `emit('connection', socket)`. */
export function createHttp1(terms: ServerTerms): Server {
  const { handle, limits, shares, draining, stopping } = terms
  const server = createServer({
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: Math.min(1000, limits.headersTimeoutMs),
    keepAliveTimeout: limits.idleTimeoutMs,
    // Checked below: the parser would answer with an error of its own.
    requireHostHeader: false,
  })
  server.timeout = limits.idleTimeoutMs
  // Node would drop further headers silently; such a request is refused below.
  server.maxHeadersCount = 0
  const connections = new WeakMap<Duplex, UsedConnection>()
  server.on('request', (request, response) => {
    const { socket } = request
    let connection = connections.get(socket)
    if (connection === undefined) {
      connection = { open: 0, last: response, held: shares.of(socket) }
      connections.set(socket, connection)
    }
    const used = connection
    const { held } = used
    used.open += 1
    used.last = response
    held?.begin()
    response.on('close', () => {
      used.open -= 1
      held?.end()
      if (stopping.aborted) socket.end()
    })
    void serve(request, response, held)
  })
  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
    held: HeldConnection | undefined,
  ): Promise<void> {
    if (request.rawHeaders.length / 2 > MAX_HEADERS) {
      return refuseOnce(waybillError('HEADERS_TOO_LARGE', { limit: `${MAX_HEADERS} headers` }), request.socket)
    }
    const hostFault = faultOfHost(request)
    if (hostFault !== undefined) return refuseOnce(waybillError('INVALID_HOST', { detail: hostFault }), request.socket)
    const holdFor = (holder: Holder) => held?.holdFor(holder)
    await handle(http1Exchange(request, response, holdFor, () => draining.aborted))
    boundTaking(response, request.socket, limits.requestTimeoutMs)
    boundRest(request)
  }
  // Node would refuse an unknown Expect header with an empty body; the header may be ignored (RFC 9110, 10.1.1).
  // Node would ask for every body at once; whoever reads it asks for it. Without that, Node closes the connection after the answer.
  server.on('checkContinue', (request, response) => server.emit('request', request, response))
  server.on('checkExpectation', (request, response) => server.emit('request', request, response))
  server.on('connect', ({ url = '' }, socket) => {
    const allow = terms.httpMethods.join(', ')
    refuseHttp1(waybillError('METHOD_NOT_ALLOWED', { method: 'CONNECT', path: url, allow }), socket, terms)
  })
  const refused = new WeakSet<Duplex>()
  function refuseOnce(error: WaybillError, socket: Duplex): void {
    // The parser fails again at every chunk that still arrives.
    if (refused.has(socket)) return
    refused.add(socket)
    terms.abuse.charge((socket as Socket).remoteAddress ?? '', costOfRefusal(error, false))
    refuseHttp1(error, socket, terms)
  }
  server.on('clientError', (error: ClientError, socket) => {
    if (refused.has(socket)) return
    const { open, last } = connections.get(socket) ?? { open: 0 }
    const isMidway = open > 1 || (open === 1 && last?.headersSent === true)
    if (!socket.writable || isMidway || goneCodes.has(error.code)) socket.destroy()
    else refuseOnce(reasonOf(error, limits), socket)
  })
  // Starts the checks of the timeouts, which Node starts when a server listens; this one never does.
  server.emit('listening')
  return server
}

interface UsedConnection {
  /** How many answers are not complete. */
  open: number
  last: ServerResponse
  readonly held: HeldConnection | undefined
}

/** `host`, `host:port`, `[::1]:port`, or nothing (RFC 9110, 7.2). */
const HOST = /^(?:\[[\w:.%]+\]|[\w.~!$&'()*+;=%-]*)(?::\d*)?$/

/** What is wrong with the Host header of a request (RFC 9112, 3.2). HTTP/1.0 needs none. */
function faultOfHost({ httpVersion, rawHeaders }: IncomingMessage): string | undefined {
  const hosts: string[] = []
  for (let at = 0; at < rawHeaders.length; at += 2) {
    if (rawHeaders[at]?.length === 4 && rawHeaders[at]?.toLowerCase() === 'host') hosts.push(rawHeaders[at + 1] ?? '')
  }
  const [host] = hosts
  if (host === undefined) return httpVersion === '1.0' ? undefined : 'there is no Host header'
  if (hosts.length > 1) return `there are ${hosts.length} Host headers`
  return HOST.test(host) ? undefined : `Host is ${JSON.stringify(host.slice(0, 100))}`
}

/** Ends the connection if a complete answer is not read in time: it would hold its memory. The kernel has taken most answers by now. */
function boundTaking(response: ServerResponse, socket: Duplex, timeoutMs: number): void {
  const isTaken = response.writableEnded && response.writableLength === 0
  if (!isTaken && !response.destroyed) destroyAfter(timeoutMs, socket, response)
}

/** How many bytes of a body are read after the answer. */
const MAX_REST_BYTES = 1024 * 1024

/** Reads the rest of a body after the answer, up to a limit: closing at once would reset the connection and lose the answer. */
function boundRest(request: IncomingMessage): void {
  if (!request.complete && !request.destroyed) readRest(request, request.socket, MAX_REST_BYTES)
}

interface ClientError extends Error {
  readonly code?: string
  readonly reason?: unknown
}

/** The client is gone: it reset the connection, or closed it within a request. */
const goneCodes = new Set<string | undefined>(['ECONNRESET', 'EPIPE', 'HPE_INVALID_EOF_STATE'])

function reasonOf(error: ClientError, limits: ConnectionLimits): WaybillError {
  if (error.code === 'HPE_HEADER_OVERFLOW')
    return waybillError('HEADERS_TOO_LARGE', { limit: `${MAX_HEADER_BYTES} bytes of request line and headers` })
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return waybillError('REQUEST_TOO_SLOW', { timeoutMs: limits.requestTimeoutMs })
  }
  return waybillError('MALFORMED_REQUEST', {
    detail: typeof error.reason === 'string' ? error.reason : 'it cannot be read',
  })
}
