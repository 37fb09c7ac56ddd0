import {
  constants,
  createServer,
  type Http2Server,
  type Http2Session,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Logger } from '../domain/logger.ts'
import { type AbuseCounter, offences } from './abuse.ts'
import { createAlarms } from './alarms.ts'
import { type Allowance, type ConnectionLimits, createAllowance } from './connection-limits.ts'
import { http2Exchange } from './exchange.ts'
import type { RequestHandler } from './http-server.ts'

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
  server.on('session', (session) => guards.set(session, guardSession(session, options)))
  server.on('stream', (stream, headers, flags) => {
    if (stream.session !== undefined) guards.get(stream.session)?.onStream(stream)
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
  readonly onStream: (stream: ServerHttp2Stream) => void
  readonly onError: () => void
}

/** Ends a connection that begins too slowly, does nothing, or keeps us busy with what is no call. */
function guardSession(session: ServerHttp2Session, options: Http2Options): SessionGuard {
  const { limits, abuse, logger } = options
  const nowMs = () => performance.now()
  const peer = session.socket.remoteAddress ?? ''
  const resets = createAllowance(
    options.isManyClients(peer) ? times(limits.resets, MANY_CLIENTS) : limits.resets,
    nowMs,
  )
  const controls = createAllowance(limits.controlFrames, nowMs)
  let openStreams = 0
  let isCalled = false
  const begin = setTimeout(() => session.destroy(), limits.headersTimeoutMs)
  // The bytes of half a header are no call, and would otherwise keep a connection for ever.
  const idle = setTimeout(() => {
    if (openStreams === 0) session.close()
  }, limits.idleTimeoutMs)
  const endFor = (what: string) => {
    if (session.destroyed) return
    logger.info({ remoteAddress: peer, what }, 'connection ended: too much of what is no call')
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }
  const onControl = (what: string) => {
    if (controls.take()) return
    abuse.charge(peer, offences.flood)
    endFor(what)
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
    openStreams -= 1
    if (openStreams === 0 && !session.destroyed) idle.refresh()
    if (stream.headersSent && !stream.aborted && stream.rstCode === constants.NGHTTP2_NO_ERROR) {
      resets.giveBack()
      abuse.makeUp(peer)
      return
    }
    abuse.charge(peer, offences.reset)
    if (!resets.take() || abuse.isOnProbation(peer)) endFor('RST_STREAM')
  }
  return {
    onStream(stream) {
      openStreams += 1
      isCalled = true
      idle.refresh()
      stream.on('close', () => onClose(stream))
    },
    onError: () => abuse.charge(peer, offences.garbage),
  }
}

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
