import { connect as connectHttp2, constants } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { create, type Message, toBinary } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import { Code, ConnectError } from '@connectrpc/connect'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.js'
import type { Listener } from '../../src/api/listener/listener.ts'
import { type ApiLimits, serveApi } from '../../src/api/serve-api.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import { authenticateGood, loadTestService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { findMethod } from '../support/clients/protocol-clients.ts'
import { createStreamClient, type StreamClient, streamProtocols } from '../support/clients/stream-clients.ts'
import { PATIENCE } from '../support/patience.ts'

const service = loadTestService('tests.v1.StreamService')
const methods = {
  count: findMethod(service, 'count'),
  sum: findMethod(service, 'sum'),
  chat: findMethod(service, 'chat'),
}
const headers = { 'x-api-key': 'good', 'x-sent': 'hello' }

interface StreamRequest extends Message {
  readonly text: string
  readonly number: number
}
type Requests = AsyncIterable<StreamRequest>

let listener: Listener
let client: StreamClient
let lines: ReturnType<typeof recordingLogger>['lines']
let ended: PromiseWithResolvers<unknown>
let yielded: number

/** Answer according to `text`; with `stay` they wait for the end of the call. */
const handlers = {
  async *count(request: StreamRequest, context: HandlerContext) {
    sayHello(context)
    for (let number = 0; number < request.number; number += 1) {
      yielded += 1
      yield { text: request.text === 'large' ? large : request.text, number: request.text === 'bad' ? 0.5 : number }
    }
    await finish(request.text, context)
  },
  async sum(requests: Requests, context: HandlerContext) {
    sayHello(context)
    let number = 0
    let text = ''
    for await (const request of requests) {
      number += request.number
      text = request.text
    }
    await finish(text, context)
    return { text: 'sum', number }
  },
  async *chat(requests: Requests, context: HandlerContext) {
    sayHello(context)
    for await (const request of requests) {
      yield { text: `re ${request.text}`, number: request.number }
      await finish(request.text, context)
    }
  },
}

const large = 'x'.repeat(64 * 1024)

function sayHello({ requestHeader, responseHeader, responseTrailer, signal }: HandlerContext): void {
  responseHeader.set('x-heard', requestHeader.get('x-sent') ?? '')
  responseTrailer.set('x-goodbye', 'well')
  signal.addEventListener('abort', () => ended.resolve(signal.reason))
}

/** The error of a service that throws Connect's own errors. */
const foreign = new ConnectError('elsewhere', Code.Aborted, undefined, [
  { desc: ErrorInfoSchema, value: { reason: 'ELSEWHERE', domain: 'tests', metadata: { a: 'b' } } },
])

async function finish(text: string, { signal }: HandlerContext): Promise<void> {
  if (text === 'foreign') throw foreign
  if (text === 'fail') throw waybillError('RATE_LIMITED', { limit: 5, retryAfterSeconds: 3 })
  if (text === 'stay')
    await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('late'))))
}

async function start(limits: Partial<ApiLimits>): Promise<void> {
  const recording = recordingLogger()
  lines = recording.lines
  ended = Promise.withResolvers()
  yielded = 0
  const echo = async ({ text }: StreamRequest, context: HandlerContext) => {
    sayHello(context)
    await finish(text, context)
    return { text }
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo, ...handlers } as never)],
    authenticate: authenticateGood,
    logger: recording.logger,
    ready: async () => true,
    limits,
  })
  client = createStreamClient(listener.url)
}

async function stop(): Promise<void> {
  client.close()
  await listener.stop({ graceMs: 1000 })
}

beforeEach(() => start({}))
afterEach(stop)

async function restart(limits: Partial<ApiLimits>): Promise<void> {
  await stop()
  await start(limits)
}

const kinds = [
  ['count', [{ text: 'a', number: 3 }], [0, 1, 2].map((number) => answer('a', number))],
  ['sum', [1, 2, 39].map((number) => ({ number })), [answer('sum', 42)]],
  ['chat', [1, 2].map((number) => ({ text: 'b', number })), [answer('re b', 1), answer('re b', 2)]],
] as const

function answer(text: string, number: number) {
  return { text, number, eventId: '' }
}

describe.each(streamProtocols)('over %s', (protocol) => {
  it.each(kinds)('%s answers, with header and trailer', async (name, requests, messages) => {
    const outcome = await client.call(protocol, methods[name], requests, { headers })
    expect(outcome).toMatchObject({
      messages,
      error: undefined,
      header: { 'x-heard': 'hello', 'x-request-id': expect.any(String) as string },
      trailer: { 'x-goodbye': 'well' },
    })
    expect(lines.map(({ fields }) => [fields.method, fields.code])).toEqual([
      [`tests.v1.StreamService/${methods[name].name}`, 'ok'],
    ])
  })

  it.each([
    ['count', [{ text: 'fail', number: 2 }], 2],
    ['sum', [{ text: 'a' }, { text: 'fail' }], 0],
    ['chat', [{ text: 'a' }, { text: 'fail' }, { text: 'b' }], 2],
  ] as const)('%s fails midway with its details, and has its header and trailer', async (name, requests, count) => {
    const { messages, error, header, trailer } = await client.call(protocol, methods[name], requests, { headers })
    expect(messages).toHaveLength(count)
    expect(error).toMatchObject({
      code: 'resource_exhausted',
      reason: 'RATE_LIMITED',
      message: 'the limit of 5 calls a minute is reached; wait 3 seconds',
      metadata: { limit: '5', retryAfterSeconds: '3' },
    })
    expect({ ...header, ...trailer }).toMatchObject({ 'x-goodbye': 'well' })
    expect(lines.map(({ fields }) => fields.reason)).toEqual(['RATE_LIMITED'])
  })

  it.each(['count', 'sum', 'chat'] as const)('%s may fail with a ConnectError', async (name) => {
    const { error } = await client.call(protocol, methods[name], [{ text: 'foreign' }], { headers })
    expect(error).toMatchObject({ code: 'aborted', message: 'elsewhere', reason: 'ELSEWHERE', metadata: { a: 'b' } })
    expect(lines.map(({ fields }) => fields.code)).toEqual(['aborted'])
  })

  it('a message that cannot be encoded is INTERNAL, and is logged with its cause', async () => {
    const { error } = await client.call(protocol, methods.count, [{ text: 'bad', number: 1 }], { headers })
    expect(error).toMatchObject({ code: 'internal', reason: 'INTERNAL' })
    expect(lines.at(-1)).toMatchObject({
      level: 'error',
      fields: { reason: 'INTERNAL', err: expect.any(Error) as Error },
    })
  })

  it.each(['sum', 'chat'] as const)('%s checks every message', async (name) => {
    const requests = [{ text: 'good' }, { text: 'longer than sixteen' }]
    const { error } = await client.call(protocol, methods[name], requests, { headers })
    expect(error).toMatchObject({ code: 'invalid_argument', violations: [{ field: 'text' }] })
  })

  it.each(['sum', 'chat'] as const)('%s needs a key', async (name) => {
    const { error } = await client.call(protocol, methods[name], [{ text: 'a' }])
    expect(error).toMatchObject({ reason: 'MISSING_API_KEY' })
  })

  it.each(['count', 'sum', 'chat'] as const)('%s ends at its deadline', async (name) => {
    const requests = [{ text: 'stay', number: 1 }]
    const { error } = await client.call(protocol, methods[name], requests, { headers, timeoutMs: 150 })
    expect(error).toMatchObject({ code: 'deadline_exceeded' })
    expect(await ended.promise).toMatchObject({ name: 'WaybillError' })
  })

  it.each(['count', 'chat'] as const)('%s ends when its caller hangs up', async (name) => {
    await client.call(protocol, methods[name], [{ text: 'stay', number: 1 }], { headers, onMessage: () => 'hang up' })
    expect(await ended.promise).toMatchObject({ reason: 'CALL_CANCELLED' })
  })

  it('chat answers each message before the next is sent', async () => {
    const heard: PromiseWithResolvers<void>[] = [Promise.withResolvers(), Promise.withResolvers()]
    async function* requests() {
      for (const [number, { promise }] of heard.entries()) {
        yield { text: 'c', number }
        await promise
      }
    }
    const { messages } = await client.call(protocol, methods.chat, requests(), {
      headers,
      onMessage: (message) => {
        heard[(message as { number: number }).number]?.resolve()
        return 'go on'
      },
    })
    expect(messages).toEqual([answer('re c', 0), answer('re c', 1)])
  })

  it.each(protocol === 'grpc-js' ? (['gzip'] as const) : (['gzip', 'br'] as const))(
    'all take %s',
    async (compression) => {
      await restart({ compressMinBytes: 1 })
      const encodings = kinds.map(async ([name, requests, messages]) => {
        const outcome = await client.call(protocol, methods[name], requests, { headers, compression })
        expect(outcome).toMatchObject({ messages, error: undefined })
        return outcome.header[protocol.startsWith('connect') ? 'connect-content-encoding' : 'grpc-encoding']
      })
      // grpc-js does not show it.
      const reported = protocol === 'grpc-js' ? undefined : compression
      expect(await Promise.all(encodings)).toEqual(kinds.map(() => reported))
    },
  )
})

describe('a unary method', () => {
  const call = (contentType: string, body: Uint8Array<ArrayBuffer> | string, more: Record<string, string> = {}) =>
    fetch(`${listener.url}/tests.v1.StreamService/Echo`, {
      method: 'POST',
      headers: { ...headers, ...more, 'content-type': contentType },
      body,
    })

  it.each([
    ['a', 200, { text: 'a', number: 0, eventId: '' }],
    [
      'foreign',
      409,
      {
        code: 'aborted',
        message: 'elsewhere',
        details: [expect.objectContaining({ value: expect.any(String) as string })],
      },
    ],
  ])('answers %s over Connect with header and trailer', async (text, status, body) => {
    const response = await call('application/json', JSON.stringify({ text }))
    expect([response.status, await response.json()]).toEqual([status, body])
    expect(Object.fromEntries(response.headers)).toMatchObject({ 'x-heard': 'hello', 'trailer-x-goodbye': 'well' })
  })

  it.each([
    ['gzip', gzipSync],
    ['br', brotliCompressSync],
  ])('takes and gives %s', async (encoding, compress) => {
    await restart({ compressMinBytes: 1 })
    const json = compress(JSON.stringify({ text: 'a' }))
    const fields = { 'content-encoding': encoding, 'accept-encoding': encoding }
    const connect = await call('application/json', json, fields)
    expect(connect.headers.get('content-encoding')).toBe(encoding)
    expect(await connect.json()).toEqual({ text: 'a', number: 0, eventId: '' })
    const bytes = compress(envelope('a', 0).subarray(5))
    const grpc = await call('application/grpc-web+proto', prefixed(bytes, 1), { 'grpc-encoding': encoding })
    expect(grpc.headers.get('grpc-encoding')).toBe(encoding)
    expect(await grpc.text()).toContain('grpc-status: 0')
  })

  it.each([
    ['a', '0'],
    ['foreign', '10'],
  ])('answers %s over gRPC-Web with header and trailer', async (text, status) => {
    const response = await call('application/grpc-web+proto', envelope(text, 0))
    expect(response.headers.get('x-heard')).toBe('hello')
    expect(await response.text()).toMatch(new RegExp(`x-goodbye: well\r\ngrpc-status: ${status}\r\n`))
  })
})

/** The most that the buffers of the kernel and of this process may hold for a reader that takes nothing. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024

describe('a reader that stops', () => {
  beforeEach(() => restart({ maxStreamMs: 400, drainMs: 100 }))

  async function expectBounded(): Promise<void> {
    expect(await ended.promise).toMatchObject({ reason: 'STREAM_EXPIRED' })
    expect(yielded * large.length).toBeGreaterThan(0)
    expect(yielded * large.length).toBeLessThan(MAX_BUFFERED_BYTES)
  }

  it.each(['application/x-ndjson', 'text/event-stream'])('fills no memory, and is cut off: %s', async (accept) => {
    const socket = connectSocket(listener.port, listener.host)
    socket.pause()
    socket.on('error', () => {})
    const head = `GET /v1/count/large?number=1000000 HTTP/1.1\r\nhost: a\r\nx-api-key: good\r\naccept: ${accept}\r\n\r\n`
    socket.write(head)
    await expectBounded()
    await vi.waitFor(() => expect(lines.map(({ fields }) => fields.reason)).toEqual(['STREAM_EXPIRED']), PATIENCE)
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
    let last = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      last = chunk
    })
    socket.resume()
    await closed
    // No chunk without bytes, which would say that this was all.
    expect(last.toString()).not.toMatch(/\r\n0\r\n\r\n$/)
  })

  it.each([
    ['application/grpc', envelope('large', 1_000_000)],
    ['application/grpc-web+proto', envelope('large', 1_000_000)],
    ['application/connect+proto', envelope('large', 1_000_000)],
    ['application/json', Buffer.from(JSON.stringify({ text: 'large', number: 1_000_000 }))],
  ])('fills no memory, and is cut off: %s over HTTP/2', async (contentType, body) => {
    const session = connectHttp2(listener.url)
    const path = contentType === 'application/json' ? '/v1/count' : '/tests.v1.StreamService/Count'
    const fields = { 'x-api-key': 'good', 'content-type': contentType, te: 'trailers' }
    const stream = session.request({ ':method': 'POST', ':path': path, ...fields })
    stream.on('error', () => {})
    stream.pause()
    stream.end(body)
    // Not once, which an error would reject.
    const closed = new Promise<void>((resolve) => stream.on('close', resolve))
    await expectBounded()
    await vi.waitFor(() => expect(lines.map(({ fields }) => fields.reason)).toEqual(['STREAM_EXPIRED']), PATIENCE)
    stream.resume()
    await closed
    expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR)
    session.destroy()
  })
})

function envelope(text: string, number: number): Buffer<ArrayBuffer> {
  const message = toBinary(methods.count.input, create(methods.count.input, { text, number }))
  return prefixed(message, 0)
}

function prefixed(message: Uint8Array, flags: number): Buffer<ArrayBuffer> {
  const prefix = Buffer.from([flags, 0, 0, 0, 0])
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}
