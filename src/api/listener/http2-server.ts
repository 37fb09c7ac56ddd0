import {
  constants,
  createServer,
  type Http2Server,
  type Http2Session,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import type { Logger } from '../../domain/logger.ts'
import { http2Exchange } from '../http/exchange.ts'
import type { RequestHandler } from '../http/http-server.ts'
import { type AbuseCounter, offences } from './abuse.ts'
import { createAlarms } from './alarms.ts'
import { type Allowance, type ConnectionLimits, createAllowance } from './connection-limits.ts'
import { drainSession } from './drain-session.ts'
import { LINGER_MS } from './refuse-connection.ts'

export interface Http2Options {
  readonly handle: RequestHandler
  readonly limits: ConnectionLimits
  readonly abuse: AbuseCounter
  /** Addresses that stand for many clients, each of whom may break off calls. */
  readonly isManyClients: (address: string) => boolean
  readonly logger: Logger
}

/** Serves HTTP/2 on the connections that it is given by `emit('connection', socket)`. */
export function createHttp2(options: Http2Options): Http2Server {
  const { handle, limits } = options
  const server = createServer({
    // Beyond these nghttp2 resets the stream without a word, so what is too large for us comes through, to be answered.
    settings: {
      maxConcurrentStreams: limits.maxStreams,
      maxHeaderListSize: HTTP2_HEADER_ALLOWANCE * limits.maxHeaderBytes,
      enablePush: false,
    },
    maxHeaderListPairs: Math.ceil((HTTP2_HEADER_ALLOWANCE * limits.maxHeaderBytes) / HTTP2_FIELD_OVERHEAD),
    unknownProtocolTimeout: limits.headersTimeoutMs,
    // Its own limit stands behind ours, which says what it is about.
    streamResetBurst: 2 * MANY_CLIENTS * limits.resets.burst,
    streamResetRate: 2 * MANY_CLIENTS * limits.resets.perSecond,
  })
  const guards = new WeakMap<Http2Session, SessionGuard>()
  // A session shows its socket but does not let it be destroyed. It is made, and told of, while its connection is.
  let socket: Socket | undefined
  server.prependListener('connection', (connected: Socket) => {
    socket = connected
  })
  server.on('session', (session) => {
    if (socket !== undefined) guards.set(session, guardSession(session, socket, options))
  })
  server.on('stream', (stream, headers, flags) => {
    stream.on('error', () => {})
    // A reset that came in the same bytes as its request is seen before the next turn: then nothing was begun for it.
    setImmediate(() => {
      if (stream.closed || stream.destroyed) return
      void serve(stream, handle(http2Exchange(stream, headers, (flags & END_STREAM) !== 0)))
    })
  })
  const setAlarm = createAlarms()
  /** An answer that is complete and not taken holds its memory: it is broken off. */
  async function serve(stream: ServerHttp2Stream, handled: Promise<void>): Promise<void> {
    await handled
    if (stream.closed || stream.destroyed) return
    stream.on(
      'close',
      setAlarm(limits.requestTimeoutMs, () => stream.close(constants.NGHTTP2_CANCEL)),
    )
  }
  server.on('sessionError', (_error, session) => guards.get(session)?.onError())
  return server
}

interface SessionGuard {
  readonly onError: () => void
}

/**
 * Ends a connection that begins too slowly, does nothing, or keeps us busy with what is no call. In the last case calls in flight may
 * finish first, unless the client goes on.
 */
function guardSession(session: ServerHttp2Session, socket: Socket, options: Http2Options): SessionGuard {
  const { limits, abuse, logger } = options
  const nowMs = () => performance.now()
  const peer = socket.remoteAddress ?? ''
  const allowedResets = options.isManyClients(peer) ? times(limits.resets, MANY_CLIENTS) : limits.resets
  let resets = createAllowance(allowedResets, nowMs)
  let controls = createAllowance(limits.controlFrames, nowMs)
  const open = new Set<ServerHttp2Stream>()
  let isCalled = false
  let isDraining = false
  const begin = setTimeout(() => session.destroy(), limits.headersTimeoutMs)
  // The bytes of half a header are no call, and would otherwise keep a connection for ever.
  const idle = setTimeout(() => {
    if (open.size === 0) session.close()
  }, limits.idleTimeoutMs)
  const cut = (what: string) => {
    if (session.destroyed) return
    logger.info({ remoteAddress: peer, what }, 'connection ended: too much of what is no call')
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }
  /** Who has used up an allowance has another to come to an end with. */
  const drain = (what: string) => {
    if (session.destroyed) return
    // What was broken off in the same bytes is closed by now, though its end has not been told yet.
    if (isDraining || [...open].every((stream) => stream.closed)) return cut(what)
    isDraining = true
    resets = createAllowance(allowedResets, nowMs)
    controls = createAllowance(limits.controlFrames, nowMs)
    logger.info({ remoteAddress: peer, what }, 'connection drained: too much of what is no call')
    drainSession(session, {
      socket,
      why: `too many ${what} frames`,
      graceMs: limits.drainTimeoutMs,
      maxBytes: MAX_DRAIN_BYTES,
      onOverrun: () => cut(what),
    })
  }
  const onControl = (what: string) => {
    if (controls.take()) return
    abuse.charge(peer, offences.flood)
    drain(what)
  }
  session.setTimeout(limits.idleTimeoutMs, () => session.close())
  session.on('error', () => {})
  session.once('remoteSettings', () => clearTimeout(begin))
  session.on('remoteSettings', () => onControl('SETTINGS'))
  session.on('ping', () => onControl('PING'))
  session.once('close', () => {
    clearTimeout(begin)
    clearTimeout(idle)
    if (!isCalled) abuse.charge(peer, offences.silence)
  })
  const onClose = (stream: ServerHttp2Stream) => {
    open.delete(stream)
    if (open.size === 0 && !session.destroyed) {
      idle.refresh()
      if (isDraining) closeDrained(session, socket)
    }
    if (stream.headersSent) {
      // To leave a watch is what a client does that has what it wanted: it costs nothing and makes up for nothing.
      if (stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR) return
      resets.giveBack()
      abuse.makeUp(peer)
      return
    }
    abuse.charge(peer, offences.reset)
    if (!resets.take() || (!isDraining && abuse.isOnProbation(peer))) drain('RST_STREAM')
  }
  // Told by the session: a stream that was broken off in the first bytes of all no longer knows it.
  session.on('stream', (stream) => {
    open.add(stream)
    isCalled = true
    idle.refresh()
    stream.on('close', () => onClose(stream))
  })
  return { onError: () => abuse.charge(peer, offences.garbage) }
}

/** Ends a connection whose last call is over. */
function closeDrained(session: ServerHttp2Session, socket: Socket): void {
  session.close()
  // The client might leave its side open for ever.
  const timer = setTimeout(() => socket.destroy(), LINGER_MS)
  socket.once('close', () => clearTimeout(timer))
}

/** The rest of requests that have begun. nghttp2 itself stops reading after 10,000 streams that it ignores. */
const MAX_DRAIN_BYTES = 512 * 1024

/** How many times what a client may break off a proxy may, which does so for its clients. */
const MANY_CLIENTS = 10

function times({ burst, perSecond }: Allowance, factor: number): Allowance {
  return { burst: burst * factor, perSecond: perSecond * factor }
}

/** How many times the limit HTTP/2 lets through. */
const HTTP2_HEADER_ALLOWANCE = 2

/** What a header counts beside its name and value (RFC 9113, 6.5.2), in bytes. */
const HTTP2_FIELD_OVERHEAD = 32

/** NGHTTP2_FLAG_END_STREAM */
const END_STREAM = 0x1
