import { once } from 'node:events'
import { constants, type ServerHttp2Session } from 'node:http2'
import { type AddressInfo, createServer as createNetServer, type Socket } from 'node:net'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls'
import type { Logger } from '../../domain/logger.ts'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import type { HeaderFields } from '../http/exchange.ts'
import type { RequestHandler } from '../http/http-server.ts'
import { type AbuseCounter, BarredPeers, offences } from './abuse.ts'
import { countConnections, type Excess } from './connection-counts.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import { createHttp1 } from './http1-server.ts'
import { createHttp2 } from './http2-server.ts'
import { refuseHttp1, refuseHttp2 } from './refuse-connection.ts'
import type { TlsCertificate } from './tls-certificate.ts'

/** What is spoken on a port. */
export interface Transport {
  /** With it, TLS 1.2 and 1.3 are spoken, and HTTP is chosen by ALPN; clients without ALPN say it with their first bytes. */
  readonly tls?: TlsCertificate
  /** Whether plaintext is taken; as long as there is no certificate by default. */
  readonly plaintext?: boolean
  /** Both by default. */
  readonly versions?: readonly HttpVersion[]
}

export type HttpVersion = '1.1' | '2'

export interface ListenerOptions {
  readonly host: string
  /** 0 for any that is free. */
  readonly port: number
  readonly handle: RequestHandler
  readonly transport?: Transport
  /** What the answers to that carry which is no request. */
  readonly commonHeaders: HeaderFields
  /** The methods that are of use here; sorted. */
  readonly httpMethods: readonly string[]
  readonly limits: ConnectionLimits
  /** Addresses that stand for many clients, such as a proxy's, and so have no limit of their own. */
  readonly isManyClients: (address: string) => boolean
  readonly abuse: AbuseCounter
  readonly logger: Logger
  /** Fired by stop, before anything is closed. */
  readonly stopping: AbortController
}

export interface Listener {
  readonly host: string
  readonly port: number
  /** `http://127.0.0.1:8080`, `https:` where plaintext is not taken */
  readonly url: string
  /** Serves another certificate to those who come from now on. @throws Error where none was served before, or it is none */
  readonly renewCertificate: (certificate: TlsCertificate) => void
  /**
   * Stops: no new connection, no new request; what is in flight gets its answer; what is left after the grace period is cut
   * off. Resolves when every connection is closed. May be called again.
   */
  readonly stop: (options: { readonly graceMs: number }) => Promise<void>
}

/** How long a connection may be silent before the kernel asks whether the other side is still there. */
const KEEP_ALIVE_DELAY_MS = 30_000

/** How many connections that are too many are told so at once; the others are closed without a word. */
const MAX_REFUSALS = 100

/**
 * Listens on one port for HTTP/1.1 and HTTP/2, in plaintext, over TLS, or both. The first bytes tell which: a TLS handshake
 * begins with 22, HTTP/2 with `PRI `, and no HTTP/1.1 request with either.
 *
 * @throws Error of node:net when the port cannot be had, of node:tls when the certificate is none
 */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const { limits, stopping, logger, abuse } = options
  const { tls, plaintext = tls === undefined, versions = ['1.1', '2'] } = options.transport ?? {}
  const http1 = createHttp1({ ...options, stopping: stopping.signal })
  const http2 = createHttp2(options)
  const secure = tls && createSecure(tls, versions, limits)
  const sessions = new Set<ServerHttp2Session>()
  http2.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    if (stopping.signal.aborted) session.close()
  })

  function serve(socket: Socket, version: HttpVersion): void {
    // Over HTTP/2 nobody closes one side alone: the client is gone, and the session would go on without it.
    if (version === '2') socket.allowHalfOpen = false
    if (!versions.includes(version)) refuse(notSpoken(`HTTP/${version} is not spoken here`), socket, version)
    else if (version === '2') http2.emit('connection', socket)
    else http1.emit('connection', socket)
  }

  function refuse(error: WaybillError, socket: Socket, version: HttpVersion): void {
    if (version === '1.1') return refuseHttp1(error, socket, options)
    logger.info({ reason: error.reason }, 'connection refused')
    const isExcess = error.reason === 'TOO_MANY_CONNECTIONS'
    const code = isExcess ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_HTTP_1_1_REQUIRED
    refuseHttp2({ message: error.message, code }, socket)
  }

  secure?.on('secureConnection', (socket) => {
    // It came while this stopped, and has asked for nothing yet.
    if (stopping.signal.aborted) return void socket.destroy()
    socket.allowHalfOpen = true
    undecided.add(socket)
    socket.once('close', () => undecided.delete(socket))
    decide(socket, limits.headersTimeoutMs, {
      read: versionOf,
      decided(version) {
        undecided.delete(socket)
        serve(socket, version)
      },
      silent: () => abuse.charge(peerOf(socket), offences.handshake),
    })
  })
  secure?.on('tlsClientError', (error, socket) => {
    logger.debug({ err: error }, 'no TLS')
    abuse.charge(peerOf(socket), offences.handshake)
    socket.destroy()
  })

  const sockets = new Set<Socket>()
  /** Connections that have not said yet what they speak, in plaintext or over TLS. */
  const undecided = new Set<Socket>()
  const refusing = new Set<Socket>()
  const findExcess = countConnections(limits, options.isManyClients)

  function accept(socket: Socket): void {
    sockets.add(socket)
    undecided.add(socket)
    socket.once('close', () => {
      sockets.delete(socket)
      undecided.delete(socket)
      refusing.delete(socket)
    })
    const peer = peerOf(socket)
    const excess = findExcess(socket)
    if (excess !== undefined) {
      if (excess === 'address') abuse.charge(peer, offences.excess)
      if (refusing.size >= MAX_REFUSALS) {
        socket.destroy()
        return
      }
      refusing.add(socket)
    }
    decide(socket, limits.headersTimeoutMs, {
      read: protocolOf,
      decided(protocol) {
        undecided.delete(socket)
        if (excess !== undefined) refuseExcess(excess, socket, protocol)
        else if (protocol === 'tls') acceptSecure(socket)
        else if (plaintext) serve(socket, protocol)
        else refuse(notSpoken('this port speaks TLS alone; call it by https'), socket, protocol)
      },
      silent: () => abuse.charge(peer, offences.silence),
    })
  }

  function refuseExcess(excess: Excess, socket: Socket, protocol: Protocol): void {
    const error = waybillError('TOO_MANY_CONNECTIONS', { detail: excessNames[excess] })
    if (protocol !== 'tls') return refuse(error, socket, protocol)
    // A handshake for the sake of a refusal would cost what is to be saved.
    logger.info({ reason: error.reason }, 'connection refused')
    socket.destroy()
  }

  function isBarred(peer: string): boolean {
    if (!abuse.isBarred(peer)) return false
    abuse.charge(peer, offences.knocking)
    return true
  }

  function acceptSecure(socket: Socket): void {
    if (secure === undefined) return refuse(notSpoken('this port does not speak TLS; call it by http'), socket, '1.1')
    socket.on('error', () => {})
    // Who closes one side amid the handshake is gone, and nobody else would notice; behind it, it may be HTTP/1.1's last request.
    socket.allowHalfOpen = false
    secure.emit('connection', socket)
  }

  // Half open, since HTTP/1.1 clients may close their side behind their last request. Kept alive, so that peers that vanish
  // without a word are noticed.
  const netOptions = {
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
    blockList: new BarredPeers(isBarred),
  }
  const port = createNetServer(netOptions, accept)
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
  const host = address.family === 'IPv6' ? `[${address.address}]` : address.address
  return {
    host: address.address,
    port: address.port,
    url: `${plaintext ? 'http' : 'https'}://${host}:${address.port}`,
    renewCertificate(certificate) {
      if (secure === undefined) throw new TypeError('this listener does not speak TLS')
      secure.setSecureContext({ ...TLS_VERSIONS, ...certificate })
    },
    stop({ graceMs }) {
      stopped ??= stop(graceMs)
      return stopped
    },
  }
}

const excessNames: Readonly<Record<Excess, string>> = { all: 'all together', address: 'from your address' }

function notSpoken(detail: string): WaybillError {
  return waybillError('MALFORMED_REQUEST', { detail })
}

function destroyAll(sockets: ReadonlySet<Socket>): void {
  for (const socket of sockets) socket.destroy()
}

const TLS_VERSIONS = { minVersion: 'TLSv1.2' } as const

const alpnNames = { '1.1': 'http/1.1', '2': 'h2' } as const

function createSecure(
  certificate: TlsCertificate,
  versions: readonly HttpVersion[],
  limits: ConnectionLimits,
): TlsServer {
  const ALPNProtocols = versions
    .toSorted()
    .toReversed()
    .map((version) => alpnNames[version])
  return createTlsServer({ ...TLS_VERSIONS, ...certificate, ALPNProtocols, handshakeTimeout: limits.headersTimeoutMs })
}

function peerOf({ remoteAddress = '' }: Socket): string {
  return remoteAddress
}

interface Decision<T> {
  /** What the bytes so far tell; undefined while they may still become anything. */
  readonly read: (seen: Buffer) => T | undefined
  readonly decided: (what: T) => void
  /** The connection ended before it was decided. */
  readonly silent: () => void
}

/** Waits for as many bytes as tell, puts them back and calls back; gives up after `timeoutMs`. */
function decide<T>(socket: Socket, timeoutMs: number, { read, decided, silent }: Decision<T>): void {
  const giveUp = () => {
    silent()
    socket.destroy()
  }
  let last: NodeJS.Immediate | undefined
  // Where this process was held up itself, what came meanwhile is read first.
  const timer = setTimeout(() => {
    last = setImmediate(giveUp)
  }, timeoutMs)
  socket.on('error', giveUp)
  socket.once('close', () => clearTimeout(timer))
  let seen = Buffer.alloc(0)
  const onReadable = () => {
    const chunk = socket.read() as Buffer | null
    if (chunk !== null) seen = Buffer.concat([seen, chunk])
    const what = seen.length === 0 ? undefined : read(seen)
    if (what === undefined) return
    clearTimeout(timer)
    clearImmediate(last)
    socket.off('readable', onReadable)
    socket.off('end', giveUp)
    socket.off('error', giveUp)
    socket.unshift(seen)
    decided(what)
  }
  socket.on('readable', onReadable)
  socket.on('end', giveUp)
}

type Protocol = HttpVersion | 'tls'

/** The type of a TLS record that holds a handshake (RFC 8446, 5.1). */
const TLS_HANDSHAKE = 22

function protocolOf(seen: Buffer): Protocol | undefined {
  return seen[0] === TLS_HANDSHAKE ? 'tls' : versionOf(seen)
}

const HTTP2_START = Buffer.from('PRI ')

function versionOf(seen: Buffer): HttpVersion | undefined {
  const start = seen.subarray(0, HTTP2_START.length)
  if (!HTTP2_START.subarray(0, start.length).equals(start)) return '1.1'
  return start.length === HTTP2_START.length ? '2' : undefined
}
