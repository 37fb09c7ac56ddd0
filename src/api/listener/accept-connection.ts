import type { Server as Http1Server } from 'node:http'
import { constants, type Http2Server } from 'node:http2'
import type { Socket } from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { offences } from './abuse.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import { refuseHttp1, refuseHttp2, type ServerTerms } from './refuse-connection.ts'
import type { TlsCertificate } from './tls-certificate.ts'

/** Everything that decides what becomes of a new connection. */
export interface Acceptance extends ServerTerms {
  /** The servers to which connections are handed. */
  readonly servers: Servers
  readonly open: OpenConnections
}

export interface Servers {
  readonly http1: Http1Server
  readonly http2: Http2Server
  /** Undefined without a certificate. */
  readonly tls: TlsServer | undefined
}

/** The connections that the listener has to close when it stops. */
export type OpenConnections = ReturnType<typeof noConnections>

export function noConnections() {
  return {
    sockets: new Set<Socket>(),
    /** Those of which it is not known yet what they speak, in plaintext or within TLS. */
    undecided: new Set<Socket>(),
    /** Those beyond the limits that are being refused with an answer. */
    refused: new Set<Socket>(),
  }
}

/** At most so many connections beyond the limits are refused with an answer at once; the others are closed without one. */
const MAX_REFUSALS = 100

/** Accepts a new connection: hands it to the server of what it speaks, or refuses it. */
export function acceptConnection(acceptance: Acceptance, socket: Socket): void {
  const { open, abuse, limits } = acceptance
  keep(socket, open.sockets)
  keep(socket, open.undecided)
  const peer = peerOf(socket)
  const hasPlace = acceptance.shares.accept(socket)
  if (!hasPlace) {
    if (open.refused.size >= MAX_REFUSALS) {
      socket.destroy()
      return
    }
    keep(socket, open.refused)
  }
  readFirstBytes(socket, {
    timeoutMs: limits.headersTimeoutMs,
    read: protocolOf,
    onDecided(protocol) {
      open.undecided.delete(socket)
      if (hasPlace) handOver(acceptance, socket, protocol)
      else refuseExcess(acceptance, socket, protocol)
    },
    onSilent: () => abuse.charge(peer, offences.silence),
  })
}

function handOver(acceptance: Acceptance, socket: Socket, protocol: Protocol): void {
  if (protocol === 'tls') startTls(acceptance, socket)
  else if (acceptance.servers.tls === undefined) serve(acceptance, socket, protocol)
  else refuse(acceptance, socket, notServed('this port speaks TLS only; call it by https'), protocol)
}

function startTls(acceptance: Acceptance, socket: Socket): void {
  const { tls } = acceptance.servers
  if (tls === undefined) {
    return refuse(acceptance, socket, notServed('this port does not speak TLS; call it by http'), '1.1')
  }
  socket.on('error', () => {})
  // A client that closes its side during the handshake is gone, and nothing else would notice. After the handshake it may be a client of
  // HTTP/1.1 that has sent its last request.
  socket.allowHalfOpen = false
  tls.emit('connection', socket)
}

/** Accepts a connection within TLS, after its handshake. Clients without ALPN say the version with their first bytes, too. */
export function acceptSecureConnection(acceptance: Acceptance, socket: Socket): void {
  const { open, abuse, limits } = acceptance
  socket.allowHalfOpen = true
  keep(socket, open.undecided)
  readFirstBytes(socket, {
    timeoutMs: limits.headersTimeoutMs,
    read: versionOf,
    onDecided(version) {
      open.undecided.delete(socket)
      serve(acceptance, socket, version)
    },
    onSilent: () => abuse.charge(peerOf(socket), offences.handshake),
  })
}

function serve(acceptance: Acceptance, socket: Socket, version: HttpVersion): void {
  const { servers } = acceptance
  if (version === '1.1') return void servers.http1.emit('connection', socket)
  // In HTTP/2 no client closes one side only: it is gone, and the session would stay without it.
  socket.allowHalfOpen = false
  servers.http2.emit('connection', socket)
}

/** @param version - of HTTP, of the answer */
function refuse(acceptance: Acceptance, socket: Socket, error: WaybillError, version: HttpVersion): void {
  if (version === '1.1') return refuseHttp1(error, socket, acceptance)
  logRefused(acceptance, error)
  const isExcess = error.reason === 'TOO_MANY_CONNECTIONS'
  const code = isExcess ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_HTTP_1_1_REQUIRED
  refuseHttp2({ message: error.message, code }, socket)
}

function refuseExcess(acceptance: Acceptance, socket: Socket, protocol: Protocol): void {
  const error = waybillError('TOO_MANY_CONNECTIONS', {})
  if (protocol !== 'tls') return refuse(acceptance, socket, error, protocol)
  // A handshake only to refuse would cost what the limit is to save.
  logRefused(acceptance, error)
  socket.destroy()
}

function logRefused({ refusalLog, logger }: Acceptance, { reason }: WaybillError): void {
  refusalLog.each(() => logger.info({ reason }, 'connection refused'))
}

function notServed(detail: string): WaybillError {
  return waybillError('MALFORMED_REQUEST', { detail })
}

/** Keeps a socket in a set until it is closed. */
function keep(socket: Socket, set: Set<Socket>): void {
  set.add(socket)
  socket.once('close', () => set.delete(socket))
}

export function peerOf({ remoteAddress = '' }: Socket): string {
  return remoteAddress
}

export const TLS_VERSIONS = { minVersion: 'TLSv1.2' } as const

/** A server of TLS 1.2 and 1.3 that prefers HTTP/2. */
export function createTls(certificate: TlsCertificate, limits: ConnectionLimits): TlsServer {
  const ALPNProtocols = ['h2', 'http/1.1']
  return createTlsServer({ ...TLS_VERSIONS, ...certificate, ALPNProtocols, handshakeTimeout: limits.headersTimeoutMs })
}

type HttpVersion = '1.1' | '2'

/** What a client may speak on a port. */
type Protocol = HttpVersion | 'tls'

/** The type of a TLS record that holds a handshake (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 22

/**
 * Tells by its first bytes what a connection speaks. A TLS handshake begins with 22 and HTTP/2 with `PRI `; no HTTP/1.1 request begins
 * with either.
 *
 * @param seen - the bytes so far; at least one
 * @returns undefined while more bytes are needed
 */
export function protocolOf(seen: Buffer): Protocol | undefined {
  return seen[0] === TLS_HANDSHAKE ? 'tls' : versionOf(seen)
}

const HTTP2_START = Buffer.from('PRI ')

/** As {@link protocolOf}, within a TLS connection. */
export function versionOf(seen: Buffer): HttpVersion | undefined {
  const start = seen.subarray(0, HTTP2_START.length)
  if (!HTTP2_START.subarray(0, start.length).equals(start)) return '1.1'
  return start.length === HTTP2_START.length ? '2' : undefined
}

interface FirstBytesOptions<T> {
  /** How long the bytes may take, in milliseconds. */
  readonly timeoutMs: number
  /** Decides by the bytes so far; undefined while more are needed. */
  readonly read: (seen: Buffer) => T | undefined
  /** Called once decided. The bytes have been put back. */
  readonly onDecided: (what: T) => void
  /** Called if the connection ends or the time is up before it is decided. The connection is closed. */
  readonly onSilent: () => void
}

/** Reads the first bytes of a connection until they decide something, and puts them back. */
export function readFirstBytes<T>(socket: Socket, options: FirstBytesOptions<T>): void {
  const { timeoutMs, read, onDecided, onSilent } = options
  let seen = Buffer.alloc(0)
  const giveUp = () => {
    onSilent()
    socket.destroy()
  }
  let lastChance: NodeJS.Immediate | undefined
  // If this process was held up itself, the bytes that arrived meanwhile are read first.
  const timer = setTimeout(() => {
    lastChance = setImmediate(giveUp)
  }, timeoutMs)
  const onReadable = () => {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) seen = Buffer.concat([seen, chunk])
    const what = seen.length === 0 ? undefined : read(seen)
    if (what === undefined) return
    clearTimeout(timer)
    clearImmediate(lastChance)
    socket.off('readable', onReadable).off('end', giveUp).off('error', giveUp)
    socket.unshift(seen)
    onDecided(what)
  }
  socket.on('readable', onReadable).on('end', giveUp).on('error', giveUp)
  socket.once('close', () => clearTimeout(timer))
}
