import { once } from 'node:events'
import { type AddressInfo, createServer as createNetServer, type Server, type Socket } from 'node:net'
import type { Ending } from '../calls/call.ts'
import type { RequestHandler } from '../http/exchange.ts'
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
import { watchDescriptors } from './open-descriptors.ts'
import type { ServerTerms } from './refuse-connection.ts'
import type { TlsCertificate } from './tls-certificate.ts'

export interface ListenerOptions extends Omit<ServerTerms, 'shares' | keyof Ending> {
  readonly host: string
  /** 0 for any free port. */
  readonly port: number
  /** If given, only TLS 1.2 and 1.3 are spoken. ALPN chooses the version of HTTP; clients without ALPN choose it by their first bytes. */
  readonly tls?: TlsCertificate | undefined
  readonly ending: EndingControllers
}

type EndingControllers = { readonly [K in keyof Ending]: AbortController }

/** Controllers of the signals by which everybody learns that a listener ends. */
export function createEnding(): EndingControllers {
  return { draining: new AbortController(), stopping: new AbortController(), cutting: new AbortController() }
}

export function signalsOf({ draining, stopping, cutting }: EndingControllers): Ending {
  return { draining: draining.signal, stopping: stopping.signal, cutting: cutting.signal }
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
  const { ending } = options
  const acceptance = createAcceptance(options)
  const port = createNetServer(socketOptions(options.abuse), (socket) => acceptConnection(acceptance, socket))
  port.listen(options.port, options.host)
  await once(port, 'listening')
  watchDescriptors(port, options.logger)
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
    /** Says that the process is not ready any more. Calls go on, over new connections too; those of HTTP/1.1 end with their next answer. */
    drain: () => ending.draining.abort(),
    /**
     * Stops: accepts no connection and no request any more, finishes the requests in flight, and cuts what is left after the grace
     * period. Resolves when every connection is closed. May be called again.
     */
    stop({ graceMs }: { readonly graceMs: number }): Promise<void> {
      ending.draining.abort()
      stopped ??= close(port, acceptance, { ...ending, graceMs })
      return stopped
    },
  }
}

function createAcceptance(options: ListenerOptions): Acceptance & { readonly closing: PortClosing } {
  const { limits, abuse, logger, isManyClients, tls: certificate } = options
  const shares = shareConnections(limits, {
    isManyClients,
    onSilentClosed: (peer) => abuse.charge(peer, offences.silence),
  })
  const closing: PortClosing = { busyAtMs: 0 }
  const handle: RequestHandler = async (exchange) => {
    if (closing.closed !== undefined) await closing.closed
    await options.handle(exchange)
    closing.busyAtMs = performance.now()
  }
  const terms: ServerTerms = { ...options, ...signalsOf(options.ending), shares, handle }
  const servers: Servers = {
    http1: createHttp1(terms),
    http2: createHttp2(terms),
    tls: certificate && createTls(certificate, limits),
  }
  const open = noConnections()
  const acceptance = { ...terms, servers, open, closing }
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

/** How long connections without a request are read after the port is closed, new ones and idle ones of HTTP/1.1: a request may be on its way. */
const SILENCE_MS = 300

/** How long the answers to calls that are cut may take to be read. */
const CUT_MS = 500

/**
 * Closes a port and its connections: those without a request soon, the others after their requests. When the grace period is over the calls that
 * are left get an error, and the connections are broken off soon after.
 */
async function close(
  port: Server,
  { servers, open, closing }: ReturnType<typeof createAcceptance>,
  { graceMs, stopping, cutting }: EndingControllers & { readonly graceMs: number },
): Promise<void> {
  const timers: NodeJS.Timeout[] = []
  const after = (ms: number, act: () => void) => void timers.push(setTimeout(act, ms))
  const destroy = (sockets: ReadonlySet<Socket>) => {
    for (const socket of sockets) socket.destroy()
  }
  const closeSilent = () => {
    servers.http1.closeIdleConnections()
    destroy(open.undecided)
  }
  // First, or clients that are sent away would connect again.
  await closePort(port, closing)
  stopping.abort()
  // What arrived while this process was held up itself is read first.
  after(Math.min(SILENCE_MS, graceMs), () => setImmediate(closeSilent))
  after(graceMs, () => {
    cutting.abort()
    after(CUT_MS, () => destroy(open.sockets))
  })
  await Promise.all([...open.sockets].map(closed))
  for (const timer of timers) clearTimeout(timer)
  // This server never listened: closing it only ends its timers.
  servers.http1.close(() => {})
}

/** How far the port is on its way to be closed. */
interface PortClosing {
  /** When the last connection came or the last request was answered, on the clock of `performance`. */
  busyAtMs: number
  /** Settles when the port is closed. Requests that come before wait for it. */
  closed?: Promise<void>
}

/** How long nothing may have happened before a port is closed, how long that is waited for, and when it is closed in any case, in milliseconds. */
const QUIET_MS = 5
const QUIET_WITHIN_MS = 200
const CLOSED_WITHIN_MS = 1_000

/**
 * Closes a port at a moment in which no client is about to connect: a connection that the kernel has accepted and this process has not would be
 * reset, and proxies do not send a POST again. As every answer of a process that drains ends its connection, clients connect after an answer; so
 * requests wait until the port is closed. If others keep coming, it is closed right after a pass of the event loop without one.
 */
async function closePort(port: Server, closing: PortClosing): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  closing.closed = promise
  closing.busyAtMs = performance.now()
  port.on('connection', () => {
    closing.busyAtMs = performance.now()
  })
  const sinceMs = closing.busyAtMs
  for (;;) {
    const begunAtMs = performance.now()
    const isLate = begunAtMs > sinceMs + QUIET_WITHIN_MS
    // What came while this process was held up itself is seen between the two.
    if (!isLate) await new Promise((next) => setTimeout(next, 1))
    await new Promise((next) => setImmediate(next))
    if (closing.busyAtMs < (isLate ? begunAtMs : begunAtMs - QUIET_MS)) break
    if (begunAtMs > sinceMs + CLOSED_WITHIN_MS) break
  }
  port.close()
  resolve()
}

function closed(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once('close', resolve))
}
