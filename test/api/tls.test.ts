import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { get as getHttps, type RequestOptions } from 'node:https'
import { text } from 'node:stream/consumers'
import { connect as connectTls, type SecureVersion, type TLSSocket } from 'node:tls'
import { create, toBinary } from '@bufbuild/protobuf'
import { createConnectTransport } from '@connectrpc/connect-node'
import { Client, credentials, Metadata } from '@grpc/grpc-js'
import { afterEach, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import type { TlsCertificate } from '../../src/api/listener/tls-certificate.ts'
import { type ApiLimits, serveApi } from '../../src/api/serve-api.ts'
import { authenticateGood, loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { findMethod } from '../support/clients/protocol-clients.ts'
import { sendBytes } from '../support/clients/raw-http.ts'
import { renewedCertificate, testCertificate } from '../support/tls-certificate.ts'

const service = loadEchoService()
const echo = findMethod(service, 'echo')
const ca = testCertificate.cert
const key = { 'x-api-key': 'good' }

let listener: Listener
const sessions: ClientHttp2Session[] = []

afterEach(async () => {
  for (const session of sessions.splice(0)) session.destroy()
  await listener.stop({ graceMs: 0 })
})

async function listen(tls: TlsCertificate | undefined, limits: Partial<ApiLimits> = {}): Promise<void> {
  const handler = async ({ name }: { readonly name: string }) => ({ name })
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    tls,
    services: [serveEcho(service, { echo: handler, store: handler, wait: handler, count: handler })],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
    limits: { headersTimeoutMs: 300, ...limits },
  })
}

/** A REST call over HTTP/1.1 and TLS. */
async function askHttp1(path = '/v1/echo/a', options: RequestOptions = {}) {
  const request = getHttps(`https://127.0.0.1:${listener.port}${path}`, { ca, headers: key, agent: false, ...options })
  const [response] = await once(request, 'response')
  return { status: response.statusCode as number, body: await text(response) }
}

/** A REST call over HTTP/2, in plaintext or over TLS as the origin says. */
async function askHttp2(scheme: 'http' | 'https') {
  const session = connectHttp2(`${scheme}://127.0.0.1:${listener.port}`, { ca })
  sessions.push(session)
  // Its streams fail with it, and each failure is awaited.
  session.on('error', () => {})
  const stream = session.request({ ...key, ':path': '/v1/echo/a' })
  const [headers] = await once(stream, 'response')
  return { status: headers[':status'] as number, body: await text(stream), alpn: session.alpnProtocol }
}

describe('over TLS', () => {
  it('HTTP/1.1, HTTP/2, Connect and gRPC are served on one port', async () => {
    await listen(testCertificate)
    expect(listener.url).toBe(`https://127.0.0.1:${listener.port}`)
    const name = expect.stringContaining('"name":"a"')
    expect(await askHttp1()).toMatchObject({ status: 200, body: name })
    expect(await askHttp2('https')).toMatchObject({ status: 200, body: name, alpn: 'h2' })

    for (const httpVersion of ['1.1', '2'] as const) {
      const transport = createConnectTransport({ httpVersion, baseUrl: listener.url, nodeOptions: { ca } })
      const { message } = await transport.unary(echo as never, undefined, undefined, key, { name: 'b' })
      expect(message).toMatchObject({ name: 'b' })
    }

    const client = new Client(`127.0.0.1:${listener.port}`, credentials.createSsl(Buffer.from(ca)))
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
    const metadata = new Metadata()
    metadata.set('x-api-key', 'good')
    client.makeUnaryRequest(
      '/tests.v1.EchoService/Echo',
      (request: Buffer) => request,
      (bytes: Buffer) => bytes,
      Buffer.from(toBinary(echo.input, create(echo.input, { name: 'c' }))),
      metadata,
      (error, bytes) => (error === null ? resolve(bytes as Buffer) : reject(error)),
    )
    expect((await promise).toString()).toContain('c')
    client.close()
  })

  it.each<[SecureVersion, string]>([
    ['TLSv1.3', 'secureConnect'],
    ['TLSv1.2', 'secureConnect'],
    ['TLSv1.1', 'error'],
  ])('%s ends in %s', async (version, outcome) => {
    await listen(testCertificate)
    const socket = connectTls({
      port: listener.port,
      host: '127.0.0.1',
      ca,
      minVersion: version,
      maxVersion: version,
      // Without this the client does not offer old versions.
      ciphers: 'DEFAULT:@SECLEVEL=0',
    })
    const ends = ['secureConnect', 'error'].map((name) =>
      once(socket, name).then(
        () => name,
        () => 'error',
      ),
    )
    expect(await Promise.race(ends)).toBe(outcome)
    socket.destroy()
  })

  it('a client without ALPN chooses the version by its first bytes', async () => {
    await listen(testCertificate)
    const socket = connectTls({ port: listener.port, host: '127.0.0.1', ca })
    socket.write('GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 /)
  })

  it('a plaintext client is refused, with the advice to use TLS', async () => {
    await listen(testCertificate)
    const { status, body } = await sendBytes(listener.port, 'GET / HTTP/1.1\r\nhost: a\r\n\r\n')
    expect([status, body]).toEqual([400, expect.stringContaining('this port speaks TLS only')])
    await expect(askHttp2('http')).rejects.toThrow('Session closed with error code 13')
  })

  it('a client that does not finish the handshake, or sends nothing after it, is disconnected', async () => {
    await listen(testCertificate)
    const socket = connectTls({ port: listener.port, host: '127.0.0.1', ca })
    await once(socket, 'secureConnect')
    socket.resume()
    await once(socket, 'close')
    // Only the first bytes of a handshake.
    await expect(sendBytes(listener.port, Buffer.from([22, 3, 1, 2, 0, 1]))).rejects.toThrow('no answer')
  })

  it('a renewed certificate is served from the next connection on', async () => {
    await listen(testCertificate)
    expect(() => listener.renewCertificate({ ...testCertificate, cert: 'none' })).toThrow('PEM')
    expect((await askHttp1()).status).toBe(200)
    listener.renewCertificate(renewedCertificate)
    await expect(askHttp1()).rejects.toThrow('self-signed')
    expect((await askHttp1('/v1/echo/a', { ca: renewedCertificate.cert })).status).toBe(200)
  })

  it('stopping closes every connection', async () => {
    await listen(testCertificate)
    await askHttp2('https')
    const session = sessions[0] as ClientHttp2Session
    const closed = once(session, 'close')
    await listener.stop({ graceMs: 60_000 })
    await closed
    expect(session.destroyed).toBe(true)
  })
})

it('a client that closes its side after a request over TLS is answered', async () => {
  await listen(testCertificate)
  const socket = connectTls({ host: '127.0.0.1', port: listener.port, ca, ALPNProtocols: ['http/1.1'] })
  await once(socket, 'secureConnect')
  socket.end('GET /v1/echo/a HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\n\r\n')
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*"name":"a"/)
})

describe('stopping waits for no client', () => {
  it.each([
    ['says nothing', () => {}],
    ['is gone without a word', (socket: TLSSocket) => void socket.destroy()],
  ])('that %s after its handshake', async (_, go) => {
    await listen(testCertificate, { headersTimeoutMs: 60_000 })
    const socket = connectTls({ host: '127.0.0.1', port: listener.port, ca })
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    go(socket)
    await expect(listener.stop({ graceMs: 60_000 })).resolves.toBeUndefined()
    socket.destroy()
  })
})

it('a port without a certificate answers TLS clients in plaintext', async () => {
  await listen(undefined)
  await expect(askHttp1()).rejects.toThrow('EPROTO')
})
