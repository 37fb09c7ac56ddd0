import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect as connectSocket, type Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { Code, createClient, type HandlerContext } from '@connectrpc/connect'
import { createGrpcTransport } from '@connectrpc/connect-node'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../gen/grpc/health/v1/health_pb.js'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import {
  authenticateGood,
  type EchoRequest,
  loadEchoService,
  recordingLogger,
  serveEcho,
} from '../support/clients/echo-service.ts'
import { createProtocolClients, findMethod, protocols } from '../support/clients/protocol-clients.ts'

const service = loadEchoService()
const store = findMethod(service, 'store')
const key = { 'x-api-key': 'good' }

let listener: Listener
let log: ReturnType<typeof recordingLogger>
let reached: PromiseWithResolvers<HandlerContext>
let release: PromiseWithResolvers<void>

beforeEach(async () => {
  reached = Promise.withResolvers()
  release = Promise.withResolvers()
  const handler = async ({ name }: EchoRequest, context: HandlerContext) => {
    reached.resolve(context)
    await release.promise
    return { name }
  }
  log = recordingLogger()
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo: handler, store: handler, wait: handler, count: handler })],
    authenticate: authenticateGood,
    logger: log.logger,
    ready: async () => true,
  })
})

afterEach(() => listener.stop({ graceMs: 0 }))

/* RFC 9113, 6 */
const [HEADERS, SETTINGS, PING, GOAWAY] = [0x1, 0x4, 0x6, 0x7]
/** As flags: of SETTINGS and PING; END_STREAM and END_HEADERS together. */
const [ACK, END] = [0x1, 0x5]
const CLIENT_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
/** GET http: from the static table of HPACK, and a path and an authority as literals. */
const HEALTHZ = Buffer.concat([
  Buffer.from([0x82, 0x86, 0x04, 8]),
  Buffer.from('/healthz'),
  Buffer.from([0x01, 1]),
  Buffer.from('a'),
])

function frame(type: number, flags: number, payload: Buffer, stream = 0): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

interface Frame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
}

/** Reads the frames of a server one after the other. */
function readFrames(socket: Socket) {
  let bytes = Buffer.alloc(0)
  const pieces = socket[Symbol.asyncIterator]()
  const read = async (): Promise<Frame> => {
    while (bytes.length < 9 || bytes.length < 9 + bytes.readUIntBE(0, 3)) {
      const { value, done } = (await pieces.next()) as IteratorResult<Buffer>
      if (done === true) throw new Error('the server has closed the connection')
      bytes = Buffer.concat([bytes, value])
    }
    const [end, head] = [9 + bytes.readUIntBE(0, 3), bytes]
    bytes = head.subarray(end)
    return { type: head[3] ?? 0, flags: head[4] ?? 0, stream: head.readUInt32BE(5), payload: head.subarray(9, end) }
  }
  return {
    /** The next frame that is as wanted; those before it are left out. */
    async next(isWanted: (each: Frame) => boolean): Promise<Frame> {
      for (;;) {
        const each = await read()
        if (isWanted(each)) return each
      }
    },
  }
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connectSocket(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

describe('drain', () => {
  const readiness = async () => (await fetch(`${listener.url}/readyz`)).status

  it.each(protocols)('lets new calls over %s go on, also over new connections', async (protocol) => {
    release.resolve()
    const clients = createProtocolClients(listener.url, { store: '/v1/echo' })
    const call = (name: string) =>
      clients.find((each) => each.protocol === protocol)?.call(store, { name }, { headers: key })
    expect(await call('before')).toMatchObject({ answer: { name: 'before' } })
    listener.drain()
    expect(await call('after')).toMatchObject({ answer: { name: 'after' } })
    const [fresh] = createProtocolClients(listener.url, { store: '/v1/echo' })
    expect(await fresh?.call(store, { name: 'fresh' }, { headers: key })).toMatchObject({ answer: { name: 'fresh' } })
    for (const each of clients) each.close()
  })

  it('says that the process is not ready, and alive', async () => {
    expect(await readiness()).toBe(200)
    listener.drain()
    expect(await readiness()).toBe(503)
    expect((await fetch(`${listener.url}/healthz`)).status).toBe(200)
  })

  it('tells those who watch the health at once', async () => {
    const transport = createGrpcTransport({ baseUrl: listener.url })
    const health = createClient(Health, transport)
    const watched = health.watch({})[Symbol.asyncIterator]()
    expect((await watched.next()).value).toMatchObject({ status: Status.SERVING })
    listener.drain()
    expect((await watched.next()).value).toMatchObject({ status: Status.NOT_SERVING })
    expect(await health.check({})).toMatchObject({ status: Status.NOT_SERVING })
    await listener.stop({ graceMs: 10_000 })
    await expect(watched.next()).rejects.toMatchObject({ code: Code.Unavailable })
  })

  it('closes connections of HTTP/1.1 with their next answer', async () => {
    const socket = connectSocket(listener.port, listener.host)
    const ask = () => void socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')
    ask()
    expect(String((await once(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 200 [^]*connection: keep-alive/i)
    listener.drain()
    ask()
    expect((await buffer(socket)).toString()).toMatch(/^HTTP\/1.1 200 [^]*connection: close/i)
  })
})

describe('stop', () => {
  it.each(protocols)('lets a call over %s finish, and accepts no other', async (protocol) => {
    const clients = createProtocolClients(listener.url, { store: '/v1/echo' })
    const client = clients.find((each) => each.protocol === protocol)
    const call = client?.call(store, { name: 'last' }, { headers: key })
    const { signal } = await reached.promise
    const stopped = listener.stop({ graceMs: 10_000 })
    await vi.waitFor(async () => expect(await isOpen(listener.port)).toBe(false))
    release.resolve()
    expect(await call).toMatchObject({ answer: { name: 'last' } })
    await stopped
    expect(signal.aborted).toBe(false)
    for (const each of clients) each.close()
  })

  it('closes idle connections of every protocol soon', async () => {
    const silent = connectSocket(listener.port, listener.host)
    await once(silent, 'connect')
    const http1 = connectSocket(listener.port, listener.host)
    http1.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')
    await once(http1, 'data')
    const http2 = connectHttp2(listener.url)
    await once(http2, 'remoteSettings')
    const connections = [silent, http1, http2]
    const closed = connections.map((each) => {
      each.on('error', () => {})
      return once(each, 'close')
    })
    for (const socket of [silent, http1]) socket.resume()
    await listener.stop({ graceMs: 60_000 })
    await Promise.all(closed)
    expect(connections.map((each) => each.destroyed)).toEqual([true, true, true])
  })

  it('tells HTTP/1.1 clients that the connection closes after the answer', async () => {
    const socket = connectSocket(listener.port, listener.host)
    socket.write('GET /v1/echo/a HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\n\r\n')
    await reached.promise
    const stopped = listener.stop({ graceMs: 10_000 })
    release.resolve()
    const answer = (await buffer(socket)).toString().toLowerCase()
    expect(answer).toMatch(/^http\/1\.1 200 /)
    expect(answer).toContain('\r\nconnection: close')
    await stopped
  })

  it('accepts no further request on an HTTP/2 connection', async () => {
    const session: ClientHttp2Session = connectHttp2(listener.url)
    const first = session.request({ ':path': '/v1/echo/a', ...key })
    await reached.promise
    const goaway = once(session, 'goaway')
    const stopped = listener.stop({ graceMs: 10_000 })
    await goaway
    const second = session.request({ ':path': '/v1/echo/b', ...key })
    expect(await once(second, 'error')).toMatchObject([{ code: 'ERR_HTTP2_GOAWAY_SESSION' }])
    release.resolve()
    const [fields] = (await once(first, 'response')) as [Record<string, unknown>]
    expect(fields[':status']).toBe(200)
    first.resume()
    await stopped
  })

  it.each(protocols)(
    'ends a call over %s that is left after the grace period with an answer, and a warning',
    async (protocol) => {
      const clients = createProtocolClients(listener.url, { store: '/v1/echo' })
      const call = clients.find((each) => each.protocol === protocol)?.call(store, { name: 'late' }, { headers: key })
      const { signal } = await reached.promise
      await listener.stop({ graceMs: 20 })
      expect(await call).toMatchObject({ code: 'unavailable', reason: 'SHUTTING_DOWN' })
      expect(signal.reason).toMatchObject({ reason: 'SHUTTING_DOWN' })
      const ofCalls = log.lines.filter(({ message }) => message === 'call')
      expect(ofCalls).toMatchObject([{ level: 'warn', fields: { code: 'unavailable', reason: 'SHUTTING_DOWN' } }])
      for (const each of clients) each.close()
    },
  )

  it.each(['new', 'idle'])(
    'answers a request that arrives over an %s connection just after the port is closed',
    async (state) => {
      const socket = connectSocket(listener.port, listener.host)
      await once(socket, 'connect')
      if (state === 'idle') {
        socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')
        await once(socket, 'data')
      }
      const stopped = listener.stop({ graceMs: 10_000 })
      await vi.waitFor(async () => expect(await isOpen(listener.port)).toBe(false))
      socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n')
      expect((await buffer(socket)).toString()).toMatch(/^HTTP\/1.1 200 /)
      await stopped
    },
  )

  it.each([
    ['', 0],
    [', also after it was held up itself', 1_100],
  ])(
    'says to clients of HTTP/2 in two steps which calls are the last, and serves what they send in between%s',
    async (_, heldUpMs) => {
      const socket = connectSocket(listener.port, listener.host)
      const frames = readFrames(socket)
      const settings = [frame(SETTINGS, 0, Buffer.alloc(0)), frame(SETTINGS, ACK, Buffer.alloc(0))]
      socket.write(Buffer.concat([CLIENT_PREFACE, ...settings, frame(PING, 0, Buffer.alloc(8))]))
      // The server has read everything before.
      await frames.next(({ type, flags }) => type === PING && flags === ACK)
      const stopped = listener.stop({ graceMs: 10_000 })
      const notice = await frames.next(({ type }) => type === GOAWAY)
      expect([notice.payload.readUInt32BE(0), notice.payload.readUInt32BE(4)]).toEqual([2 ** 31 - 1, 0])
      const { payload } = await frames.next(({ type, flags }) => type === PING && flags !== ACK)
      socket.write(Buffer.concat([frame(HEADERS, END, HEALTHZ, 1), frame(PING, ACK, payload)]))
      // For longer than the server waits for the answer to its PING, it reads nothing.
      if (heldUpMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, heldUpMs)
      const isLast = ({ type }: Frame) => type === GOAWAY || type === HEADERS
      const last = [await frames.next(isLast), await frames.next(isLast)].toSorted(
        (one, other) => one.type - other.type,
      )
      expect(last).toMatchObject([{ type: HEADERS, stream: 1 }, { type: GOAWAY }])
      expect(last[1]?.payload.subarray(0, 8)).toEqual(Buffer.from([0, 0, 0, 1, 0, 0, 0, 0]))
      socket.resume()
      await stopped
    },
  )

  it('may be called twice', async () => {
    await Promise.all([listener.stop({ graceMs: 0 }), listener.stop({ graceMs: 0 })])
    expect(await isOpen(listener.port)).toBe(false)
  })

  it('frees the port', async () => {
    const { port } = listener
    await listener.stop({ graceMs: 0 })
    listener = await serveApi({
      host: '127.0.0.1',
      port,
      services: [],
      authenticate: authenticateGood,
      logger: recordingLogger().logger,
      ready: async () => true,
    })
    expect(await (await fetch(`${listener.url}/healthz`)).json()).toEqual({ status: 'ok' })
  })
})
