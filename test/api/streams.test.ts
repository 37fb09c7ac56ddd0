import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { toJson } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import { type ConnectError, createClient } from '@connectrpc/connect'
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from '@connectrpc/connect-node'
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Health, HealthCheckResponse_ServingStatus as Status } from '../../gen/grpc/health/v1/health_pb.js'
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import {
  authenticateGood,
  type EchoRequest,
  loadEchoService,
  recordingLogger,
  serveEcho,
} from '../support/clients/echo-service.ts'
import { findMethod, fromConnectError } from '../support/clients/protocol-clients.ts'

const run = promisify(execFile)
const service = loadEchoService()
const count = findMethod(service, 'count')
const key = { 'x-api-key': 'good' }

let listener: Listener
let lines: ReturnType<typeof recordingLogger>['lines']
let isReady = true
let readings = 0
let handle: (request: EchoRequest, context: HandlerContext) => AsyncIterable<object>
let sessions: Http2SessionManager[]

beforeEach(() => start(60_000))

async function start(maxStreamMs: number): Promise<void> {
  const recording = recordingLogger()
  lines = recording.lines
  isReady = true
  sessions = []
  const unary = async ({ name }: EchoRequest) => ({ name })
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [
      serveEcho(service, {
        echo: unary,
        store: unary,
        wait: unary,
        count: (request, context) => handle(request, context),
      }),
    ],
    authenticate: authenticateGood,
    logger: recording.logger,
    ready: async () => {
      readings += 1
      return isReady
    },
    limits: { maxStreamMs },
  })
}

afterEach(async () => {
  for (const session of sessions) session.abort()
  await listener.stop({ graceMs: 1000 })
})

function transports() {
  const common = () => {
    const sessionManager = new Http2SessionManager(listener.url)
    sessions.push(sessionManager)
    return { httpVersion: '2', baseUrl: listener.url, sessionManager } as const
  }
  return {
    grpc: createGrpcTransport(common()),
    'grpc-web': createGrpcWebTransport(common()),
    'connect-json': createConnectTransport(common()),
    'connect-binary': createConnectTransport({ ...common(), useBinaryFormat: true }),
  }
}

const streamProtocols = ['grpc', 'grpc-web', 'connect-json', 'connect-binary'] as const

async function* once(message: object) {
  yield message
}

async function readCount(
  protocol: (typeof streamProtocols)[number],
  request: object,
  { signal, headers = key }: { readonly signal?: AbortSignal; readonly headers?: Record<string, string> } = {},
) {
  const transport = transports()[protocol]
  const response = await transport.stream(count as never, signal, undefined, headers, once(request) as never)
  const names: unknown[] = []
  for await (const message of response.message) names.push(toJson(count.output, message as never))
  return { names, header: response.header }
}

describe.each(streamProtocols)('a stream over %s', (protocol) => {
  it('is logged once, when it ends', async () => {
    handle = async function* ({ name }) {
      for (const limit of [0, 1, 2]) yield { name, limit }
    }
    const { names, header } = await readCount(protocol, { name: 'a' })
    expect(names).toEqual([0, 1, 2].map((limit) => ({ name: 'a', limit })))
    expect(header.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(lines.map(({ fields }) => fields)).toEqual([
      expect.objectContaining({ method: 'tests.v1.EchoService/Count', code: 'ok', account: 'acme' }),
    ])
  })

  it.each([
    ['without a key', { name: 'a' }, {}, 'MISSING_API_KEY'],
    ['with a wrong request', { colors: [99] }, key, 'UNKNOWN_ENUM_VALUE'],
    ['with a request that breaks a rule', {}, key, 'MISSING_FIELD'],
  ])('%s fails with its reason', async (_name, request, headers, reason) => {
    const error = await readCount(protocol, request, { headers: headers }).catch(
      (thrown: unknown) => thrown as ConnectError,
    )
    expect(fromConnectError(error as ConnectError)).toMatchObject({ reason })
    expect(lines.map(({ fields }) => fields.reason)).toEqual([reason])
  })

  it('fails midway with its reason', async () => {
    handle = async function* ({ name }) {
      yield { name }
      throw waybillError('RATE_LIMITED', { limit: 5, retryAfterSeconds: 3 })
    }
    const error = await readCount(protocol, { name: 'a' }).catch((thrown: unknown) => thrown as ConnectError)
    expect(fromConnectError(error as ConnectError)).toMatchObject({
      code: 'resource_exhausted',
      reason: 'RATE_LIMITED',
      message: 'the limit of 5 calls a minute is reached; wait 3 seconds',
    })
  })

  it('ends its handler when the caller hangs up', async () => {
    const aborter = new AbortController()
    const ended = Promise.withResolvers<unknown>()
    handle = async function* ({ name }, { signal }) {
      signal.addEventListener('abort', () => ended.resolve(signal.reason))
      yield { name }
      aborter.abort()
      await ended.promise
    }
    await readCount(protocol, { name: 'a' }, { signal: aborter.signal }).catch(() => {})
    expect(await ended.promise).toMatchObject({ reason: 'CALL_CANCELLED' })
  })

  it('ends with SHUTTING_DOWN when the process stops', async () => {
    handle = async function* ({ name }, { signal }) {
      yield { name }
      void listener.stop({ graceMs: 5000 })
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))
    }
    const error = await readCount(protocol, { name: 'a' }).catch((thrown: unknown) => thrown as ConnectError)
    expect(fromConnectError(error as ConnectError)).toMatchObject({ code: 'unavailable', reason: 'SHUTTING_DOWN' })
  })
})

describe('a stream that neither side ends', () => {
  beforeEach(async () => {
    await listener.stop({ graceMs: 0 })
    await start(300)
    handle = async function* ({ name }) {
      yield { name }
      await new Promise(() => {})
    }
  })

  it.each(streamProtocols)('over %s ends at the limit of all streams', async (protocol) => {
    const error = await readCount(protocol, { name: 'a' }).catch((thrown: unknown) => thrown as ConnectError)
    expect(fromConnectError(error as ConnectError)).toMatchObject({
      code: 'unavailable',
      reason: 'STREAM_EXPIRED',
      message: 'a stream lasts 300 ms at most; call again',
    })
  })

  it('ends at an earlier deadline of its caller, but not at a later one', async () => {
    const reasonAfter = async (timeout: string) => {
      const headers = { ...key, 'grpc-timeout': timeout }
      const error = await readCount('grpc', { name: 'a' }, { headers }).catch((thrown: unknown) => thrown)
      return fromConnectError(error as ConnectError)
    }
    expect(await reasonAfter('100m')).toMatchObject({ reason: 'DEADLINE_EXCEEDED' })
    expect(await reasonAfter('9H')).toMatchObject({ reason: 'STREAM_EXPIRED' })
  })
})

it('grpc-js reads the message of a failed stream as it was written', async () => {
  handle = async function* () {
    yield* []
    throw waybillError('RATE_LIMITED', { limit: 5, retryAfterSeconds: 3 })
  }
  const client = new Client(new URL(listener.url).host, credentials.createInsecure())
  const metadata = new Metadata()
  metadata.set('x-api-key', 'good')
  const call = client.makeServerStreamRequest(
    '/tests.v1.EchoService/Count',
    (bytes: Buffer) => bytes,
    (bytes: Buffer) => bytes,
    Buffer.from([0x0a, 0x01, 0x61]),
    metadata,
  )
  call.resume()
  const error = await new Promise<ServiceError>((resolve) =>
    call.on('error', (thrown) => resolve(thrown as ServiceError)),
  )
  expect(error.details).toBe('the limit of 5 calls a minute is reached; wait 3 seconds')
  client.close()
})

describe('grpc.health.v1', () => {
  it('refuses to check a service that is not served by name', async () => {
    await expect(
      createClient(Health, transports().grpc).check({ service: 'grpc.health.v1.Health' }),
    ).rejects.toMatchObject({
      code: 5,
      rawMessage: 'there is no service "grpc.health.v1.Health" here; list the services with server reflection',
    })
  })

  it.each(['', 'tests.v1.EchoService'])('checks "%s" without a key', async (name) => {
    const client = createClient(Health, transports().grpc)
    expect(await client.check({ service: name })).toMatchObject({ status: Status.SERVING })
    isReady = false
    expect(await client.check({ service: name })).toMatchObject({ status: Status.NOT_SERVING })
  })

  it('lists the services', async () => {
    const { statuses } = await createClient(Health, transports().grpc).list({})
    expect(Object.keys(statuses)).toEqual(['', 'tests.v1.EchoService'])
  })

  it('watches changes, and unknown services as well', async () => {
    const client = createClient(Health, transports().grpc)
    const seen: Status[] = []
    for await (const { status } of client.watch({ service: '' })) {
      seen.push(status)
      isReady = false
      if (seen.length === 2) break
    }
    expect(seen).toEqual([Status.SERVING, Status.NOT_SERVING])
    for await (const { status } of client.watch({ service: 'no.Such' })) {
      expect(status).toBe(Status.SERVICE_UNKNOWN)
      break
    }
  })
})

it('all watches share one reading of the state', async () => {
  const client = createClient(Health, transports().grpc)
  const watches = Array.from({ length: 8 }, () => client.watch({ service: '' })[Symbol.asyncIterator]())
  const read = async () => (await Promise.all(watches.map((watch) => watch.next()))).map(({ value }) => value?.status)
  expect(new Set(await read())).toEqual(new Set([Status.SERVING]))
  readings = 0
  isReady = false
  expect(new Set(await read())).toEqual(new Set([Status.NOT_SERVING]))
  expect(readings).toBeLessThanOrEqual(2)
})

describe('server reflection', () => {
  it.each([
    ['fileByFilename', 'tests/v1/echo_service.proto', 'fileDescriptorResponse'],
    ['fileByFilename', 'no/such.proto', 'errorResponse'],
    ['fileContainingSymbol', 'tests.v1.EchoService', 'fileDescriptorResponse'],
    ['fileContainingSymbol', 'tests.v1.EchoService.Count', 'fileDescriptorResponse'],
    ['fileContainingSymbol', 'tests.v1.EchoRequest.name', 'fileDescriptorResponse'],
    ['fileContainingSymbol', 'google.api.HttpRule', 'fileDescriptorResponse'],
    ['fileContainingSymbol', 'google.rpc.ErrorInfo', 'fileDescriptorResponse'],
    ['fileContainingSymbol', 'google.rpc.Status', 'fileDescriptorResponse'],
    ['fileContainingSymbol', 'tests.v1.Nothing', 'errorResponse'],
    ['allExtensionNumbersOfType', 'google.protobuf.MethodOptions', 'allExtensionNumbersResponse'],
  ] as const)('answers %s %s with %s', async (asked, value, answered) => {
    const client = createClient(ServerReflection, transports().grpc)
    const requests = once({ messageRequest: { case: asked, value } }) as never
    for await (const { messageResponse } of client.serverReflectionInfo(requests)) {
      expect(messageResponse.case).toBe(answered)
    }
  })

  it('lets buf list the services', async () => {
    const { stdout } = await run('buf', [
      'curl',
      '--list-services',
      '--protocol',
      'grpc',
      '--http2-prior-knowledge',
      listener.url,
    ])
    expect(stdout.trim().split('\n')).toEqual([
      'grpc.health.v1.Health',
      'grpc.reflection.v1.ServerReflection',
      'grpc.reflection.v1alpha.ServerReflection',
      'tests.v1.EchoService',
    ])
  })

  it.each(['grpc', 'grpcweb', 'connect'])('lets buf call a method over %s without its definition', async (protocol) => {
    const { stdout } = await run('buf', [
      'curl',
      '--protocol',
      protocol,
      '--http2-prior-knowledge',
      '-H',
      'x-api-key: good',
      '-d',
      '{"name":"bob"}',
      `${listener.url}/tests.v1.EchoService/Echo`,
    ])
    expect(JSON.parse(stdout)).toEqual({ name: 'bob' })
  })
})
