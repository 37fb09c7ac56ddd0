import { create, fromBinary, type Message, toBinary } from '@bufbuild/protobuf'
import { createClient } from '@connectrpc/connect'
import { createConnectTransport } from '@connectrpc/connect-node'
import { Client, credentials, Metadata, type ServiceError, type StatusObject } from '@grpc/grpc-js'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RetryInfoSchema } from '../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../gen/google/rpc/status_pb.js'
import { Health } from '../../gen/grpc/health/v1/health_pb.js'
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { createAuth } from '../../src/auth/auth.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKey } from '../../src/auth/rules/api-key.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { findMethod } from '../support/clients/protocol-clients.ts'
import { sendRequest } from '../support/clients/raw-http.ts'
import { createTestDatabase, type TestDatabase } from '../support/data/database.ts'
import { recordLogs } from '../support/logs.ts'

const START = new Date('2026-03-01T12:00:00.000Z')
const OPEN_CALLS = 5
const service = loadEchoService()
const echo = findMethod(service, 'echo')

let database: TestDatabase
let listener: Listener
let nowMs = START.getTime()
const now = () => new Date(nowMs)
let addresses = 0
/** The address from which the next calls come, as a trusted proxy on loopback says. */
let address = ''

beforeAll(async () => {
  database = await createTestDatabase()
  const auth = createAuth({
    knex: database.knex,
    cursorSecret: Buffer.alloc(32),
    logger: recordLogs(),
    now,
    openCallsPerMinute: OPEN_CALLS,
    limitClock: { now, monotonicMs: () => nowMs },
    // On a busy machine the process must not fall back to counting by itself.
    leaseTimeoutMs: 60_000,
  })
  const unary = async ({ name }: { name: string }) => ({ name })
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [
      serveEcho(service, {
        echo: unary,
        store: unary,
        wait: unary,
        async *count({ name }) {
          yield { name }
          yield { name }
          yield { name }
        },
      }),
    ],
    ...auth,
    openFiles: {
      paths: [],
      covers: (path) => path.startsWith('/page'),
      read: async (path) => ({
        contentType: 'text/plain',
        body: path,
        etag: '"1"',
        isImmutable: path === '/page/script',
      }),
    },
    trustedProxies: ['127.0.0.0/8'],
    corsOrigins: ['https://shop.example'],
    logger: recordingLogger().logger,
    ready: async () => true,
  })
})
afterAll(async () => {
  await listener.stop({ graceMs: 1_000 })
  await database.drop()
})
beforeEach(() => {
  nowMs += 60_000
  addresses += 1
  address = `192.0.2.${addresses}`
})

async function issue(callsPerMinute: number): Promise<string> {
  const terms = { account: 'acme', scopes: ['payments:read'], now: START, callsPerMinute } as const
  return (await issueApiKey(createApiKeyRepository(database.knex), terms)).key
}

interface Answer {
  /** HTTP status, or the code of gRPC. */
  readonly status: number
  readonly header: (name: string) => string | null
  /** In seconds, from google.rpc.RetryInfo; undefined without. */
  readonly retryDelay: number | undefined
}

type Call = (apiKey: string, name?: string) => Promise<Answer>

const headersOf = (apiKey: string) => ({ 'x-api-key': apiKey, 'x-forwarded-for': address })

interface HttpCall {
  readonly method?: string
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

async function callHttp(path: string, apiKey: string, init: HttpCall = {}): Promise<Answer> {
  const answer = await fetch(listener.url + path, { ...init, headers: { ...headersOf(apiKey), ...init.headers } })
  const text = await answer.text()
  // Plain JSON and Connect both write the detail as JSON; in Connect it is for debugging.
  const delay = /"retryDelay":"(\d+)s"/.exec(text)?.[1]
  return {
    status: answer.status,
    header: (name) => answer.headers.get(name),
    retryDelay: delay === undefined ? undefined : Number(delay),
  }
}

const callRest: Call = (apiKey, name = 'a') => callHttp(`/v1/echo/${name}`, apiKey)

const callConnect: Call = (apiKey, name = 'a') =>
  callHttp('/tests.v1.EchoService/Echo', apiKey, {
    method: 'POST',
    body: JSON.stringify({ name }),
    headers: { 'content-type': 'application/json' },
  })

const callGrpcWeb: Call = async (apiKey, name = 'a') => {
  const message = toBinary(echo.input, create(echo.input, { name }))
  const body = Buffer.concat([Buffer.from([0, 0, 0, 0, message.length]), message])
  const answer = await fetch(`${listener.url}/tests.v1.EchoService/Echo`, {
    method: 'POST',
    body,
    headers: { ...headersOf(apiKey), 'content-type': 'application/grpc-web+proto' },
  })
  const text = await answer.text()
  const details = /grpc-status-details-bin: ?([^\r\n]+)/.exec(text)?.[1]
  return {
    status: Number(/grpc-status: ?(\d+)/.exec(text)?.[1]),
    header: (each) => answer.headers.get(each),
    retryDelay: details === undefined ? undefined : retryDelayOf(Buffer.from(details, 'base64')),
  }
}

const callGrpc: Call = async (apiKey, name = 'a') => {
  const client = new Client(new URL(listener.url).host, credentials.createInsecure())
  const metadata = new Metadata()
  for (const [key, value] of Object.entries(headersOf(apiKey))) metadata.set(key, value)
  const ended = Promise.withResolvers<{ error: ServiceError | null; header: Metadata }>()
  let header = new Metadata()
  client
    .makeUnaryRequest(
      '/tests.v1.EchoService/Echo',
      (message: Message) => Buffer.from(toBinary(echo.input, message)),
      (bytes: Buffer) => fromBinary(echo.output, bytes),
      create(echo.input, { name }),
      metadata,
      (error) => ended.resolve({ error, header }),
    )
    .on('metadata', (given: Metadata) => {
      header = given
    })
  const { error } = await ended.promise
  client.close()
  const given = error === null ? header : (error as StatusObject).metadata
  const [details] = given.get('grpc-status-details-bin')
  return {
    status: error?.code ?? 0,
    header: (each) => given.get(each)[0]?.toString() ?? header.get(each)[0]?.toString() ?? null,
    retryDelay: details === undefined ? undefined : retryDelayOf(details as Buffer),
  }
}

function retryDelayOf(bytes: Uint8Array): number | undefined {
  const { details } = fromBinary(StatusSchema, bytes)
  const detail = details.find(({ typeUrl }) => typeUrl.endsWith('google.rpc.RetryInfo'))
  return detail && Number(fromBinary(RetryInfoSchema, detail.value).retryDelay?.seconds)
}

/** The rate limit headers of an answer. */
function limitsOf({ header }: Answer) {
  const names = ['ratelimit-policy', 'ratelimit', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']
  return names.map(header)
}

describe.each([
  ['REST', callRest, 200, 429, 401, 400],
  ['Connect', callConnect, 200, 429, 401, 400],
  ['gRPC', callGrpc, 0, 8, 16, 3],
  ['gRPC-Web', callGrpcWeb, 0, 8, 16, 3],
] as const)('over %s', (protocol, call, good, limited, unauthenticated, invalid) => {
  const hasRetryAfter = protocol === 'REST' || protocol === 'Connect'

  it('every answer to a key says how many calls are left, and a call beyond the limit is refused with the time to wait', async () => {
    const key = await issue(3)
    const answers = [await call(key), await call(key, 'a name that is too long'), await call(key), await call(key)]
    expect(answers.map(({ status }) => status)).toEqual([good, invalid, good, limited])
    const reset = answers[0]?.header('x-ratelimit-reset')
    expect(Number(reset)).toBeGreaterThan(0)
    expect(Number(reset)).toBeLessThanOrEqual(60)
    expect(answers.map(limitsOf)).toEqual(
      [2, 1, 0, 0].map((left) => ['"key";q=3;w=60', `"key";r=${left};t=${reset}`, '3', String(left), reset]),
    )
    expect(answers.map(({ retryDelay }) => retryDelay)).toEqual([undefined, undefined, undefined, Number(reset)])
    const waits = answers.map(({ header }) => header('retry-after'))
    expect(waits).toEqual([null, null, null, hasRetryAfter ? reset : null])
    nowMs += Number(reset) * 1000
    expect((await call(key)).status).toBe(good)
  })

  it('answers to a key without limit have no such headers', async () => {
    const answer = await call(await issue(0))
    expect([answer.status, ...limitsOf(answer)]).toEqual([good, null, null, null, null, null])
  })

  it('wrong keys count against their address only', async () => {
    const statuses: number[] = []
    for (let i = 0; i < OPEN_CALLS; i++) statuses.push((await call(createApiKey())).status)
    expect(new Set(statuses)).toEqual(new Set([unauthenticated]))
    const answer = await call(createApiKey())
    expect([answer.status, answer.retryDelay]).toEqual([limited, 60])
    expect(limitsOf(answer)).toEqual(['"address";q=5;w=60', '"address";r=0;t=60', '5', '0', '60'])
    address = '198.51.100.1, 192.0.2.250'
    expect((await call(createApiKey())).status).toBe(unauthenticated)
  })
})

it('a stream counts as one call, however many messages it has', async () => {
  const key = await issue(2)
  const transport = createConnectTransport({ httpVersion: '1.1', baseUrl: listener.url })
  const client = createClient(service as typeof Health, transport) as unknown as {
    count: (request: object, options: object) => AsyncIterable<object>
  }
  const read = async () => {
    let seen: Headers | undefined
    let messages = 0
    const onHeader = (header: Headers) => {
      seen = header
    }
    try {
      for await (const _ of client.count({ name: 'a' }, { headers: headersOf(key), onHeader })) messages += 1
      return [messages, seen?.get('ratelimit')?.replace(/;t=\d+$/, '')]
    } catch (error) {
      return [(error as { rawMessage: string }).rawMessage, seen?.get('ratelimit')?.replace(/;t=\d+$/, '')]
    }
  }
  expect(await read()).toEqual([3, '"key";r=1'])
  expect(await read()).toEqual([3, '"key";r=0'])
  expect(await read()).toEqual([expect.stringContaining('the limit of 2 calls a minute is reached'), '"key";r=0'])
})

describe('a call that needs no key', () => {
  it.each([
    ['an unknown path', () => callHttp('/nowhere', ''), 404],
    ['a wrong method', () => callHttp('/v1/echo/a', '', { method: 'PUT' }), 405],
    ['OPTIONS', () => callHttp('/v1/echo/a', '', { method: 'OPTIONS' }), 204],
    ['an unknown method of RPC', () => callHttp('/tests.v1.EchoService/Nothing', '', jsonPost), 404],
    ['a call without a key', () => callHttp('/v1/echo/a', ''), 401],
    ['a call with a word for a key', () => callHttp('/v1/echo/a', 'demo'), 401],
  ])('counts against the address: %s', async (_, ask, status) => {
    for (let left = OPEN_CALLS - 1; left >= 0; left--) {
      const answer = await ask()
      expect([answer.status, answer.header('ratelimit')]).toEqual([status, `"address";r=${left};t=60`])
    }
    const refused = await ask()
    expect([refused.status, refused.header('retry-after')]).toEqual([429, '60'])
    nowMs += 60_000
    expect((await ask()).status).toBe(status)
  })

  it('counts against the address: reflection', async () => {
    const transport = createConnectTransport({ httpVersion: '2', baseUrl: listener.url })
    const client = createClient(ServerReflection, transport)
    async function* ask() {
      yield { messageRequest: { case: 'listServices', value: '' } } as const
    }
    const reflect = async () => {
      for await (const _ of client.serverReflectionInfo(ask(), { headers: headersOf('') })) return 'answered'
      return 'nothing'
    }
    for (let i = 0; i < OPEN_CALLS; i++) expect(await reflect()).toBe('answered')
    await expect(reflect()).rejects.toThrow('the limit of 5 calls a minute is reached')
  })

  it('does not count health', async () => {
    const health = createClient(Health, createConnectTransport({ httpVersion: '1.1', baseUrl: listener.url }))
    for (let i = 0; i <= 2 * OPEN_CALLS; i++) {
      expect((await callHttp('/healthz', '')).status).toBe(200)
      expect((await callHttp('/readyz', '')).status).toBe(200)
      await health.check({}, { headers: headersOf('') })
    }
    const { status, header } = await callHttp('/nowhere', '')
    expect([status, header('ratelimit')]).toEqual([404, '"address";r=4;t=60'])
  })

  it('counts against the address that trusted proxies forward, and IPv6 by /64', async () => {
    for (let i = 0; i < OPEN_CALLS; i++) {
      address = `203.0.113.${i}, 2001:db8:0:${addresses}::${i}`
      expect((await callHttp('/nowhere', '')).status).toBe(404)
    }
    expect((await callHttp('/nowhere', '')).status).toBe(429)
    address = '2001:db8:0:ffff::1'
    expect((await callHttp('/nowhere', '')).status).toBe(404)
  })
})

const jsonPost = { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }

it('pages of allowed origins may read the limits and the time', async () => {
  const { headers } = await sendRequest(listener.port, {
    target: '/v1/echo/a',
    headers: { origin: 'https://shop.example', 'x-api-key': await issue(3), host: 'x' },
  })
  const exposed = headers['access-control-expose-headers']
  expect(exposed).toContain('ratelimit-policy, ratelimit, x-ratelimit-limit')
  expect(exposed).toMatch(/\bdate\b/)
})

it('counts the pages that an address opens, not the scripts that they are made of', async () => {
  const open = async (path: string) => (await callHttp(path, '')).status
  for (let page = 0; page < OPEN_CALLS; page++) expect(await open('/page')).toBe(200)
  expect(await open('/page')).toBe(429)
  expect(await open('/page/script')).toBe(200)
})
