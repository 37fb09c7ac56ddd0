import { connect as connectHttp2 } from 'node:http2'
import { text as readText } from 'node:stream/consumers'
import type { Message } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ServedService } from '../../src/api/calls/served-method.ts'
import type { Listener } from '../../src/api/listener/listener.ts'
import { type ApiLimits, serveApi } from '../../src/api/serve-api.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import { authenticateGood, loadTestService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { readRestAnswer } from '../support/clients/protocol-clients.ts'
import { sendRequest } from '../support/clients/raw-http.ts'

const service = loadTestService('tests.v1.StreamService')
const key = { 'x-api-key': 'good' }
const ndjson = { ...key, accept: 'application/x-ndjson' }
const sse = { ...key, accept: 'text/event-stream' }

interface StreamRequest extends Message {
  readonly text: string
  readonly number: number
}

let listener: Listener
let lines: ReturnType<typeof recordingLogger>['lines']
/** The handler of the stream. */
let handle: (request: StreamRequest, context: HandlerContext) => AsyncIterable<object>
/** What a handler waits for. */
let gate: PromiseWithResolvers<void>

async function start(limits: Partial<ApiLimits> = {}): Promise<void> {
  const recording = recordingLogger()
  lines = recording.lines
  gate = Promise.withResolvers()
  const unused = async () => ({})
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [
      withEventIds(
        serveEcho(service, {
          echo: unused,
          sum: unused,
          chat: unused,
          count: (request, context) => handle(request as never, context),
        }),
      ),
    ],
    authenticate: authenticateGood,
    logger: recording.logger,
    ready: async () => true,
    limits,
  })
}

function withEventIds(served: ServedService): ServedService {
  const eventIdOf = (answer: object) => (answer as { eventId?: string }).eventId || undefined
  return { ...served, methods: served.methods.map((method) => ({ ...method, eventIdOf })) }
}

beforeEach(async () => {
  await start()
  handle = async function* ({ text, number: count }, { requestHeader, responseHeader }) {
    responseHeader.set('x-from-handler', 'yes')
    const last = Number(requestHeader.get('last-event-id') ?? -1)
    for (let number = last + 1; number < count; number += 1) yield { text, number, eventId: String(number) }
  }
})
afterEach(() => listener.stop({ graceMs: 1000 }))

async function restart(limits: Partial<ApiLimits>): Promise<void> {
  await listener.stop({ graceMs: 0 })
  await start(limits)
}

function get(path: string, headers: Record<string, string>, init: RequestInit = {}): Promise<Response> {
  return fetch(listener.url + path, { headers, ...init })
}

/** Reads until the text is enough. */
async function readUntil(response: Response, isEnough: (text: string) => boolean): Promise<string> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (reader === undefined) throw new Error('no body')
  let text = ''
  while (!isEnough(text)) {
    const { done, value } = await reader.read()
    if (done) throw new Error(`ended after ${JSON.stringify(text)}`)
    text += value
  }
  return text
}

const failure = {
  code: 'resource_exhausted',
  message: 'the limit of 5 calls a minute is reached; wait 3 seconds',
  details: [expect.objectContaining({ reason: 'RATE_LIMITED' }), expect.objectContaining({ retryDelay: '3s' })],
}

function fail(): never {
  throw waybillError('RATE_LIMITED', { limit: 5, retryAfterSeconds: 3 })
}

describe('JSON lines', () => {
  it('hold one result each', async () => {
    const response = await get('/v1/count/a?number=2', ndjson)
    expect(await response.text()).toBe(
      '{"result":{"text":"a","number":0,"eventId":"0"}}\n{"result":{"text":"a","number":1,"eventId":"1"}}\n',
    )
    expect(response.status).toBe(200)
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/x-ndjson',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-from-handler': 'yes',
      'x-request-id': expect.any(String) as string,
      vary: expect.stringContaining('accept,') as string,
    })
    expect(lines.map(({ fields }) => fields)).toEqual([
      expect.objectContaining({
        method: 'tests.v1.StreamService/Count',
        protocol: 'rest',
        code: 'ok',
        account: 'acme',
      }),
    ])
  })

  it('come without messages as an empty body', async () => {
    const response = await get('/v1/count/a', ndjson)
    expect([response.status, await response.text()]).toEqual([200, ''])
  })

  it('take a body, and write the field that the route names', async () => {
    const body = JSON.stringify({ text: 'b', number: 1 })
    const headers = { ...key, 'content-type': 'application/json' }
    const posted = await get('/v1/count', headers, { method: 'POST', body })
    expect(await posted.text()).toBe('{"result":{"text":"b","number":0,"eventId":"0"}}\n')
    expect(await (await get('/v1/texts/b?number=2', ndjson)).text()).toBe('{"result":"b"}\n{"result":"b"}\n')
  })

  it('end with an error', async () => {
    handle = async function* ({ text }) {
      yield { text }
      fail()
    }
    const text = (await (await get('/v1/count/a', ndjson)).text()).trimEnd()
    const [first = '', last = '', ...more] = text.split('\n')
    expect(JSON.parse(first)).toEqual({ result: { text: 'a', number: 0, eventId: '' } })
    expect(JSON.parse(last)).toEqual({ error: failure })
    expect(more).toEqual([])
    expect(lines.map(({ fields }) => fields.reason)).toEqual(['RATE_LIMITED'])
  })

  it.each(['identity', 'gzip'])('end with INTERNAL where a message cannot be encoded, with %s', async (encoding) => {
    handle = async function* ({ text }) {
      yield { text }
      yield {
        get text() {
          throw new Error('there is no text')
        },
      }
      yield { text }
    }
    const text = await (await get('/v1/count/a', { ...ndjson, 'accept-encoding': encoding })).text()
    const [first = '', last = '', ...more] = text.trimEnd().split('\n')
    expect(JSON.parse(first)).toMatchObject({ result: { text: 'a' } })
    expect(JSON.parse(last)).toMatchObject({ error: { code: 'internal', details: [{ reason: 'INTERNAL' }] } })
    expect(more).toEqual([])
    const errors = () => lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)
    await expect.poll(errors).toMatchObject([{ reason: 'INTERNAL', err: expect.any(Error) as Error }])
  })

  it('go over HTTP/2 as well', async () => {
    const session = connectHttp2(listener.url)
    const stream = session.request({ ':path': '/v1/count/a?number=1', ...ndjson })
    expect(await readText(stream)).toBe('{"result":{"text":"a","number":0,"eventId":"0"}}\n')
    session.close()
  })
})

describe('server-sent events', () => {
  it('hold one message each, with its id, and say when they end', async () => {
    const response = await get('/v1/count/a?number=2', sse)
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(await response.text()).toBe(
      [
        'id: 0\ndata: {"text":"a","number":0,"eventId":"0"}\n\n',
        'id: 1\ndata: {"text":"a","number":1,"eventId":"1"}\n\n',
        'event: end\ndata: {}\n\n',
      ].join(''),
    )
  })

  it('continue after the last one that was read', async () => {
    const response = await get('/v1/count/a?number=3', { ...sse, 'last-event-id': '1' })
    expect((await response.text()).split('\n\n')[0]).toBe('id: 2\ndata: {"text":"a","number":2,"eventId":"2"}')
  })

  it('end with an error', async () => {
    handle = async function* ({ text }) {
      yield { text }
      fail()
    }
    const events = (await (await get('/v1/count/a', sse)).text()).split('\n\n')
    expect(events).toHaveLength(3)
    const [, error = ''] = /^event: error\ndata: (.*)$/.exec(events[1] ?? '') ?? []
    expect(JSON.parse(error)).toEqual(failure)
  })
})

describe('before the first message', () => {
  it.each([
    ['no key', '/v1/count/a', { accept: 'text/event-stream' }, 401, 'MISSING_API_KEY'],
    ['an unknown parameter', '/v1/count/a?nmber=1', sse, 400, 'UNKNOWN_PARAMETER'],
    ['a broken rule', '/v1/count/longer-than-sixteen', sse, 400, 'VALUE_TOO_LONG'],
    ['an Accept that cannot be met', '/v1/count/a', { ...key, accept: 'application/json' }, 406, 'NOT_ACCEPTABLE'],
  ])('%s has its status', async (_name, path, headers, status, reason) => {
    const response = await get(path, headers)
    expect(response.status).toBe(status)
    expect(response.headers.get('content-type')).toBe('application/json')
    expect(await readRestAnswer(response)).toMatchObject({ reason })
    expect(lines.map(({ fields }) => fields.reason)).toEqual([reason])
  })

  it('an error of the handler has its status', async () => {
    handle = async function* () {
      yield* []
      fail()
    }
    const response = await get('/v1/count/a', sse)
    expect([response.status, response.headers.get('retry-after')]).toEqual([429, '3'])
    expect(await response.json()).toEqual(failure)
  })
})

describe('a stream that is silent', () => {
  beforeEach(async () => {
    await restart({ heartbeatMs: 20 })
    handle = async function* ({ text }) {
      await gate.promise
      yield { text }
    }
  })

  it.each([
    [ndjson, '\n\n', '\n\n{"result":{"text":"a","number":0,"eventId":""}}\n'],
    [sse, ': keep-alive\n\n: keep-alive\n\n', 'data: {"text":"a","number":0,"eventId":""}\n\nevent: end\ndata: {}\n\n'],
  ])('sends heartbeats: %j', async (headers, beats, end) => {
    const response = await get('/v1/count/a', headers)
    const [watched, whole] = response.body?.tee() ?? []
    expect(await readUntil(new Response(watched), (text) => text.length >= beats.length)).toMatch(beats)
    gate.resolve()
    expect((await new Response(whole).text()).endsWith(end)).toBe(true)
  })

  it('ends at the limit of all streams', async () => {
    await restart({ heartbeatMs: 20, maxStreamMs: 200 })
    const events = await (await get('/v1/count/a', sse)).text()
    expect(events).toMatch(/event: error\ndata: \{"code":"unavailable",.*"reason":"STREAM_EXPIRED".*\}\n\n$/)
  })

  it('ends with an error when the process stops', async () => {
    const response = await get('/v1/count/a', ndjson)
    const stopped = listener.stop({ graceMs: 10_000 })
    expect(await response.text()).toMatch(/^\n*\{"error":\{"code":"unavailable",.*"reason":"SHUTTING_DOWN".*\}\}\n$/)
    await stopped
  })
})

describe('a caller that hangs up', () => {
  let ended: PromiseWithResolvers<unknown>

  beforeEach(() => {
    ended = Promise.withResolvers()
    handle = async function* ({ text }, { signal }) {
      signal.addEventListener('abort', () => ended.resolve(signal.reason))
      yield { text }
      await gate.promise
    }
  })

  it.each([ndjson, sse])('ends the call over HTTP/1.1: %j', async (headers) => {
    const aborter = new AbortController()
    const response = await get('/v1/count/a', headers, { signal: aborter.signal })
    await readUntil(response, (text) => text.includes('\n'))
    aborter.abort()
    expect(await ended.promise).toMatchObject({ reason: 'CALL_CANCELLED' })
  })

  it.each([ndjson, sse])('ends the call over HTTP/2: %j', async (headers) => {
    const session = connectHttp2(listener.url)
    const stream = session.request({ ':path': '/v1/count/a', ...headers })
    stream.on('data', () => stream.close())
    expect(await ended.promise).toMatchObject({ reason: 'CALL_CANCELLED' })
    session.close()
  })
})

describe('compression', () => {
  it.each(['gzip', 'br'])('by %s lets every message be read at once', async (encoding) => {
    handle = async function* ({ text }) {
      yield { text }
      await gate.promise
      for (let number = 1; number < 200; number += 1) yield { text: text.repeat(1000), number }
    }
    const response = await get('/v1/count/a', { ...ndjson, 'accept-encoding': encoding })
    expect(response.headers.get('content-encoding')).toBe(encoding)
    const [watched, whole] = response.body?.tee() ?? []
    await readUntil(new Response(watched), (text) => text === '{"result":{"text":"a","number":0,"eventId":""}}\n')
    gate.resolve()
    const all = (await new Response(whole).text()).trimEnd().split('\n')
    expect(all.map((line) => (JSON.parse(line) as { result: { number: number } }).result.number)).toEqual(
      Array.from({ length: 200 }, (_, number) => number),
    )
  })
})

describe('the HTTP methods of a path with a stream', () => {
  it.each(['1.1', '2'])('HEAD is answered with the header only, over HTTP/%s', async (version) => {
    const path = '/v1/count/a?number=2'
    if (version === '2') {
      const session = connectHttp2(listener.url)
      const stream = session.request({ ':method': 'HEAD', ':path': path, ...sse })
      const headers = await new Promise((resolve) => stream.on('response', resolve))
      expect(headers).toMatchObject({ ':status': 200, 'content-type': 'text/event-stream' })
      expect(await readText(stream)).toBe('')
      session.close()
    } else {
      const answer = await sendRequest(listener.port, { method: 'HEAD', target: path, headers: sse })
      expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' }, body: '' })
    }
  })

  it('HEAD of a call that fails has its status', async () => {
    expect((await get('/v1/count/a', {}, { method: 'HEAD' })).status).toBe(401)
  })

  it('others are refused', async () => {
    const response = await get('/v1/count/a', sse, { method: 'DELETE' })
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    expect((await get('/v1/count', key, { method: 'OPTIONS' })).headers.get('allow')).toBe('OPTIONS, POST')
  })
})
