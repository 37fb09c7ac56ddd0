import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  END_HEADERS,
  END_STREAM,
  fieldBlock,
  frame,
  frameTypes,
  preface,
  uint32,
} from '../../bench/hostile/hostile-frames.ts'
import type { Listener } from '../../src/api/listener/listener.ts'
import { type ApiLimits, serveApi } from '../../src/api/serve-api.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import { authenticateGood, loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { sendBytes, sendRequest } from '../support/clients/raw-http.ts'

const service = loadEchoService()
const key = { 'x-api-key': 'good' }
const json = { ...key, 'content-type': 'application/json' }
const storePath = '/tests.v1.EchoService/Store'

let listener: Listener
/** Handlers that wait until a test lets them continue. */
let waiting: PromiseWithResolvers<void>
let sessions: ClientHttp2Session[]
let sockets: Socket[]

beforeEach(() => {
  waiting = Promise.withResolvers()
  sessions = []
  sockets = []
})

afterEach(async () => {
  waiting.resolve()
  for (const session of sessions) session.destroy()
  for (const socket of sockets) socket.destroy()
  await listener.stop({ graceMs: 0 })
})

async function listen(
  limits: Partial<ApiLimits> = {},
  more: Partial<Parameters<typeof serveApi>[0]> = {},
): Promise<void> {
  const handler = async ({ name }: { readonly name: string }) => ({
    name: name === 'large' ? name : 'answered',
    filler: name === 'large' ? 'z'.repeat(1_000_000) : '',
  })
  const wait = async () => {
    await waiting.promise
    return { name: 'waited' }
  }
  async function* count() {
    yield { name: 'first' }
    await waiting.promise
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo: handler, store: handler, wait, count })],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
    limits: { headersTimeoutMs: 300, requestTimeoutMs: 300, maxCallMs: 400, idleTimeoutMs: 2_000, ...limits },
    ...more,
  })
}

/** Another client, over a connection of its own. */
async function otherIsAnswered(): Promise<boolean> {
  const { status, body } = await sendRequest(listener.port, { target: '/v1/echo/a', headers: key })
  return status === 200 && body.includes('answered')
}

function reasonOf(body: string): unknown {
  const [detail] = (JSON.parse(body) as { details: { reason?: string; debug?: { reason: string } }[] }).details
  return detail?.reason ?? detail?.debug?.reason
}

async function open(bytes: string | Uint8Array, localAddress = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port: listener.port, host: '127.0.0.1', localAddress })
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(bytes)
  return socket
}

/** Also if it happens before it is awaited. */
function closeOf(socket: Socket | ClientHttp2Stream): Promise<unknown> {
  socket.resume()
  return new Promise((resolve) => socket.once('close', resolve))
}

function openSession(settings = {}, localAddress = '127.0.0.1'): ClientHttp2Session {
  const session = connectHttp2(listener.url, {
    settings,
    maxSendHeaderBlockLength: 2_000_000,
    createConnection: () => connect({ port: listener.port, host: '127.0.0.1', localAddress }),
  })
  session.on('error', () => {})
  sessions.push(session)
  return session
}

/** A stream whose request body is not complete. */
function begin(session: ClientHttp2Session, fields: Readonly<Record<string, string>>): ClientHttp2Stream {
  const stream = session.request({ ':method': 'POST', ...fields })
  stream.on('error', () => {})
  return stream
}

async function statusOf(stream: ClientHttp2Stream): Promise<number> {
  const [headers] = (await once(stream, 'response')) as [Record<string, number>]
  return headers[':status'] ?? 0
}

const countPath = '/tests.v1.EchoService/Count'

/** A stream of messages, after its first message. */
async function beginAnswered(session: ClientHttp2Session): Promise<ClientHttp2Stream> {
  const stream = begin(session, { ':path': countPath, ...key, 'content-type': 'application/grpc' })
  stream.end(Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x61]))
  await once(stream, 'data')
  return stream
}

/** The status of a call that is answered when the test lets it. */
function beginWaiting(session: ClientHttp2Session): Promise<number> {
  return statusOf(
    begin(session, { ':method': 'GET', ':path': '/v1/wait/a', ...key })
      .end()
      .resume(),
  )
}

/** The frames of a call that is answered when the test lets it. */
function call(stream: number): Buffer {
  const fields = { ':method': 'GET', ':scheme': 'http', ':authority': 'a', ':path': '/v1/wait/a', ...key }
  return frame(frameTypes.headers, END_HEADERS | END_STREAM, stream, fieldBlock(fields))
}

function reset(stream: number, code: number): Buffer {
  return frame(frameTypes.reset, 0, stream, uint32(code))
}

/** The error codes of the GOAWAY frames in the bytes of the service. */
function codesOfGoaway(sent: Buffer): readonly number[] {
  const codes: number[] = []
  for (let at = 0; at + 9 <= sent.length; at += 9 + sent.readUIntBE(at, 3)) {
    if (sent[at + 3] === 7) codes.push(sent.readUInt32BE(at + 13))
  }
  return codes
}

/** The error code with which the service ends a connection. */
async function codeOfEnd(session: ClientHttp2Session): Promise<number> {
  const [code] = (await once(session, 'goaway')) as [number]
  return code
}

describe('a slow client', () => {
  it('that sends nothing is disconnected', async () => {
    await listen()
    const silent = await open('')
    const closed = closeOf(silent)
    expect(await otherIsAnswered()).toBe(true)
    await closed
  })

  it.each([
    ['headers', 'GET /v1/echo/a HTTP/1.1\r\nhost: a\r\n'],
    [
      'a body',
      `POST /v1/echo HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{`,
    ],
  ])('that sends %s over HTTP/1.1 is answered with 408', async (_name, bytes) => {
    await listen()
    const slow = await open(bytes)
    const drip = setInterval(() => slow.write('x'), 50)
    slow.once('close', () => clearInterval(drip))
    expect(await otherIsAnswered()).toBe(true)
    const answer = await text(slow)
    expect([answer.slice(0, 12), answer]).toEqual(['HTTP/1.1 408', expect.stringContaining('REQUEST_TOO_SLOW')])
  })

  it('that sends a part of the HTTP/2 preface is disconnected', async () => {
    await listen()
    const slow = await open('PRI * HTTP/2.0\r\n')
    const closed = closeOf(slow)
    expect(await otherIsAnswered()).toBe(true)
    await closed
  })

  it.each([
    ['a call', { ':path': '/v1/echo', ...json }, 408],
    ['gRPC', { ':path': storePath, ...key, 'content-type': 'application/grpc' }, 200],
    ['the request of a stream', { ':path': countPath, ...key, 'content-type': 'application/grpc' }, 200],
  ])(
    'with the body of %s over HTTP/2 is answered with an error, and keeps its connection',
    async (_name, fields, status) => {
      await listen()
      const session = openSession()
      const slow = begin(session, fields)
      slow.write('{')
      expect(await otherIsAnswered()).toBe(true)
      const [headers, , raw] = (await once(slow, 'response')) as [Record<string, string | number>, number, string[]]
      slow.resume()
      await once(slow, 'close')
      expect(headers[':status']).toBe(status)
      if (status === 200) expect(headers['grpc-status'] ?? raw).toBeDefined()
      expect(session.destroyed).toBe(false)
      const next = session.request({ ':path': '/v1/echo/a', ...key })
      expect(await statusOf(next)).toBe(200)
    },
  )

  it('that does not read an answer loses it, over HTTP/1.1 and HTTP/2', async () => {
    await listen()
    const idle = await open('GET /v1/echo/large HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\n\r\n'.repeat(20))
    idle.pause()
    expect(await otherIsAnswered()).toBe(true)
    const stuck = openSession({ initialWindowSize: 0 }).request({ ':path': '/v1/echo/large', ...key })
    stuck.on('error', () => {})
    // Its time began after that of the other.
    await once(stuck, 'close')
    expect(stuck.rstCode).toBe(constants.NGHTTP2_CANCEL)
    expect((await text(idle).catch(() => '')).length).toBeLessThan(20_000_000)
    expect(await otherIsAnswered()).toBe(true)
  })
})

describe('a client that floods an HTTP/2 connection', () => {
  it('with cancelled calls gets ENHANCE_YOUR_CALM', async () => {
    await listen({ resets: { burst: 50, perSecond: 1 } })
    const frames = Array.from({ length: 200 }, (_, n) => [call(2 * n + 1), reset(2 * n + 1, constants.NGHTTP2_CANCEL)])
    const flood = await open(Buffer.concat([preface(), ...frames.flat()]))
    expect(codesOfGoaway(await buffer(flood))).toContain(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    expect(await otherIsAnswered()).toBe(true)
  })

  it.each([
    ['PING', (session: ClientHttp2Session) => session.ping(() => {})],
    ['SETTINGS', (session: ClientHttp2Session) => session.settings({ initialWindowSize: 70_000 })],
  ])('with %s gets ENHANCE_YOUR_CALM', async (_name, send) => {
    await listen({ controlFrames: { burst: 5, perSecond: 1 } })
    const session = openSession()
    await once(session, 'connect')
    const ended = codeOfEnd(session)
    for (let n = 0; n < 9; n++) send(session)
    expect(await ended).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    expect(await otherIsAnswered()).toBe(true)
  })

  it('with CONTINUATION frames loses the connection', async () => {
    await listen()
    const frame = (type: number, stream: number, payload: Buffer) => {
      const head = Buffer.alloc(9)
      head.writeUIntBE(payload.length, 0, 3)
      head[3] = type
      head.writeUInt32BE(stream, 5)
      return Buffer.concat([head, payload])
    }
    const start = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
    // No frame ends the headers: x-a: b, again and again.
    const field = Buffer.from([0x00, 3, 0x78, 0x2d, 0x61, 1, 0x62])
    const more = frame(9, 1, Buffer.concat(Array.from({ length: 1000 }, () => field)))
    const flood = await open(Buffer.concat([start, frame(4, 0, Buffer.alloc(0)), frame(1, 1, field)]))
    flood.write(Buffer.concat(Array.from({ length: 200 }, () => more)))
    flood.resume()
    await once(flood, 'close')
    expect(await otherIsAnswered()).toBe(true)
  })

  it('with more streams than allowed gets the further ones refused', async () => {
    await listen({ maxStreams: 2 })
    const session = openSession()
    await once(session, 'remoteSettings')
    expect(session.remoteSettings.maxConcurrentStreams).toBe(2)
  })
})

const hostile = '127.0.0.2'
const earnsNothing = (burst: number) => ({ burst, perSecond: 0 })

it('a client that cancels answered streams keeps the connection, and its calls in flight are answered', async () => {
  await listen({
    maxCallMs: 60_000,
    resets: earnsNothing(5),
    abuse: { probation: earnsNothing(5), bar: earnsNothing(5), maxAddresses: 9 },
  })
  const session = openSession({}, hostile)
  await once(session, 'remoteSettings')
  const inFlight = beginWaiting(session)
  for (let round = 0; round < 2; round++) {
    const streams = await Promise.all(Array.from({ length: 50 }, () => beginAnswered(session)))
    for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
    await new Promise((resolve) => session.ping(resolve))
  }
  waiting.resolve()
  expect(await inFlight).toBe(200)
  expect(session.closed).toBe(false)
})

it('a client without a key that cancels answered streams loses the connection', async () => {
  await listen({ resets: earnsNothing(5) })
  const session = openSession({}, hostile)
  await once(session, 'remoteSettings')
  const ended = new Promise((resolve) => session.once('close', resolve))
  for (let n = 0; n < 20 && !session.destroyed; n++) {
    const watch = begin(session, { ':path': '/grpc.health.v1.Health/Watch', 'content-type': 'application/grpc' })
    watch.end(Buffer.alloc(5))
    await Promise.race([once(watch, 'data'), ended]).catch(() => {})
    watch.close(constants.NGHTTP2_CANCEL)
    await Promise.race([closeOf(watch), ended])
  }
  await ended
  expect(await otherIsAnswered()).toBe(true)
})

describe('an HTTP/2 connection that exceeds its limits with calls in flight', () => {
  /** Cancels so many calls before their answer; resolves when the service has sent GOAWAY. */
  async function breakRules(session: ClientHttp2Session): Promise<number> {
    const ended = codeOfEnd(session)
    for (let n = 0; n < 9; n++) {
      begin(session, { ':method': 'GET', ':path': '/v1/wait/a', ...key }).close(constants.NGHTTP2_CANCEL)
    }
    return ended
  }

  it('accepts no other calls, answers those in flight, and is closed', async () => {
    await listen({ maxCallMs: 60_000, resets: earnsNothing(5) })
    const session = openSession()
    await once(session, 'remoteSettings')
    const inFlight = [beginWaiting(session), beginWaiting(session)]
    const closed = once(session, 'close')
    expect(await breakRules(session)).toBe(constants.NGHTTP2_NO_ERROR)
    await expect.poll(() => session.closed).toBe(true)
    expect(session.destroyed).toBe(false)
    waiting.resolve()
    expect(await Promise.all(inFlight)).toEqual([200, 200])
    await closed
  })

  it('is closed if they are not finished in time', async () => {
    await listen({ maxCallMs: 60_000, resets: earnsNothing(5), drainTimeoutMs: 100 })
    const session = openSession()
    await once(session, 'remoteSettings')
    const cut = closeOf(begin(session, { ':method': 'GET', ':path': '/v1/wait/a', ...key }).end())
    await breakRules(session)
    await cut
    expect(await otherIsAnswered()).toBe(true)
  })

  const PING = frame(frameTypes.ping, 0, 0, Buffer.alloc(8))
  const broken = (stream: number) => [call(stream), reset(stream, constants.NGHTTP2_CANCEL)]

  it.each([
    ['control frames', () => Array.from({ length: 9 }, () => PING)],
    ['streams that nobody takes any more', (next: number) => Array.from({ length: 500 }, (_, n) => call(next + 2 * n))],
  ])('is closed at once if it goes on with %s', async (_name, more) => {
    await listen({ maxCallMs: 60_000, idleTimeoutMs: 60_000, resets: earnsNothing(5), controlFrames: earnsNothing(3) })
    const socket = await open(Buffer.concat([preface(), call(1), ...[3, 5, 7, 9, 11, 13].flatMap(broken)]))
    const sent = buffer(socket)
    let next = 15
    const flood = setInterval(() => {
      socket.write(Buffer.concat(more(next)))
      next += 1_000
    }, 5)
    expect(codesOfGoaway(await sent).slice(0, 2)).toEqual([
      constants.NGHTTP2_NO_ERROR,
      constants.NGHTTP2_ENHANCE_YOUR_CALM,
    ])
    clearInterval(flood)
    expect(await otherIsAnswered()).toBe(true)
  })
})

describe('a client that goes on over one connection after another', () => {
  /** Cancels calls until the service ends the connection. @returns how many it took */
  async function breakOffMany(session: ClientHttp2Session): Promise<number> {
    await once(session, 'remoteSettings')
    const ended = once(session, 'close')
    let resets = 0
    for (; !session.destroyed; resets++) {
      const stream = begin(session, { ':method': 'GET', ':path': '/v1/wait/a', ...key })
      stream.close(constants.NGHTTP2_CANCEL)
      await Promise.race([once(stream, 'close'), ended])
      // It is answered after the reset, so the service has seen the reset.
      if (!session.destroyed) await Promise.race([new Promise((resolve) => session.ping(resolve)), ended])
    }
    return resets
  }

  it('to cancel calls may do so once on each connection, and is then barred', async () => {
    await listen({ abuse: { probation: earnsNothing(10), bar: earnsNothing(12), maxAddresses: 10 } })
    const counts = [await breakOffMany(openSession({}, hostile)), await breakOffMany(openSession({}, hostile))]
    expect(counts).toEqual([11, 1])
    await breakOffMany(openSession({}, hostile))
    const late = await open('GET /v1/echo/a HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\n\r\n', hostile)
    expect(await text(late).catch(() => '')).toBe('')
    expect(await otherIsAnswered()).toBe(true)
  })

  it('harms neither open connections of its address nor this machine', async () => {
    await listen({ abuse: { probation: earnsNothing(0), bar: earnsNothing(10), maxAddresses: 10 } })
    const [good, fromHere] = [openSession({}, hostile), openSession()]
    await Promise.all([once(good, 'remoteSettings'), once(fromHere, 'remoteSettings')])
    for (const address of [hostile, '127.0.0.1']) await text(await open('hello\r\n\r\n'.repeat(2), address))
    for (const address of [hostile, '127.0.0.1']) await text(await open('hello\r\n\r\n', address)).catch(() => '')
    expect(await text(await open('hello\r\n\r\n', hostile)).catch(() => '')).toBe('')
    expect(await statusOf(good.request({ ':path': '/v1/echo/a', ...key }))).toBe(200)
    expect(await otherIsAnswered()).toBe(true)
  })

  it('and cancels as many calls as are answered keeps the connection', async () => {
    await listen({
      resets: earnsNothing(5),
      abuse: { probation: earnsNothing(5), bar: earnsNothing(5), maxAddresses: 9 },
    })
    const session = openSession({}, hostile)
    for (let n = 0; n < 50; n++) {
      expect(await statusOf(session.request({ ':path': '/v1/echo/a', ...key }))).toBe(200)
      const stream = begin(session, { ':method': 'GET', ':path': '/v1/wait/a', ...key })
      stream.close(constants.NGHTTP2_CANCEL)
      await once(stream, 'close')
    }
    expect(session.destroyed).toBe(false)
  })

  it('is counted also for resets with NO_ERROR', async () => {
    await listen({ resets: earnsNothing(5) })
    const frames = Array.from({ length: 20 }, (_, n) => [call(2 * n + 1), reset(2 * n + 1, constants.NGHTTP2_NO_ERROR)])
    const flood = await open(Buffer.concat([preface(), ...frames.flat()]))
    expect(codesOfGoaway(await buffer(flood))).toContain(constants.NGHTTP2_ENHANCE_YOUR_CALM)
  })

  it('is barred earlier when many do so at once, so that together they cost no more', async () => {
    await listen({ abuse: { probation: earnsNothing(1_000), bar: earnsNothing(200), maxAddresses: 99 } })
    const garbage = async (n: number) => text(await open('hello\r\n\r\n', `127.0.3.${n}`)).catch(() => '')
    for (let n = 1; n <= 40; n++) expect(await garbage(n)).toContain('MALFORMED_REQUEST')
    // Each has 10 of its 200 units left, a twentieth, and has used them.
    expect(await garbage(1)).toContain('MALFORMED_REQUEST')
    expect(await garbage(1)).toBe('')
    expect(await otherIsAnswered()).toBe(true)
  })

  it('over connections that it has loses them when it is barred', async () => {
    let left = 3
    const countOpen = () => {
      left -= 1
      if (left >= 0) return
      throw waybillError('RATE_LIMITED', { limit: 3, retryAfterSeconds: 60 })
    }
    await listen({ abuse: { probation: earnsNothing(100), bar: earnsNothing(5), maxAddresses: 9 } }, { countOpen })
    const session = openSession({}, hostile)
    const closed = new Promise((resolve) => session.once('close', resolve))
    for (let n = 0; n < 20 && !session.closed && !session.destroyed; n++) {
      const stream = session.request({ ':path': '/nowhere' })
      stream.on('error', () => {}).resume()
      await Promise.race([new Promise((resolve) => stream.once('close', resolve)), closed])
    }
    await closed
    expect(session.destroyed).toBe(true)
  })

  it('with bodies that are too large is barred', async () => {
    await listen({ abuse: { probation: earnsNothing(10), bar: earnsNothing(30), maxAddresses: 10 } })
    const post = `POST /v1/echo HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 9999999\r\n\r\n`
    const answers: string[] = []
    for (let n = 0; n < 3; n++) answers.push((await text(await open(post, hostile)).catch(() => '')).slice(0, 12))
    expect(answers).toEqual(['HTTP/1.1 413', 'HTTP/1.1 413', ''])
  })
})

describe('beyond the limits of the process', () => {
  it('connections: the next is refused in its own protocol while none is idle', async () => {
    // No timeout may close another connection meanwhile.
    await listen({ maxConnections: 3, maxCallMs: 60_000, idleTimeoutMs: 60_000 })
    const held = await Promise.all(
      [1, 2, 3].map(() => open('GET /v1/wait/a HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\n\r\n')),
    )
    const { status, headers, body } = await sendRequest(listener.port, { target: '/v1/echo/a', headers: key })
    expect([status, headers['retry-after'], reasonOf(body)]).toEqual([503, '1', 'TOO_MANY_CONNECTIONS'])
    expect(await codeOfEnd(openSession())).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM)
    const [first] = held
    waiting.resolve()
    const gone = once(first as Socket, 'close')
    first?.resume().end()
    await gone
    await expect.poll(otherIsAnswered).toBe(true)
  })

  it('calls: the next is refused with the time to retry after, and health is answered', async () => {
    await listen({ maxCalls: 2, maxCallMs: 60_000 })
    const session = openSession()
    for (let n = 0; n < 2; n++) session.request({ ':path': '/v1/wait/a', ...key })
    const refused = async () => {
      const { status, headers, body } = await sendRequest(listener.port, { target: '/v1/echo/a', headers: key })
      return status === 503 && headers['retry-after'] === '1' && reasonOf(body) === 'OVERLOADED'
    }
    await expect.poll(refused).toBe(true)
    const grpc = begin(session, { ':path': storePath, ...key, 'content-type': 'application/grpc' })
    const [fields] = (await once(grpc.end(), 'response')) as [Record<string, string>]
    expect(fields['grpc-status']).toBe('14')
    expect((await sendRequest(listener.port, { target: '/healthz' })).status).toBe(200)
    waiting.resolve()
    await expect.poll(otherIsAnswered).toBe(true)
  })

  it('streams: the next is refused while calls are answered, and gets through when one has ended', async () => {
    await listen({ maxOpenStreams: 1 })
    const session = openSession()
    const count = () => {
      const stream = begin(session, {
        ':path': countPath,
        ...key,
        'content-type': 'application/grpc',
      })
      stream.end(Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x61]))
      return stream
    }
    const first = count()
    await once(first, 'data')
    // Without a message the trailers are sent as headers.
    const [headers] = (await once(count().resume(), 'response')) as [Record<string, string>]
    expect(headers['grpc-status']).toBe('14')
    expect(await otherIsAnswered()).toBe(true)
    first.close(constants.NGHTTP2_CANCEL)
    const isServed = () => {
      const stream = count()
      const ends = ['data', 'end'].map((name) => once(stream, name).then(() => name))
      return Promise.race(ends).finally(() => stream.close())
    }
    await expect.poll(isServed).toBe('data')
  })
})

/** Messages of two bytes, as a field 5 of EchoRequest. */
const manyEmpty = Buffer.concat(Array.from({ length: 100_000 }, () => Buffer.from([0x2a, 0])))
const proto = { ...key, 'content-type': 'application/proto' }
const fiveMillion = 'a'.repeat(5_000_000)

describe('a request that is too large', () => {
  const post = { method: 'POST', target: '/v1/echo' }
  it.each([
    ['a path', { target: `/v1/echo/${'a'.repeat(70_000)}` }, 431, 'HEADERS_TOO_LARGE'],
    ['a header', { target: '/', headers: { 'x-a': 'a'.repeat(70_000) } }, 431, 'HEADERS_TOO_LARGE'],
    [
      'the number of headers',
      { target: '/', headers: Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`x-${n}`, ''])) },
      431,
      'HEADERS_TOO_LARGE',
    ],
    ['a body', { ...post, headers: json, body: JSON.stringify({ name: fiveMillion }) }, 413, 'BODY_TOO_LARGE'],
    ['a key', { target: '/v1/echo/a', headers: { 'x-api-key': 'a'.repeat(60_000) } }, 401, 'INVALID_API_KEY'],
    ['the depth of JSON', { ...post, headers: json, body: '{"inner":'.repeat(20_000) }, 400, 'BODY_TOO_COMPLEX'],
    ['the depth of lists', { ...post, headers: json, body: '['.repeat(200_000) }, 400, 'BODY_TOO_COMPLEX'],
    [
      'a list in JSON',
      { ...post, headers: json, body: `{"inners":[${'{},'.repeat(80_000)}{}]}` },
      400,
      'BODY_TOO_COMPLEX',
    ],
    ['a list in binary', { ...post, target: storePath, headers: proto, body: manyEmpty }, 400, 'BODY_TOO_COMPLEX'],
    [
      'a packed list in binary',
      {
        ...post,
        target: storePath,
        headers: proto,
        body: Buffer.concat([Buffer.from([0x1a, 0x80, 0x80, 0x08]), Buffer.alloc(131_072, 1)]),
      },
      400,
      'BODY_TOO_COMPLEX',
    ],
    [
      'what gzip makes of little',
      { ...post, headers: { ...json, 'content-encoding': 'gzip' }, body: gzipSync(Buffer.alloc(200_000_000)) },
      413,
      'BODY_TOO_LARGE',
    ],
    [
      'what br makes of little',
      { ...post, headers: { ...json, 'content-encoding': 'br' }, body: brotliCompressSync(Buffer.alloc(20_000_000)) },
      413,
      'BODY_TOO_LARGE',
    ],
    [
      'garbage as gzip',
      { ...post, headers: { ...json, 'content-encoding': 'gzip' }, body: 'x' },
      400,
      'MALFORMED_BODY',
    ],
    [
      'garbage as a message',
      { ...post, target: storePath, headers: proto, body: Buffer.alloc(5_000, 0xff) },
      400,
      'MALFORMED_BODY',
    ],
  ])('%s is refused', async (_name, request, status, reason) => {
    await listen({ requestTimeoutMs: 10_000, maxCallMs: 10_000 })
    const answer = await sendRequest(listener.port, request)
    expect([answer.status, reasonOf(answer.body)]).toEqual([status, reason])
    expect(await otherIsAnswered()).toBe(true)
  })

  it('a length of 4 GB in gRPC is refused, and costs no memory', async () => {
    await listen({ requestTimeoutMs: 10_000, maxCallMs: 10_000 })
    const session = openSession()
    const before = process.memoryUsage().rss
    const answers = Array.from({ length: 50 }, async () => {
      const stream = begin(session, { ':path': storePath, ...key, 'content-type': 'application/grpc' })
      stream.end(Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1]))
      const [headers] = (await once(stream, 'response')) as [Record<string, string>]
      return headers['grpc-status']
    })
    expect(new Set(await Promise.all(answers))).toEqual(new Set(['8']))
    expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000)
  })

  it('a field of more than 64 KiB over HTTP/2 ends its connection and no other', async () => {
    await listen()
    const session = openSession()
    await once(session, 'remoteSettings')
    const closed = new Promise((resolve) => session.once('close', resolve))
    begin(session, { ':method': 'GET', ':path': '/v1/echo/a', ...key, 'x-a': 'a'.repeat(200_000) }).end()
    await closed
    expect(await otherIsAnswered()).toBe(true)
  })

  it('600 headers over HTTP/2 are refused, and the connection goes on', async () => {
    await listen()
    const session = openSession()
    const many = Object.fromEntries(Array.from({ length: 600 }, (_, n) => [`x-${n}`, '']))
    const stream = session.request({ ':path': '/v1/echo/a', ...key, ...many })
    expect(await statusOf(stream)).toBe(431)
    expect(reasonOf(await text(stream))).toBe('HEADERS_TOO_LARGE')
    expect(await statusOf(session.request({ ':path': '/v1/echo/a', ...key }))).toBe(200)
  })

  it('a gzip bomb in gRPC is refused', async () => {
    await listen({ requestTimeoutMs: 10_000, maxCallMs: 10_000 })
    const bomb = gzipSync(Buffer.alloc(200_000_000))
    const prefix = Buffer.from([1, 0, 0, 0, 0])
    prefix.writeUInt32BE(bomb.length, 1)
    const fields = { ':path': storePath, ...key, 'content-type': 'application/grpc', 'grpc-encoding': 'gzip' }
    const stream = begin(openSession(), fields)
    stream.end(Buffer.concat([prefix, bomb]))
    const [headers] = (await once(stream, 'response')) as [Record<string, string>]
    expect(headers['grpc-message']).toContain('larger than')
    expect(await otherIsAnswered()).toBe(true)
  })
})

it('an endless body is read neither endlessly nor for long', async () => {
  await listen({ requestTimeoutMs: 60_000 })
  const head = 'POST /v1/nowhere HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000000\r\n\r\n'
  const endless = await open(head)
  const closed = closeOf(endless)
  let written = 0
  const pour = () => {
    while (!endless.destroyed && endless.write(Buffer.alloc(65_536))) written += 65_536
  }
  endless.on('drain', pour)
  pour()
  await closed
  // The buffers of both kernels, in addition to the megabyte that is read.
  expect(written).toBeLessThan(20_000_000)
  const idle = await open(head)
  expect((await text(idle)).slice(0, 12)).toBe('HTTP/1.1 404')
})

describe('garbage', () => {
  it.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['zeros', Buffer.alloc(10_000)],
    ['TLS on a plaintext port', Buffer.from([22, 3, 1, 2, 0, 1, 0, 1, 252])],
    ['two lengths', 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n'],
    ['a length and chunks', 'POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n'],
  ])('%s is answered with 400', async (_name, bytes) => {
    await listen()
    const { status, body } = await sendBytes(listener.port, bytes)
    expect([status, reasonOf(body)]).toEqual([400, 'MALFORMED_REQUEST'])
    expect(await otherIsAnswered()).toBe(true)
  })

  it.each([
    ['no host', 'GET /v1/echo/a HTTP/1.1\r\nx-api-key: good\r\n\r\n', 'there is no Host header'],
    [
      'two hosts',
      'GET /v1/echo/a HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\nHOST: a\r\n\r\n',
      'there are 2 Host headers',
    ],
    ['two hosts of HTTP/1.0', 'GET /v1/echo/a HTTP/1.0\r\nhost: a\r\nhost: b\r\n\r\n', 'there are 2 Host headers'],
    ['a host with a path', 'GET /v1/echo/a HTTP/1.1\r\nhost: a/b\r\nx-api-key: good\r\n\r\n', 'Host is \\"a/b\\"'],
    ['two hosts in one', 'GET /v1/echo/a HTTP/1.1\r\nhost: a, b\r\nx-api-key: good\r\n\r\n', 'Host is \\"a, b\\"'],
  ])('a request with %s is answered with 400', async (_name, bytes, says) => {
    await listen()
    const { status, headers, body } = await sendBytes(listener.port, bytes)
    expect([status, headers.connection, reasonOf(body)]).toEqual([400, 'close', 'INVALID_HOST'])
    expect(body).toContain(says)
  })

  it.each([
    'GET /v1/echo/a HTTP/1.0\r\nx-api-key: good\r\n\r\n',
    'GET /v1/echo/a HTTP/1.1\r\nhost:\r\nconnection: close\r\nx-api-key: good\r\n\r\n',
    'GET /v1/echo/a HTTP/1.1\r\nhost: [::1]:80\r\nconnection: close\r\nx-api-key: good\r\n\r\n',
    'GET http://a/v1/echo/a HTTP/1.1\r\nhost: a_b.example:8080\r\nconnection: close\r\nx-api-key: good\r\n\r\n',
  ])('%j has a valid host', async (bytes) => {
    await listen()
    expect((await sendBytes(listener.port, bytes)).status).toBe(200)
  })

  it('a request of HTTP/2 without a host has its stream reset', async () => {
    await listen()
    const fields = { ':method': 'GET', ':scheme': 'http', ':path': '/v1/echo/a', ...key }
    const head = frame(frameTypes.headers, END_HEADERS | END_STREAM, 1, fieldBlock(fields))
    const socket = await open(Buffer.concat([preface(), head]))
    const protocolError = frame(frameTypes.reset, 0, 1, uint32(constants.NGHTTP2_PROTOCOL_ERROR))
    let sent = Buffer.alloc(0)
    for await (const piece of socket as AsyncIterable<Buffer>) {
      sent = Buffer.concat([sent, piece])
      if (sent.includes(protocolError)) return
    }
    expect(sent).toContain(protocolError)
  })

  it('after the HTTP/2 preface ends the connection', async () => {
    await listen()
    const socket = await open(
      Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), Buffer.alloc(10_000, 0xff)]),
    )
    socket.resume()
    await once(socket, 'close')
    expect(await otherIsAnswered()).toBe(true)
  })
})
