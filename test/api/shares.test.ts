import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { type ApiLimits, serveApi } from '../../src/api/serve-api.ts'
import type { Authenticate } from '../../src/auth/authenticate.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import { loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { sendRequest } from '../support/clients/raw-http.ts'

// What one client holds, others still get: bodies that never end, running calls, streams. In all protocols.

const service = loadEchoService()

/** `share-0.5-x` has half of all places, `page-x` is publishable, `platform` acts for the account in x-account; any other key is secret. */
const authenticate: Authenticate = async ({ apiKey, account, address }) => {
  if (apiKey === null) throw waybillError('MISSING_API_KEY', {})
  const caller = { account: { id: Number(account ?? 1), name: 'acme' }, keyId: apiKey }
  const [, share] = /^share-([\d.]+)/.exec(apiKey) ?? []
  if (share !== undefined) return { ...caller, share: Number(share) }
  return apiKey.startsWith('page') ? { ...caller, page: { address: address(), origins: [], shop: {} } } : caller
}

let listener: Listener
let waiting: PromiseWithResolvers<void>
let reached: number
let sessions: ClientHttp2Session[]
let sockets: Socket[]

beforeEach(() => {
  waiting = Promise.withResolvers()
  reached = 0
  sessions = []
  sockets = []
})
afterEach(async () => {
  waiting.resolve()
  for (const session of sessions) session.destroy()
  for (const socket of sockets) socket.destroy()
  await listener.stop({ graceMs: 0 })
})

async function listen(limits: Partial<ApiLimits> = {}): Promise<void> {
  const answer = async ({ name }: { readonly name: string }) => ({ name })
  async function* count() {
    yield { name: 'first' }
    await waiting.promise
  }
  const untilLet = async () => {
    reached += 1
    await waiting.promise
    return { name: 'waited' }
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo: answer, store: answer, wait: untilLet, count })],
    authenticate,
    logger: recordingLogger().logger,
    ready: async () => true,
    trustedProxies: ['127.0.0.1'],
    corsOrigins: ['https://a.example'],
    openFiles: {
      paths: [],
      covers: (path) => path === '/page',
      read: async () => ({ contentType: 'text/plain', body: 'page', etag: '"1"' }),
    },
    limits: { bodyGraceMs: 20, maxCallMs: 60_000, ...limits },
  })
}

function openSession(localAddress = '127.0.0.1'): ClientHttp2Session {
  const session = connectHttp2(listener.url, {
    createConnection: () => connect({ port: listener.port, host: '127.0.0.1', localAddress }),
  })
  session.on('error', () => {})
  sessions.push(session)
  return session
}

interface Outcome {
  readonly status: number
  readonly grpcStatus: string | undefined
  readonly retryAfter: string | undefined
  readonly body: string
}

/** Sends headers and what is given of the body, and does not end it. */
function begin(session: ClientHttp2Session, headers: OutgoingHttpHeaders, part?: Uint8Array | string) {
  const stream = session.request({ ':method': 'POST', ...headers }, { endStream: false })
  stream.on('error', () => {})
  if (part !== undefined) stream.write(part)
  const outcome = (async (): Promise<Outcome> => {
    const [fields] = (await once(stream, 'response')) as [Record<string, string>]
    const body = await text(stream).catch(() => '')
    return {
      status: Number(fields[':status']),
      grpcStatus: fields['grpc-status'],
      retryAfter: fields['retry-after'],
      body: body + detailsOf(fields['grpc-status-details-bin'] ?? body),
    }
  })()
  outcome.catch(() => {})
  return { stream, outcome }
}

/** Details are base64 in headers and in the trailers of gRPC-Web, whose text form is base64 again. */
function detailsOf(said: string): string {
  const decode = (base64: string) => Buffer.from(base64, 'base64').toString('latin1')
  const trailers = /^[\w+/=]+$/.test(said) ? said + decode(said) : said
  return decode(trailers) + decode(/grpc-status-details-bin: ?(\S+)/.exec(trailers)?.[1] ?? '')
}

const unary = '/tests.v1.EchoService/Store'
const streaming = '/tests.v1.EchoService/Count'

/** Requests whose message never becomes whole, by protocol. */
const endless: readonly (readonly [string, OutgoingHttpHeaders, Uint8Array | string | undefined])[] = [
  ['REST', { ':path': '/v1/echo', 'content-type': 'application/json' }, '{'],
  ['a GET of REST', { ':method': 'GET', ':path': '/v1/echo/a' }, undefined],
  ['Connect', { ':path': unary, 'content-type': 'application/json' }, undefined],
  ['Connect in binary', { ':path': unary, 'content-type': 'application/proto' }, '\n'],
  ['gRPC', { ':path': unary, 'content-type': 'application/grpc' }, Buffer.from([0, 0, 0, 0, 9, 0x0a])],
  ['gRPC-Web', { ':path': unary, 'content-type': 'application/grpc-web' }, Buffer.from([0])],
  ['gRPC-Web in base64', { ':path': unary, 'content-type': 'application/grpc-web-text' }, 'AAAA'],
  ['a stream of gRPC', { ':path': streaming, 'content-type': 'application/grpc' }, Buffer.from([0, 0, 0, 0, 9])],
  ['a stream of Connect', { ':path': streaming, 'content-type': 'application/connect+json' }, undefined],
  [
    'a stream whose one message is whole',
    { ':path': streaming, 'content-type': 'application/grpc-web' },
    Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x61]),
  ],
]

async function isAnswered(key: string): Promise<boolean> {
  const { status } = await sendRequest(listener.port, { target: '/v1/echo/a', headers: { 'x-api-key': key } })
  return status === 200
}

describe('bodies that do not arrive', () => {
  it.each(endless)('take no place of a running call, and a tenth for one key at most: %s', async (_, headers, part) => {
    await listen({ maxCalls: 20, maxOpenStreams: 20 })
    const session = openSession()
    const held = ['a', 'b', 'c', 'd'].map((key) =>
      Array.from({ length: 6 }, () => begin(session, { ...headers, 'x-api-key': key }, part)),
    )
    // Two of each key may be on their way; which they are does not matter.
    for (const ofKey of held) {
      const refused = await Promise.all(ofKey.slice(2).map(({ outcome }) => outcome))
      for (const { body } of refused) expect(body).toContain('TOO_MANY_OPEN_BODIES')
    }
    expect(await isAnswered('a')).toBe(true)
    expect(await isAnswered('e')).toBe(true)
  })

  it('say when to try again, over each protocol', async () => {
    await listen({ maxCalls: 10 })
    const session = openSession()
    const [held, ...refused] = endless.map(([, headers, part]) =>
      begin(session, { ...headers, 'x-api-key': 'a' }, part),
    )
    for (const { outcome } of refused) {
      const { status, grpcStatus, retryAfter, body } = await outcome
      expect([429, 200]).toContain(status)
      if (status === 429) expect(retryAfter).toBe('1')
      else expect(body).toContain('RetryInfo')
      if (grpcStatus !== undefined) expect(grpcStatus).toBe('8')
    }
    expect(held?.stream.closed).toBe(false)
  })

  it('are counted by address where the key is publishable, and leave space for secret keys', async () => {
    await listen({ maxCalls: 20 })
    const session = openSession()
    const from = (address: string) =>
      begin(session, {
        ':path': '/v1/echo',
        'content-type': 'application/json',
        'x-api-key': 'page',
        'x-forwarded-for': address,
      })
    const held = Array.from({ length: 17 }, (_, n) => Array.from({ length: 3 }, () => from(`192.0.2.${n}`)))
    for (const [, , third] of held) expect((await third?.outcome)?.body).toMatch(/TOO_MANY_OPEN_BODIES|OVERLOADED/)
    const ofOther = begin(session, { ':path': '/v1/echo', 'content-type': 'application/json', 'x-api-key': 'a' }, '{')
    await wait(200)
    ofOther.stream.end('"name":"late"}')
    expect((await ofOther.outcome).body).toContain('late')
    const ipv6 = ['2001:db8::1', '2001:db8::2', '2001:db8::ffff:3'].map(from)
    expect((await Promise.any(ipv6.map(({ outcome }) => outcome))).status).toBeGreaterThan(200)
  })

  it('are not counted when they arrive at once, however many they are', async () => {
    await listen({ maxCalls: 1_000, bodyGraceMs: 1_000, maxStreams: 1_000 })
    const session = openSession()
    await once(session, 'remoteSettings')
    const answers = Array.from({ length: 1_000 }, () => {
      const call = begin(session, { ':path': '/v1/echo', 'content-type': 'application/json', 'x-api-key': 'a' })
      call.stream.end('{"name":"b"}')
      return call.outcome
    })
    expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([200]))
  })

  it.each(endless)('end when they are slower than the least rate: %s', async (_, headers, part) => {
    await listen({ bodySlackMs: 100, minBodyBytesPerSecond: 1_000 })
    const { stream, outcome } = begin(openSession(), { ...headers, 'x-api-key': 'a' }, part)
    const drip = setInterval(() => void (stream.writable && stream.write('A')), 50)
    const { body } = await outcome
    clearInterval(drip)
    expect(body).toContain('REQUEST_TOO_SLOW')
  })

  it('arrive in their time if they keep the least rate', async () => {
    await listen({ bodySlackMs: 100, minBodyBytesPerSecond: 100 })
    const { stream, outcome } = begin(
      openSession(),
      { ':path': '/v1/echo', 'content-type': 'application/json', 'x-api-key': 'a' },
      ' '.repeat(50),
    )
    for (let n = 0; n < 8; n++) {
      await wait(100)
      stream.write(' '.repeat(50))
    }
    stream.end('{"name":"slow"}')
    expect((await outcome).body).toContain('slow')
  })

  it('over HTTP/1.1: with a length, in chunks, or promised by Expect', async () => {
    await listen({ maxCalls: 10 })
    const head = 'POST /v1/echo HTTP/1.1\r\nhost: a\r\nx-api-key: a\r\ncontent-type: application/json\r\n'
    const answers = [
      'content-length: 9\r\n',
      'transfer-encoding: chunked\r\n',
      'content-length: 9\r\nexpect: 100-continue\r\n',
    ]
      .flatMap((fields) => [fields, fields])
      .map(async (fields) => {
        const socket = connect({ port: listener.port, host: '127.0.0.1' })
        sockets.push(socket)
        socket.on('error', () => {})
        socket.write(`${head}${fields}\r\n`)
        return text(socket).catch(() => '')
      })
    await wait(300)
    expect(await isAnswered('a')).toBe(true)
    for (const socket of sockets) socket.end()
    const refused = (await Promise.all(answers)).filter((answer) => answer.includes('TOO_MANY_OPEN_BODIES'))
    expect(refused).toHaveLength(5)
    for (const answer of refused) expect(answer).toMatch(/HTTP\/1\.1 429 [^]*\r\nretry-after: 1\r\n/i)
  })
})

describe('running calls', () => {
  /** Begins calls that wait. @returns their statuses */
  const run = (session: ClientHttp2Session, count: number, headers: OutgoingHttpHeaders) =>
    Array.from({ length: count }, async () => {
      const stream = session.request({ ':path': '/v1/wait/a', ...headers })
      stream.on('error', () => {})
      const [fields] = (await once(stream, 'response')) as [Record<string, string | number>]
      stream.resume()
      return fields[':status']
    })
  /** The same for calls whose statuses do not matter. */
  const hold = (...calls: Parameters<typeof run>) => void Promise.allSettled(run(...calls))
  const untilReached = async (count: number) => {
    await expect.poll(() => reached, { timeout: 5_000 }).toBe(count)
  }

  it('of one key may fill an idle process; then another key has its share, and it alone', async () => {
    await listen({ maxCalls: 20 })
    const session = openSession()
    const first = run(session, 20, { 'x-api-key': 'a' })
    await untilReached(20)
    expect(await Promise.all(run(session, 1, { 'x-api-key': 'a' }))).toEqual([503])
    const second = run(session, 2, { 'x-api-key': 'b' })
    await untilReached(22)
    expect(await Promise.all(run(session, 1, { 'x-api-key': 'b' }))).toEqual([503])
    const third = run(session, 2, { 'x-api-key': 'c' })
    await untilReached(24)
    const large = run(session, 5, { 'x-api-key': 'share-0.25' })
    await untilReached(29)
    expect(await Promise.all(run(session, 1, { 'x-api-key': 'share-0.25' }))).toEqual([503])
    waiting.resolve()
    const all = await Promise.all([...first, ...second, ...third, ...large])
    expect(new Set(all)).toEqual(new Set([200]))
    expect(await isAnswered('a')).toBe(true)
  })

  it('of a platform key are counted by account', async () => {
    await listen({ maxCalls: 10 })
    const session = openSession()
    hold(session, 10, { 'x-api-key': 'platform', 'x-account': '1' })
    await untilReached(10)
    expect(await Promise.all(run(session, 1, { 'x-api-key': 'platform', 'x-account': '1' }))).toEqual([503])
    hold(session, 1, { 'x-api-key': 'platform', 'x-account': '2' })
    await untilReached(11)
  })

  it('of publishable keys lose before those of secret keys', async () => {
    await listen({ maxCalls: 40 })
    const session = openSession()
    hold(session, 10, { 'x-api-key': 'a' })
    hold(session, 28, { 'x-api-key': 'page' })
    await untilReached(38)
    expect(await Promise.all(run(session, 1, { 'x-api-key': 'page' }))).toEqual([503])
    hold(session, 2, { 'x-api-key': 'a' })
    await untilReached(40)
    expect(await Promise.all(run(session, 1, { 'x-api-key': 'a' }))).toEqual([503])
    hold(session, 4, { 'x-api-key': 'b' })
    await untilReached(44)
  })

  it('leave no space for what needs no key from nine tenths on', async () => {
    await listen({ maxCalls: 10 })
    const session = openSession()
    const page = () => sendRequest(listener.port, { target: '/page' })
    const preflight = () =>
      sendRequest(listener.port, {
        method: 'OPTIONS',
        target: '/v1/echo',
        headers: { origin: 'https://a.example', 'access-control-request-method': 'POST' },
      })
    const both = async () => (await Promise.all([page(), preflight()])).map(({ status }) => status)
    hold(session, 8, { 'x-api-key': 'a' })
    await untilReached(8)
    expect(await both()).toEqual([200, 204])
    hold(session, 1, { 'x-api-key': 'a' })
    await untilReached(9)
    expect(await both()).toEqual([503, 503])
    expect((await page()).headers['retry-after']).toBe('1')
  })

  it('leave health answered over every protocol', async () => {
    await listen({ maxCalls: 1, maxOpenStreams: 1, maxKeylessStreams: 1 })
    const session = openSession()
    hold(session, 1, { 'x-api-key': 'a' })
    await untilReached(1)
    expect((await sendRequest(listener.port, { target: '/healthz' })).status).toBe(200)
    for (const type of ['application/json', 'application/proto']) {
      const check = begin(session, { ':path': '/grpc.health.v1.Health/Check', 'content-type': type })
      check.stream.end(type.endsWith('json') ? '{}' : '')
      expect((await check.outcome).status).toBe(200)
    }
    const grpc = begin(session, { ':path': '/grpc.health.v1.Health/Check', 'content-type': 'application/grpc' })
    grpc.stream.end(Buffer.alloc(5))
    const [trailers] = (await once(grpc.stream, 'trailers')) as [Record<string, string>]
    expect(trailers['grpc-status']).toBe('0')
  })
})

describe('streams without a key', () => {
  const open = async (session: ClientHttp2Session, path: string, address: string) => {
    const { stream, outcome } = begin(
      session,
      { ':path': path, 'content-type': 'application/grpc', 'x-forwarded-for': address },
      path.includes('Health') ? Buffer.alloc(5) : Buffer.from([0, 0, 0, 0, 2, 0x3a, 0]),
    )
    if (path.includes('Health')) stream.end()
    const first = once(stream, 'data').then(() => 'open')
    return Promise.race([first, outcome.then(({ body }) => /TOO_MANY_STREAMS|OVERLOADED/.exec(body)?.[0])])
  }
  const reflection = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
  const watch = '/grpc.health.v1.Health/Watch'

  it('are counted by address: a tenth for one, and watches of health whatever else is open', async () => {
    await listen({ maxKeylessStreams: 20, maxOpenStreams: 30 })
    const session = openSession()
    const many = async (count: number, path: string, address: string) =>
      Promise.all(Array.from({ length: count }, () => open(session, path, address)))
    expect(await many(3, reflection, '192.0.2.1')).toEqual(['open', 'open', 'TOO_MANY_STREAMS'])
    for (let n = 2; n <= 10; n++) expect(await many(2, reflection, `192.0.2.${n}`)).toEqual(['open', 'open'])
    expect(await many(1, reflection, '192.0.2.11')).toEqual(['OVERLOADED'])
    for (const address of ['192.0.2.1', '192.0.2.99'])
      expect(await many(4, watch, address)).toEqual(['open', 'open', 'open', 'TOO_MANY_STREAMS'])
  })
})
