import { once } from 'node:events'
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from 'node:net'
import { type AbuseCounter, BarredPeers, offences } from './abuse.ts'
import {
  type Acceptance,
  acceptConnection,
  acceptSecureConnection,
  createTls,
  noConnections,
  peerOf,
  type Servers,
  TLS_VERSIONS,
} from './accept-connection.ts'
import { shareConnections } from './connection-shares.ts'
import { createHttp1 } from './http1-server.ts'
import { createHttp2 } from './http2-server.ts'
import type { ServerTerms } from './refuse-connection.ts'
import type { TlsCertificate } from './tls-certificate.ts'

export interface ListenerOptions extends Omit<ServerTerms, 'shares' | 'stopping'> {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /** If given, only TLS 1.2 and 1.3 are spoken. ALPN chooses the version of HTTP; clients without ALPN choose it by their first bytes. */
  readonly tls?: TlsCertificate | undefined
  /** Aborted by `stop`, before anything is closed. */
  readonly stopping: AbortController
}

export type Listener = Awaited<ReturnType<typeof startListener>>

/** How long a connection may be silent before the kernel asks whether the peer is still there, in milliseconds. */
const KEEP_ALIVE_DELAY_MS = 30_000

/**
 * Listens on one port for HTTP/1.1 and HTTP/2, in plaintext or over TLS. The first bytes of a connection tell which.
 *
 * @throws Error of node:net if the port is not free, of node:tls if the certificate is not valid
 */
export async function startListener(options: ListenerOptions) {
  const acceptance = createAcceptance(options)
  const port = createNetServer(socketOptions(options.abuse), (socket) => acceptConnection(acceptance, socket))
  port.listen(options.port, options.host)
  await once(port, 'listening')
  const { family, address, port: number } = port.address() as AddressInfo
  const host = family === 'IPv6' ? `[${address}]` : address
  const { tls } = acceptance.servers
  let stopped: Promise<void> | undefined
  return {
    host: address,
    port: number,
    /** `http://127.0.0.1:8080`; `https:` with TLS. */
    url: `${tls === undefined ? 'http' : 'https'}://${host}:${number}`,
    /** Serves another certificate to new connections. @throws Error if the listener does not speak TLS, or the certificate is not valid */
    renewCertificate(certificate: TlsCertificate): void {
      if (tls === undefined) throw new TypeError('this listener does not speak TLS')
      tls.setSecureContext({ ...TLS_VERSIONS, ...certificate })
    },
    /**
     * Stops: accepts no connection and no request any more, finishes the requests in flight, and closes what is left after the grace
     * period. Resolves when every connection is closed. May be called again.
     */
    stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
      options.stopping.abort()
      stopped ??= close(port, acceptance, graceMs)
      return stopped
    },
  }
}

function createAcceptance(options: ListenerOptions): Acceptance {
  const { limits, abuse, logger, isManyClients, tls: certificate } = options
  const stopping = options.stopping.signal
  const shares = shareConnections(limits, {
    isManyClients,
    onSilentClosed: (peer) => abuse.charge(peer, offences.silence),
  })
  const terms: ServerTerms = { ...options, shares, stopping }
  const servers: Servers = {
    http1: createHttp1(terms),
    http2: createHttp2(terms),
    tls: certificate && createTls(certificate, limits),
  }
  const open = noConnections()
  const acceptance: Acceptance = { ...terms, servers, open }
  servers.http2.on('session', (session) => {
    open.sessions.add(session)
    session.once('close', () => open.sessions.delete(session))
    if (stopping.aborted) session.close()
  })
  servers.tls?.on('secureConnection', (socket) => acceptSecureConnection(acceptance, socket))
  servers.tls?.on('tlsClientError', (error, socket) => {
    logger.debug({ err: error }, 'TLS handshake failed')
    abuse.charge(peerOf(socket), offences.handshake)
    socket.destroy()
  })
  return acceptance
}

/**
 * Connections are half open, since a client of HTTP/1.1 may close its side after its last request. They are kept alive, so that peers
 * that vanish without closing are noticed.
 */
function socketOptions(abuse: AbuseCounter) {
  const isBarred = (peer: string) => {
    if (!abuse.isBarred(peer)) return false
    abuse.charge(peer, offences.knocking)
    return true
  }
  return {
    allowHalfOpen: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_DELAY_MS,
    blockList: new BarredPeers(isBarred),
  }
}

/** Closes a port and its connections: idle ones at once, the others after their requests, the rest when the grace period is over. */
async function close(port: Server, { servers, open }: Acceptance, graceMs: number): Promise<void> {
  port.close()
  for (const socket of open.undecided) socket.destroy()
  for (const session of open.sessions) session.close()
  servers.http1.closeIdleConnections()
  const timer = setTimeout(() => {
    for (const socket of open.sockets) socket.destroy()
  }, graceMs)
  await Promise.all([...open.sockets].map(closed))
  clearTimeout(timer)
  // This server never listened: closing it only ends its timers.
  servers.http1.close(() => {})
}

function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('close', resolve))
}
