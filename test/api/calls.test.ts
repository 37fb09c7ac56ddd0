import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectSocket } from 'node:net'
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
import {
  createProtocolClients,
  findMethod,
  type ProtocolClient,
  protocols,
} from '../support/clients/protocol-clients.ts'

const service = loadEchoService()
const store = findMethod(service, 'store')
const key = { 'x-api-key': 'good' }
/** Long enough for a call to reach its handler on a busy machine. */
const MAX_CALL_MS = 600

let listener: Listener
let clients: readonly ProtocolClient[]
let handle: (request: EchoRequest, context: HandlerContext) => unknown
let lines: ReturnType<typeof recordingLogger>['lines']
let written: (line: { readonly fields: Record<string, unknown> }) => void

beforeEach(() => start(MAX_CALL_MS))

afterEach(stop)

async function restart(maxCallMs: number): Promise<void> {
  await stop()
  await start(maxCallMs)
}

async function start(maxCallMs: number): Promise<void> {
  const recording = recordingLogger()
  lines = recording.lines
  written = () => {}
  const logger = {
    ...recording.logger,
    info: (fields: object, message: string) => {
      recording.logger.info(fields, message)
      written({ fields: { ...fields } })
    },
  }
  const handler = (request: EchoRequest, context: HandlerContext) => handle(request, context)
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo: handler, store: handler, wait: handler, count: handler })],
    authenticate: authenticateGood,
    logger,
    ready: async () => true,
    limits: { maxCallMs },
  })
  clients = createProtocolClients(listener.url, { store: '/v1/echo' })
}

async function stop(): Promise<void> {
  for (const client of clients) client.close()
  await listener.stop({ graceMs: 1000 })
}

function clientOf(protocol: string): ProtocolClient {
  const client = clients.find((each) => each.protocol === protocol)
  if (client === undefined) throw new Error(`no client of ${protocol}`)
  return client
}

function nextLine(): Promise<Record<string, unknown>> {
  return new Promise((resolve) => {
    written = ({ fields }) => resolve(fields)
  })
}

/** A handler that never answers, and records when it was reached and when its signal aborted. */
function hangingHandler(listens: boolean) {
  const reached = Promise.withResolvers<HandlerContext>()
  const fired = Promise.withResolvers<unknown>()
  const handler = (_request: EchoRequest, context: HandlerContext) => {
    context.signal.addEventListener('abort', () => fired.resolve(context.signal.reason))
    reached.resolve(context)
    return new Promise((_, reject) => {
      if (listens) context.signal.addEventListener('abort', () => reject(context.signal.reason as Error))
    })
  }
  return { handler, reached: reached.promise, fired: fired.promise }
}

describe.each(protocols)('over %s', (protocol) => {
  it.each([
    ['listens to its signal', true],
    ['does not listen', false],
  ])('the deadline ends a call whose handler %s', async (_name, listens) => {
    const { handler, reached, fired } = hangingHandler(listens)
    handle = handler
    const call = clientOf(protocol).call(store, { name: 'a' }, { headers: key })
    const leftMs = (await reached).timeoutMs()
    expect(leftMs).toBeGreaterThan(0)
    expect(leftMs).toBeLessThanOrEqual(MAX_CALL_MS)
    expect(await fired).toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
    expect(await call).toMatchObject({
      code: 'deadline_exceeded',
      reason: 'DEADLINE_EXCEEDED',
      metadata: { timeoutMs: String(MAX_CALL_MS) },
    })
  })

  it('a hang-up aborts the signal and is logged as cancelled', async () => {
    const { handler, reached, fired } = hangingHandler(true)
    handle = handler
    const line = nextLine()
    const aborter = new AbortController()
    const call = clientOf(protocol)
      .call(store, { name: 'a' }, { headers: key, signal: aborter.signal })
      .catch(() => undefined)
    await reached
    aborter.abort()
    expect(await fired).toMatchObject({ reason: 'CALL_CANCELLED' })
    expect(await line).toMatchObject({ code: 'canceled', reason: 'CALL_CANCELLED' })
    await call
    expect(lines).toHaveLength(1)
  })

  it('the signal does not abort after the answer, also when the connection closes and the deadline passes', async () => {
    const contexts: HandlerContext[] = []
    handle = ({ name }, context) => {
      contexts.push(context)
      return { name }
    }
    const outcome = await clientOf(protocol).call(store, { name: 'a' }, { headers: key })
    expect(outcome).toHaveProperty('answer')
    for (const client of clients) client.close()
    await listener.stop({ graceMs: 0 })
    const [context] = contexts
    await new Promise((resolve) => setTimeout(resolve, (context?.timeoutMs() ?? 0) + 5))
    expect(context?.signal.aborted).toBe(false)
    expect(lines).toHaveLength(1)
  })
})

describe.each(['connect-json', 'connect-binary', 'grpc-web', 'grpc'] as const)('over %s', (protocol) => {
  it('a timeout of the caller shortens the deadline', async () => {
    const { handler, reached } = hangingHandler(true)
    handle = handler
    await restart(60_000)
    const aborter = new AbortController()
    const options = { headers: key, timeoutMs: 10_000, signal: aborter.signal }
    const call = clientOf(protocol).call(store, { name: 'a' }, options)
    expect((await reached).timeoutMs()).toBeLessThanOrEqual(10_000)
    aborter.abort()
    await call
  })

  it('a timeout of the caller beyond the maximum does not lengthen it', async () => {
    handle = (_request, { timeoutMs }) => ({ large: BigInt(timeoutMs() ?? 0) })
    const outcome = await clientOf(protocol).call(store, { name: 'a' }, { headers: key, timeoutMs: 60_000 })
    if (!('answer' in outcome)) throw new Error(outcome.message)
    expect(Number((outcome.answer as { large: string }).large)).toBeLessThanOrEqual(MAX_CALL_MS)
  })
})

it.each([
  ['connect-json', { 'connect-timeout-ms': '0' }],
  ['connect-binary', { 'connect-timeout-ms': '0' }],
  ['grpc-web', { 'grpc-timeout': '0m' }],
])('over %s a timeout of zero fails before the handler', async (protocol, timeout) => {
  handle = () => expect.unreachable()
  const outcome = await clientOf(protocol).call(store, { name: 'a' }, { headers: { ...key, ...timeout } })
  expect(outcome).toMatchObject({ code: 'deadline_exceeded', reason: 'DEADLINE_EXCEEDED' })
})

it('the error names a timeout below a millisecond as it was sent', async () => {
  handle = () => new Promise(() => {})
  const options = { headers: { ...key, 'grpc-timeout': '250u' } }
  const outcome = await clientOf('grpc-web').call(store, { name: 'a' }, options)
  expect(outcome).toMatchObject({
    reason: expect.stringMatching(/^(DEADLINE_EXCEEDED|REQUEST_TOO_SLOW)$/),
    message: expect.stringContaining('0.25 ms'),
  })
})

describe('a hang-up before the handler', () => {
  it('within a body over HTTP/1.1 ends the call', async () => {
    const line = nextLine()
    const socket = connectSocket(listener.port, listener.host)
    socket.write(
      'POST /v1/echo HTTP/1.1\r\nhost: x\r\nx-api-key: good\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"na',
    )
    await once(socket, 'connect')
    socket.end()
    expect(await line).toMatchObject({ reason: 'CALL_CANCELLED' })
  })

  it('within a body over HTTP/2 ends the call', async () => {
    const line = nextLine()
    const session = connectHttp2(listener.url)
    const stream = session.request({ ':method': 'POST', ':path': '/v1/echo', ...key })
    stream.on('error', () => {})
    stream.write('{"na')
    await once(session, 'remoteSettings')
    // The server has the request once it has answered a ping that was sent after it.
    await new Promise((resolve) => session.ping(resolve))
    stream.destroy()
    expect(await line).toMatchObject({ reason: 'CALL_CANCELLED' })
    session.destroy()
  })

  it('a body that never ends is cut off by the deadline, over HTTP/2 as well', async () => {
    const session = connectHttp2(listener.url)
    const stream = session.request({ ':method': 'POST', ':path': '/v1/echo', ...key })
    stream.write('{"na')
    const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect(headers[':status']).toBe(408)
    stream.resume()
    await once(stream, 'close')
    session.destroy()
    expect(lines).toMatchObject([{ fields: { reason: 'REQUEST_TOO_SLOW' } }])
  })

  it.each([
    ['tests.v1.EchoService/Store', 'a call'],
    ['tests.v1.EchoService/Count', 'a stream'],
  ])('a body that is missing when the timeout of gRPC passes is REQUEST_TOO_SLOW: %s', async (path) => {
    const line = nextLine()
    const session = connectHttp2(listener.url)
    const fields = { ':method': 'POST', 'content-type': 'application/grpc', 'grpc-timeout': '200m', ...key }
    const stream = session.request({ ':path': `/${path}`, ...fields })
    stream.on('error', () => {})
    stream.write(Buffer.from([0, 0, 0]))
    expect(await line).toMatchObject({ code: 'deadline_exceeded', reason: 'REQUEST_TOO_SLOW' })
    session.destroy()
  })
})
