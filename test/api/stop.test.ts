import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { HandlerContext } from '@connectrpc/connect'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
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
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo: handler, store: handler, wait: handler, count: handler })],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
  })
})

afterEach(() => listener.stop({ graceMs: 0 }))

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

describe('stop', () => {
  it.each(protocols)('lets a call over %s finish, and accepts no other', async (protocol) => {
    const clients = createProtocolClients(listener.url, { store: '/v1/echo' })
    const client = clients.find((each) => each.protocol === protocol)
    const call = client?.call(store, { name: 'last' }, { headers: key })
    const { signal } = await reached.promise
    const stopped = listener.stop({ graceMs: 10_000 })
    expect(await isOpen(listener.port)).toBe(false)
    release.resolve()
    expect(await call).toMatchObject({ answer: { name: 'last' } })
    await stopped
    expect(signal.aborted).toBe(false)
    for (const each of clients) each.close()
  })

  it('closes idle connections of every protocol at once', async () => {
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

  it('ends the calls that are left after the grace period, and aborts their signals', async () => {
    const socket = connectSocket(listener.port, listener.host)
    socket.on('error', () => {})
    socket.write('GET /v1/echo/a HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\n\r\n')
    const { signal } = await reached.promise
    const fired = once(signal, 'abort')
    await listener.stop({ graceMs: 20 })
    await fired
    expect(signal.reason).toMatchObject({ reason: 'CALL_CANCELLED' })
  })

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
