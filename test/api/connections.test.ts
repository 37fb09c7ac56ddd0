import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import type { Readable } from 'node:stream'
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
import { sendBytes } from '../support/clients/raw-http.ts'

const service = loadEchoService()

let listener: Listener
let reached: PromiseWithResolvers<HandlerContext>
let children: ChildProcess[]

beforeEach(async () => {
  reached = Promise.withResolvers()
  children = []
  const hang = (context: HandlerContext) => {
    reached.resolve(context)
    return new Promise<never>((_, reject) => {
      context.signal.addEventListener('abort', () => reject(context.signal.reason as Error))
    })
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [
      serveEcho(service, {
        echo: (_request, context) => hang(context),
        store: (_request, context) => hang(context),
        wait: (_request, context) => hang(context),
        async *count({ name }: EchoRequest, context: HandlerContext) {
          yield { name }
          await hang(context)
        },
      }),
    ],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
    extraHeaders: { 'x-waybill-demo': 'true' },
    corsOrigins: ['https://app.example'],
    limits: { headersTimeoutMs: 300, requestTimeoutMs: 300 },
  })
})

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  await listener.stop({ graceMs: 0 })
})

/** Calls over HTTP/2 in a process of its own, which can be killed before it closes its connection. */
function callFromProcess(path: string, contentType: string, body: string): ChildProcess {
  const program = `
    const session = require('node:http2').connect('${listener.url}')
    const fields = { ':method': 'POST', ':path': '${path}', 'content-type': '${contentType}', 'x-api-key': 'good' }
    const stream = session.request(fields)
    stream.end(Buffer.from('${body}', 'base64'))
    stream.on('data', () => console.log('heard'))
  `
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  return child
}

const frameOfA = Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x61]).toString('base64')
const jsonOfA = Buffer.from('{"name":"a"}').toString('base64')

describe('a client over HTTP/2 that is killed', () => {
  it.each([
    ['a call of REST', '/v1/echo', 'application/json', jsonOfA, false],
    ['a call of Connect', '/tests.v1.EchoService/Store', 'application/json', jsonOfA, false],
    ['a call of gRPC', '/tests.v1.EchoService/Store', 'application/grpc', frameOfA, false],
    ['a stream', '/tests.v1.EchoService/Count', 'application/grpc', frameOfA, true],
  ])('ends %s and leaves no connection', async (_name, path, contentType, body, beginsToAnswer) => {
    const child = callFromProcess(path, contentType, body)
    const { signal } = await reached.promise
    if (beginsToAnswer) await once(child.stdout as Readable, 'data')
    const fired = once(signal, 'abort')
    child.kill('SIGKILL')
    await fired
    expect(signal.reason).toMatchObject({ reason: 'CALL_CANCELLED' })
    // Resolves only when every connection is closed.
    await listener.stop({ graceMs: 60_000 })
  })
})

describe('bytes that are not a request', () => {
  it.each([
    [
      'headers that are too large',
      `GET / HTTP/1.1\r\nx-filler: ${'a'.repeat(100_000)}\r\n\r\n`,
      431,
      'HEADERS_TOO_LARGE',
    ],
    ['garbage', 'this is no request\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    ['half a request', 'GET / HTTP/1.1\r\nhost: a\r\n', 408, 'REQUEST_TOO_SLOW'],
    ['a tunnel', 'CONNECT host:80 HTTP/1.1\r\nhost: host:80\r\n\r\n', 405, 'METHOD_NOT_ALLOWED'],
  ])('%s: the answer has the usual headers', async (_name, bytes, status, reason) => {
    const { headers, ...answer } = await sendBytes(listener.port, bytes)
    expect(answer.status).toBe(status)
    expect(JSON.parse(answer.body)).toMatchObject({ details: [{ reason, domain: 'waybill' }] })
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'cache-control': 'private',
      vary: 'origin, x-api-key, x-account, accept-encoding',
      'x-waybill-demo': 'true',
    })
    expect(headers.allow).toBe(status === 405 ? 'GET, HEAD, OPTIONS, POST' : undefined)
  })
})

describe('headers over HTTP/2', () => {
  let session: ClientHttp2Session
  beforeEach(() => {
    session = connectHttp2(listener.url, { maxSendHeaderBlockLength: 2_000_000 })
    session.on('error', () => {})
  })
  afterEach(() => session.destroy())

  function ask(fields: Readonly<Record<string, string>>) {
    const stream = session.request({ ...fields, 'x-api-key': 'good' })
    stream.on('error', () => {})
    return stream
  }

  it.each([
    ['a header of 70,000 bytes', { 'x-filler': 'a'.repeat(70_000) }],
    ['a query of 70,000 bytes', { ':path': `/v1/echo/a?code=${'a'.repeat(70_000)}` }],
    ['3,000 headers', Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`x-header-${n}`, 'some value']))],
  ])('%s are answered with 431', async (_name, fields) => {
    const [answer] = (await once(ask(fields), 'response')) as [Record<string, unknown>]
    expect(answer).toMatchObject({ ':status': 431, 'x-request-id': expect.any(String), 'x-waybill-demo': 'true' })
  })

  it('that are too large have a gRPC status in a gRPC call', async () => {
    const fields = { ':method': 'POST', 'content-type': 'application/grpc', 'x-filler': 'a'.repeat(70_000) }
    const [answer] = (await once(ask(fields), 'response')) as [Record<string, unknown>]
    expect(answer).toMatchObject({ ':status': 200, 'grpc-status': '3' })
  })

  it('beyond twice the limit end their stream and no other', async () => {
    const other = ask({ ':method': 'POST', ':path': '/tests.v1.EchoService/Count', 'content-type': 'application/grpc' })
    other.end(Buffer.from(frameOfA, 'base64'))
    await once(other, 'data')
    const [error] = (await once(ask({ 'x-filler': 'a'.repeat(65_000), 'x-more': 'b'.repeat(70_000) }), 'error')) as [
      Error,
    ]
    expect(error.message).toContain('NGHTTP2_ENHANCE_YOUR_CALM')
    expect([other.destroyed, session.destroyed]).toEqual([false, false])
  })
})
