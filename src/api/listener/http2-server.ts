import { writeSync } from 'node:fs'
import {
  constants,
  createServer,
  type Http2Server,
  type Http2Session,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { createAlarms } from '../calls/alarms.ts'
import { createRoster } from '../calls/roster.ts'
import type { Holder } from '../calls/shares.ts'
import { http2Exchange, MAX_HEADER_BYTES } from '../http/exchange.ts'
import { createAllowance, offences } from './abuse.ts'
import type { ConnectionLimits } from './connection-limits.ts'
import type { HeldConnection } from './connection-shares.ts'
import { destroyAfter, GOAWAY_NOTICE, LINGER_MS, type ServerTerms } from './refuse-connection.ts'

/** Serves HTTP/2 on the connections that are handed to it with `emit('connection', socket)`. */
export function createHttp2(terms: ServerTerms): Http2Server {
  const { handle, limits, stopping } = terms
  const server = createServer({
    // Beyond these nghttp2 resets the stream without an answer. They are larger than our limits, so that we can answer with a reason.
    settings: {
      maxConcurrentStreams: limits.maxStreams,
      maxHeaderListSize: HTTP2_HEADER_ALLOWANCE * MAX_HEADER_BYTES,
      enablePush: false,
    },
    maxHeaderListPairs: Math.ceil((HTTP2_HEADER_ALLOWANCE * MAX_HEADER_BYTES) / HTTP2_FIELD_OVERHEAD),
    unknownProtocolTimeout: limits.headersTimeoutMs,
    // Node's own limit is larger than ours, which ends the connection with a reason.
    streamResetBurst: 2 * MANY_CLIENTS * limits.resets.burst,
    streamResetRate: 2 * MANY_CLIENTS * limits.resets.perSecond,
  })
  const guards = new Map<Http2Session, ReturnType<typeof guardSession>>()
  // A session gives its socket only as a proxy that cannot destroy it. The session is created during the event of its connection.
  let socket: Socket | undefined
  server.prependListener('connection', (connected: Socket) => {
    socket = connected
  })
  server.on('session', (session) => {
    if (socket === undefined) return
    const guard = guardSession(session, socket, terms)
    guards.set(session, guard)
    session.once('close', () => guards.delete(session))
    if (stopping.aborted) guard.retire()
  })
  stopping.addEventListener('abort', () => {
    for (const guard of guards.values()) guard.retire()
  })
  server.on('stream', (stream, headers, flags) => {
    stream.on('error', () => {})
    // If a reset arrived together with its request, it is seen before the next pass of the event loop, and nothing is begun.
    setImmediate(() => {
      if (stream.closed || stream.destroyed) return
      const guard = stream.session && guards.get(stream.session)
      const ofConnection = {
        hasBody: (flags & END_STREAM) === 0,
        endConnection: () => guard?.drain('refused'),
        holdConnectionFor: (holder: Holder) => guard?.held?.holdFor(holder),
      }
      void serve(stream, handle(http2Exchange(stream, headers, ofConnection)))
    })
  })
  const setAlarm = createAlarms()
  /** Resets a stream if its complete answer is not read in time: it would hold its memory. */
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

/**
 * Ends a session that begins too slowly, is idle, or sends too much that is not a call. In the last case its calls in flight may finish
 * first, unless the client goes on.
 */
function guardSession(session: ServerHttp2Session, socket: Socket, terms: ServerTerms) {
  const { limits, abuse, logger, refusalLog } = terms
  const nowMs = () => performance.now()
  const peer = socket.remoteAddress ?? ''
  const held = holdSession(session, terms.shares.of(socket))
  const { burst, perSecond } = limits.resets
  const clients = terms.isManyClients(peer) ? MANY_CLIENTS : 1
  const allowedResets = { burst: burst * clients, perSecond: perSecond * clients }
  let resets = createAllowance(allowedResets, nowMs)
  let controls = createAllowance(limits.controlFrames, nowMs)
  const open = createRoster<ServerHttp2Stream>()
  let isCalled = false
  let isDraining = false
  const { refreshIdle } = boundIdleness(session, limits, () => open.size() === 0)
  const tell = (message: string, what: string) =>
    refusalLog.once(peer, message, () => logger.info({ remoteAddress: peer, what }, message))
  const cut = (what: string) => {
    if (session.destroyed) return
    tell('connection ended: too many frames that are not calls', what)
    session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    session.destroy(undefined, constants.NGHTTP2_ENHANCE_YOUR_CALM)
  }
  /** Drains the session when an allowance is used up. It gets the allowances once more, to finish with. */
  const drain = (what: string) => {
    if (session.destroyed) return
    // Streams that were reset in the same bytes are closed already, although their `close` event is still to come.
    if (isDraining || open.members().every((stream) => stream.closed)) return cut(what)
    isDraining = true
    resets = createAllowance(allowedResets, nowMs)
    controls = createAllowance(limits.controlFrames, nowMs)
    tell('connection drained: too many frames that are not calls', what)
    endOnOverrun(socket, limits.drainTimeoutMs, () => cut(what))
    // It says NO_ERROR, since some clients, such as Node's, cancel their calls if it names an error.
    session.goaway(constants.NGHTTP2_NO_ERROR, 0, Buffer.from(`too many ${what} frames`))
  }
  const onControl = (what: string) => {
    if (controls.take()) return
    abuse.charge(peer, offences.flood)
    drain(what)
  }
  session.on('error', () => {})
  session.on('remoteSettings', () => onControl('SETTINGS'))
  session.on('ping', () => onControl('PING'))
  session.once('close', () => {
    if (!isCalled) abuse.charge(peer, offences.silence)
  })
  const onClose = (stream: ServerHttp2Stream, leave: () => void) => {
    leave()
    // Of a session that ends, the connection ends as well.
    if (!session.destroyed) held?.end()
    if (open.size() === 0 && !session.destroyed) {
      refreshIdle()
      if (isDraining) closeDrained(session, socket)
    }
    if (stream.headersSent) {
      const isCancelled = stream.aborted || stream.rstCode !== constants.NGHTTP2_NO_ERROR
      if (!isCancelled) {
        resets.giveBack()
        abuse.makeUp(peer)
        return
      }
      // A client with a key leaves a watch when it has what it wanted: that costs nothing, and makes up for nothing.
      if (held?.isKeyless() !== true) return
    }
    abuse.charge(peer, stream.headersSent ? offences.waste : offences.reset)
    if (!resets.take() || (!isDraining && abuse.isOnProbation(peer))) drain('RST_STREAM')
  }
  // Listens on the session, since a stream that was reset in the first bytes of a connection no longer has its session.
  session.on('stream', (stream) => {
    const leave = open.join(stream)
    held?.begin()
    isCalled = true
    refreshIdle()
    stream.on('close', () => onClose(stream, leave))
  })
  return { held, drain, retire: retiring(session, socket), onError: () => abuse.charge(peer, offences.garbage) }
}

/** How long the round trip between the two GOAWAYs may take. */
const ROUND_TRIP_MS = 1_000

/** @returns ends the session once the client knows our settings, before which no other frame may come. Its first call often comes with its own */
function retiring(session: ServerHttp2Session, socket: Socket): () => void {
  let isSettled = false
  session.once('localSettings', () => {
    isSettled = true
  })
  return () => {
    if (isSettled) return retireSession(session, socket)
    closeLater(session)
    session.once('localSettings', () => retireSession(session, socket))
  }
}

/** Closes a session that gives no answer. If this process was held up itself, the calls that came meanwhile are read first: they would be refused. */
function closeLater(session: ServerHttp2Session): void {
  const timer = setTimeout(() => setImmediate(() => session.close()), ROUND_TRIP_MS)
  session.once('close', () => clearTimeout(timer))
}

/**
 * Ends a session in two steps (RFC 9113, 6.8): a GOAWAY that asks to begin no stream, and after a round trip one that names the last stream. What
 * the client began in between is served; with the second alone it would have to be sent again, which proxies such as nginx do not dare.
 */
function retireSession(session: ServerHttp2Session, socket: Socket): void {
  if (!session.destroyed && writeNotice(socket)) {
    closeLater(session)
    if (session.ping(() => session.close())) return
  }
  session.close()
}

/**
 * Writes the first GOAWAY. Node has no way to: after its own GOAWAY nghttp2 ignores new streams. It goes past Node's buffers, so it is written only
 * where they are empty, at the end of a frame, and not within TLS.
 *
 * @returns whether it is written
 */
function writeNotice(socket: Socket & { _handle?: { fd?: number; writeQueueSize?: number } | null }): boolean {
  const { fd = -1, writeQueueSize } = socket._handle ?? {}
  if ('encrypted' in socket || fd < 0 || writeQueueSize !== 0) return false
  try {
    return writeSync(fd, GOAWAY_NOTICE) === GOAWAY_NOTICE.length
  } catch {
    // The client is gone, or reads nothing.
    return false
  }
}

/** Lets a session be closed in favour of other connections, with a GOAWAY that says so. */
function holdSession(session: ServerHttp2Session, held: HeldConnection | undefined): HeldConnection | undefined {
  held?.closeBy(() => {
    if (session.destroyed) return
    session.goaway(constants.NGHTTP2_NO_ERROR, 0, Buffer.from('closed in favour of other connections'))
    session.destroy()
  })
  return held
}

/** Ends a session that begins too slowly, and closes one that is idle for too long. */
function boundIdleness(session: ServerHttp2Session, limits: ConnectionLimits, isIdle: () => boolean) {
  const begin = setTimeout(() => session.destroy(), limits.headersTimeoutMs)
  // The bytes of an incomplete header would reset the session's own timeout, and so keep the connection open for ever.
  const idle = setTimeout(() => {
    if (isIdle()) session.close()
  }, limits.idleTimeoutMs)
  session.setTimeout(limits.idleTimeoutMs, () => session.close())
  session.once('remoteSettings', () => clearTimeout(begin))
  session.once('close', () => {
    clearTimeout(begin)
    clearTimeout(idle)
  })
  return { refreshIdle: () => void idle.refresh() }
}

/**
 * How much the client may send while its session is drained. Streams that it begins are not served any more, but take time to read. It is enough for
 * the rest of the requests that have begun; nghttp2 itself stops reading after 10,000 ignored streams.
 */
const MAX_DRAINED_BYTES = 512 * 1024

/** How often the bytes read are checked, in milliseconds. */
const CHECK_EVERY_MS = 50

/**
 * Bounds the draining of a session, which accepts no new streams while those in flight continue. The session is not closed: Node would then leave it
 * to the client to close the connection.
 *
 * @param onOverrun - called when the grace period is over or the client sends too much. It must end the connection
 */
function endOnOverrun(socket: Socket, graceMs: number, onOverrun: () => void): void {
  const readAtStart = socket.bytesRead
  const endAtMs = performance.now() + graceMs
  const check = setInterval(() => {
    if (socket.bytesRead - readAtStart > MAX_DRAINED_BYTES || performance.now() > endAtMs) onOverrun()
  }, CHECK_EVERY_MS)
  socket.once('close', () => clearInterval(check))
}

/** Closes a connection after its last call. */
function closeDrained(session: ServerHttp2Session, socket: Socket): void {
  session.close()
  // The client might keep its side open for ever.
  destroyAfter(LINGER_MS, socket)
}

/** A proxy may cancel so many times as many calls as a client, since it does so for its clients. */
const MANY_CLIENTS = 10

/** How many times the limit of headers nghttp2 accepts, so that we refuse them with a reason. */
const HTTP2_HEADER_ALLOWANCE = 2

/** What a header counts in addition to its name and value (RFC 9113, 6.5.2), in bytes. */
const HTTP2_FIELD_OVERHEAD = 32

/** NGHTTP2_FLAG_END_STREAM */
const END_STREAM = 0x1
