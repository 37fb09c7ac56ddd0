import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { type ApiLimits, serveApi } from '../../src/api/serve-api.ts'
import type { Authenticate } from '../../src/auth/authenticate.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import { loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { testCertificate } from '../support/tls-certificate.ts'

// Who keeps how many connections open, and that others still get one. Each address of the loopback network is a client.

const service = loadEchoService()

const authenticate: Authenticate = async ({ apiKey, address }) => {
  if (apiKey === null) throw waybillError('MISSING_API_KEY', {})
  const caller = { account: { id: 1, name: 'acme' }, keyId: apiKey }
  return apiKey.startsWith('page') ? { ...caller, page: { address: address(), origins: [], shop: {} } } : caller
}

let listener: Listener
let waiting: PromiseWithResolvers<void>
let sockets: Set<Socket>
let sessions: Set<ClientHttp2Session>

beforeEach(() => {
  waiting = Promise.withResolvers()
  sockets = new Set()
  sessions = new Set()
})
afterEach(async () => {
  waiting.resolve()
  for (const session of sessions) session.destroy()
  for (const socket of sockets) socket.destroy()
  await listener.stop({ graceMs: 0 })
})

async function listen(limits: Partial<ApiLimits>, more: Partial<Parameters<typeof serveApi>[0]> = {}): Promise<void> {
  const answer = async ({ name }: { readonly name: string }) => ({ name })
  const wait = async () => {
    await waiting.promise
    return { name: 'waited' }
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo: answer, store: answer, wait, count: answer })],
    authenticate,
    logger: recordingLogger().logger,
    ready: async () => true,
    limits: { idleTimeoutMs: 60_000, ...limits },
    ...more,
  })
}

/** Opens a connection that stays open, and sends some bytes. */
async function open(localAddress: string, bytes = ''): Promise<Socket> {
  const socket = connect({ port: listener.port, host: '127.0.0.1', localAddress })
  sockets.add(socket)
  // Without a reader it would not notice that it is closed.
  socket
    .on('error', () => {})
    .once('close', () => sockets.delete(socket))
    .resume()
  await once(socket, 'connect')
  if (bytes !== '') socket.write(bytes)
  return socket
}

const request = (path: string, key?: string) =>
  `GET ${path} HTTP/1.1\r\nhost: a\r\n${key === undefined ? '' : `x-api-key: ${key}\r\n`}\r\n`

/** Makes a call over a connection of its own, which stays open. @returns the status line, or nothing if there was no answer */
async function call(localAddress: string, path: string, key?: string): Promise<string> {
  const socket = await open(localAddress, request(path, key))
  const said = await Promise.race([once(socket, 'data'), once(socket, 'close')])
  return String(said[0]).slice(0, 12)
}

const HEALTH = '/healthz'
const OK = 'HTTP/1.1 200'
/** After that a connection that has shown no key is one without a key. */
const SETTLED = { timeout: 5_000, interval: 50 }
const addressOf = (n: number) => `127.0.1.${n}`
const openOf = (address: string) => [...sockets].filter(({ localAddress }) => localAddress === address).length

describe('connections without a key', () => {
  it('of eight addresses, with a health check each, leave others theirs: a tenth for one address, half for all', async () => {
    await listen({ maxConnections: 80 })
    for (let n = 1; n <= 8; n++) for (let each = 0; each < 10; each++) expect(await call(addressOf(n), HEALTH)).toBe(OK)
    await expect.poll(() => sockets.size, SETTLED).toBe(40)
    const most = () => Math.max(...Array.from({ length: 8 }, (_, n) => openOf(addressOf(n + 1))))
    await expect.poll(most, SETTLED).toBe(8)
    expect(await call('127.0.2.1', '/v1/echo/a', 'good')).toBe(OK)
    expect(await call('127.0.2.2', HEALTH)).toBe(OK)
  })

  it.each([
    ['that say nothing', ''],
    ['that say half of the headers', 'GET / HTTP/1.1\r\nhost: a\r\n'],
    ['that say half of the preface of HTTP/2', 'PRI * HTTP/2.0\r\n'],
    ['that were refused for want of a key', request('/v1/echo/a')],
    ['that were answered once', request('/healthz')],
  ])('%s are closed for others', async (_, bytes) => {
    await listen({ maxConnections: 40, headersTimeoutMs: 60_000 })
    for (let n = 1; n <= 8; n++) await Promise.all(Array.from({ length: 5 }, () => open(addressOf(n), bytes)))
    await expect.poll(() => sockets.size, SETTLED).toBe(20)
    expect(await call('127.0.2.1', '/v1/echo/a', 'good')).toBe(OK)
  })

  it('that say half of a TLS handshake are closed for others', async () => {
    await listen({ maxConnections: 40, headersTimeoutMs: 60_000 }, { tls: testCertificate })
    const half = '\u0016\u0003\u0001'
    for (let n = 1; n <= 8; n++) await Promise.all(Array.from({ length: 5 }, () => open(addressOf(n), half)))
    await expect.poll(() => sockets.size, SETTLED).toBe(20)
    const socket = connectTls({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false })
    sockets.add(socket)
    await once(socket, 'secureConnect')
    socket.write(request('/v1/echo/a', 'good'))
    expect(String((await once(socket, 'data'))[0]).slice(0, 12)).toBe(OK)
  })

  it('over HTTP/2 are asked to go, also with a stream open', async () => {
    await listen({ maxConnections: 20 })
    for (let n = 1; n <= 4; n++) {
      for (let each = 0; each < 4; each++) {
        const session = connectHttp2(listener.url, {
          createConnection: () => connect({ port: listener.port, host: '127.0.0.1', localAddress: addressOf(n) }),
        })
        sessions.add(session)
        session.on('error', () => {}).once('close', () => sessions.delete(session))
        const path = '/grpc.health.v1.Health/Watch'
        const watch = session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc' })
        watch.on('error', () => {}).end(Buffer.alloc(5))
        await Promise.race([once(watch, 'data'), once(watch, 'close'), once(session, 'close')])
      }
    }
    await expect.poll(() => sessions.size, SETTLED).toBe(10)
    expect(await call('127.0.2.1', '/v1/echo/a', 'good')).toBe(OK)
  })

  it('of pages are counted by address', async () => {
    await listen({ maxConnections: 40 })
    for (let each = 0; each < 9; each++) expect(await call(addressOf(1), '/v1/echo/a', 'page')).toBe(OK)
    await expect.poll(() => sockets.size, SETTLED).toBe(4)
  })
})

describe('connections of a secret key', () => {
  it('stay open while it calls, however many they are, and a tenth while it does not', async () => {
    await listen({ maxConnections: 200, maxCallMs: 60_000 })
    const calls = Array.from({ length: 100 }, () => open(addressOf(1), request('/v1/wait/a', 'good')))
    const held = await Promise.all(calls)
    // Longer than a connection is new.
    await new Promise((resolve) => setTimeout(resolve, 1_300))
    expect(sockets.size).toBe(100)
    const answers = held.map(async (socket) => String((await once(socket, 'data'))[0]).slice(0, 12))
    waiting.resolve()
    expect(new Set(await Promise.all(answers))).toEqual(new Set([OK]))
    await expect.poll(() => sockets.size, SETTLED).toBe(20)
  })

  it('do not count for their address, and outlast a flood of connections without one', async () => {
    await listen({ maxConnections: 40 })
    const mine = await open(addressOf(1), request('/v1/echo/a', 'good'))
    await once(mine, 'data')
    for (let n = 1; n <= 10; n++) for (let each = 0; each < 8; each++) await call(addressOf(n), HEALTH)
    await expect.poll(() => sockets.size, SETTLED).toBeLessThanOrEqual(21)
    mine.write(request('/v1/echo/b', 'good'))
    expect(String((await once(mine, 'data'))[0]).slice(0, 12)).toBe(OK)
  })

  it('are its own over TLS as well', async () => {
    await listen({ maxConnections: 40 }, { tls: testCertificate })
    for (let n = 0; n < 10; n++) {
      const socket = connectTls({ port: listener.port, host: '127.0.0.1', rejectUnauthorized: false })
      sockets.add(socket)
      socket.on('error', () => {}).once('close', () => sockets.delete(socket))
      await once(socket, 'secureConnect')
      socket.write(request('/v1/echo/a', 'good'))
      await once(socket, 'data')
    }
    await expect.poll(() => sockets.size, SETTLED).toBe(4)
  })

  it('give way when all are taken and idle, so that another key gets one', async () => {
    await listen({ maxConnections: 10 })
    for (let n = 0; n < 10; n++) expect(await call(addressOf(1), '/v1/echo/a', `key-${n}`)).toBe(OK)
    expect(sockets.size).toBe(10)
    expect(await call(addressOf(2), '/v1/echo/a', 'other')).toBe(OK)
  })
})

it('connections of a trusted proxy belong to nobody', async () => {
  await listen({ maxConnections: 40 }, { trustedProxies: ['127.0.1.0/24'] })
  for (let each = 0; each < 30; each++) expect(await call(addressOf(1), HEALTH)).toBe(OK)
  await new Promise((resolve) => setTimeout(resolve, 1_300))
  expect(sockets.size).toBe(30)
})
