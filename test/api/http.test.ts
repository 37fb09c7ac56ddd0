import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { gunzipSync, gzipSync } from 'node:zlib'
import { create, toBinary } from '@bufbuild/protobuf'
import type { HandlerContext } from '@connectrpc/connect'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { authenticateGood, loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { findMethod, readRestAnswer } from '../support/clients/protocol-clients.ts'

const service = loadEchoService()
const echo = findMethod(service, 'echo')
const echoPath = '/tests.v1.EchoService/Echo'
const storePath = '/tests.v1.EchoService/Store'
const key = { 'x-api-key': 'good' }
const MAX_BODY_BYTES = 64 * 1024
const { lines, logger } = recordingLogger()

let listener: Listener
let isReady: () => Promise<boolean> = async () => true
let confirmations = 1

beforeAll(async () => {
  const handler = async ({ name }: { readonly name: string }, { responseHeader }: HandlerContext) => {
    if (name === 'header') responseHeader.set('x-from-handler', 'yes')
    if (name === 'unencodable') return { name, at: { seconds: -99_999_999_999_999n, nanos: 0 } }
    if (name === 'large') return { name, filler: 'z'.repeat(20_000), confirmations }
    return { name, confirmations }
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo: handler, store: handler, wait: handler, count: handler })],
    authenticate: authenticateGood,
    logger,
    ready: () => isReady(),
    corsOrigins: ['https://app.example'],
    volatileFields: ['confirmations'],
    extraHeaders: { 'x-waybill-demo': 'true' },
    isHostAllowed: (authority) => authority.startsWith('127.0.0.1:') || authority === 'localhost',
    limits: { maxBodyBytes: MAX_BODY_BYTES, headersTimeoutMs: 300 },
  })
})

afterAll(() => listener.stop({ graceMs: 1000 }))

function get(path: string, headers: Readonly<Record<string, string>> = key): Promise<Response> {
  return fetch(listener.url + path, { headers })
}

function post(path: string, body: BodyInit, headers: Readonly<Record<string, string>>): Promise<Response> {
  return fetch(listener.url + path, { method: 'POST', body, headers: { ...key, ...headers } })
}

/** Sends bytes as they are and reads what comes back until the connection closes. */
async function sendBytes(bytes: string | Buffer): Promise<{ readonly head: string; readonly body: string }> {
  const socket = connectSocket({ port: listener.port, host: listener.host, allowHalfOpen: true })
  socket.write(bytes)
  const [head = '', body = ''] = (await buffer(socket)).toString().split('\r\n\r\n')
  socket.destroy()
  return { head: head.toLowerCase(), body }
}

function requestLine(target: string, extra = ''): string {
  return `GET ${target} HTTP/1.1\r\nhost: localhost\r\nx-api-key: good\r\nconnection: close\r\n${extra}\r\n`
}

describe('a wrong path or query', () => {
  it.each([
    ['an unknown path', '/nowhere', {}, 404, 'not_found', 'ROUTE_NOT_FOUND'],
    ['the root', '/', {}, 404, 'not_found', 'ROUTE_NOT_FOUND'],
    ['an empty segment', '/v1/echo/', {}, 404, 'not_found', 'ROUTE_NOT_FOUND'],
    ['a doubled slash', '//v1/echo/a', {}, 404, 'not_found', 'ROUTE_NOT_FOUND'],
    ['a malformed escape', '/v1/echo/%zz', {}, 400, 'invalid_argument', 'MALFORMED_URL'],
    ['no UTF-8', '/v1/echo/%ff', {}, 400, 'invalid_argument', 'INVALID_UTF8'],
    ['an unknown parameter', '/v1/echo/a?nme=b', key, 400, 'invalid_argument', 'UNKNOWN_PARAMETER'],
    ['__proto__ as a parameter', '/v1/echo/a?__proto__=b', key, 400, 'invalid_argument', 'UNKNOWN_PARAMETER'],
    ['a parameter given twice', '/v1/echo/a?limit=1&limit=2', key, 400, 'invalid_argument', 'DUPLICATE_PARAMETER'],
    ['a part of the path as a parameter', '/v1/echo/a?name=b', key, 400, 'invalid_argument', 'DUPLICATE_PARAMETER'],
    ['a limit that is no number', '/v1/echo/a?limit=ten', key, 400, 'invalid_argument', 'INVALID_LIMIT'],
    ['a negative limit', '/v1/echo/a?limit=-1', key, 400, 'invalid_argument', 'INVALID_LIMIT'],
    ['an unknown name', '/v1/echo/a?colors=RED,GREY', key, 400, 'invalid_argument', 'UNKNOWN_ENUM_VALUE'],
    ['a malformed escape in the query', '/v1/echo/a?code=%', key, 400, 'invalid_argument', 'MALFORMED_URL'],
    ['no UTF-8 in the query', '/v1/echo/a?code=%c3%28', key, 400, 'invalid_argument', 'INVALID_UTF8'],
    ['anything at all, without a key', '/v1/echo/a?nme=%zz', {}, 401, 'unauthenticated', 'MISSING_API_KEY'],
    [
      'what Accept does not take',
      '/v1/echo/a',
      { ...key, accept: 'text/html' },
      406,
      'invalid_argument',
      'NOT_ACCEPTABLE',
    ],
  ])('%s', async (_name, path, headers, status, code, reason) => {
    lines.length = 0
    const answer = await get(path, headers)
    expect(answer.status).toBe(status)
    expect(answer.headers.get('content-type')).toBe('application/json')
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(await readRestAnswer(answer)).toMatchObject({ code, reason })
    expect(lines.map(({ fields }) => fields)).toEqual([
      expect.objectContaining({ code, reason, requestId: answer.headers.get('x-request-id') }),
    ])
  })

  it('suggests the nearest name', async () => {
    const outcome = await readRestAnswer(await get('/v1/echo/a?colours=RED'))
    expect(outcome).toMatchObject({ message: expect.stringContaining('did you mean "colors"?') })
  })
})

describe('an unknown path', () => {
  it.each([
    ['a slash at its end', '/v1/echo/a/', 'did you mean /v1/echo/a?'],
    ['a segment mistyped', '/v1/ecko/a', 'did you mean /v1/echo/a?'],
    ['a segment missing', '/echo/a', 'did you mean /v1/echo/a?'],
    ['a slash at the end of a path without a route', '/healthz/', 'did you mean /healthz?'],
    ['an RPC in another case', '/tests.v1.EchoService/echo', 'did you mean /tests.v1.EchoService/Echo?'],
    ['nothing near', '/nowhere-at-all', 'use one of: /v1/echo/{name}, /v1/echo, /v1/wait/{name}'],
  ])('with %s: the answer suggests the nearest path', async (_name, path, suggestion) => {
    for (const method of ['GET', 'OPTIONS']) {
      const answer = await fetch(listener.url + path, { method })
      expect(await readRestAnswer(answer)).toMatchObject({
        reason: 'ROUTE_NOT_FOUND',
        message: `there is nothing at ${path}; ${suggestion}`,
      })
    }
  })

  it.each([
    ['an unknown method', '/tests.v1.EchoService/Nope', 'application/json'],
    ['an unknown method, in binary', '/tests.v1.EchoService/Nope', 'application/proto'],
    ['an unknown service', '/no.such.v1.Service/Nope', 'application/json'],
  ])('of an RPC, %s, has an error in the form of Connect', async (_name, path, contentType) => {
    const answer = await post(path, '{}', { 'content-type': contentType })
    expect(answer.status).toBe(404)
    expect(await answer.json()).toMatchObject({
      code: 'unimplemented',
      details: [{ type: 'google.rpc.ErrorInfo', debug: { reason: 'METHOD_NOT_FOUND', metadata: { path } } }],
    })
  })
})

describe('a wrong method', () => {
  it.each([
    ['DELETE', '/v1/echo/a', 'GET, HEAD, OPTIONS'],
    ['GET', '/v1/echo', 'OPTIONS, POST'],
    ['PUT', echoPath, 'GET, HEAD, OPTIONS, POST'],
    ['GET', storePath, 'OPTIONS, POST'],
    ['POST', '/healthz', 'GET, HEAD, OPTIONS'],
  ])('%s %s is answered with 405 and a sorted Allow', async (method, path, allow) => {
    const answer = await fetch(listener.url + path, { method })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe(allow)
    const { code, details } = (await answer.json()) as ErrorBody
    expect([code, reasonOf(details)]).toEqual(['unimplemented', 'METHOD_NOT_ALLOWED'])
  })
})

interface ErrorBody {
  readonly code: string
  readonly details: readonly { readonly reason?: string; readonly debug?: { readonly reason: string } }[]
}

/** The reason of an error, which Connect writes into a detail's `debug`. */
function reasonOf([info]: ErrorBody['details']): string | undefined {
  return info?.debug?.reason ?? info?.reason
}

describe('a wrong body', () => {
  const json = { 'content-type': 'application/json' }
  const proto = { 'content-type': 'application/proto' }
  const restAndConnect = ['/v1/echo', storePath]

  it.each([
    ['malformed JSON', '{"name":', json, 400, 'MALFORMED_BODY'],
    ['JSON that is no object', '[1]', json, 400, 'INVALID_FIELD'],
    ['a key given twice', '{"name":"a","name":"b"}', json, 400, 'MALFORMED_BODY'],
    ['an unknown field', '{"name":"a","nme":"b"}', json, 400, 'UNKNOWN_FIELD'],
    ['an unknown field inside', '{"name":"a","inner":{"txt":"b"}}', json, 400, 'UNKNOWN_FIELD'],
    ['a name in another case', '{"name":"a","colors":["red"]}', json, 400, 'UNKNOWN_ENUM_VALUE'],
    ['a value of another type', '{"name":1}', json, 400, 'INVALID_FIELD'],
    ['no UTF-8', Buffer.from('{"name":"\xff"}', 'latin1'), json, 400, 'INVALID_UTF8'],
    ['too deep a nesting', `{"inners":${'['.repeat(200)}${']'.repeat(200)}}`, json, 400, 'BODY_TOO_COMPLEX'],
    ['too large', `{"name":"${'a'.repeat(MAX_BODY_BYTES)}"}`, json, 413, 'BODY_TOO_LARGE'],
    ['no gzip', '{}', { ...json, 'content-encoding': 'gzip' }, 400, 'MALFORMED_BODY'],
    [
      'too large once decompressed',
      gzipSync(Buffer.alloc(MAX_BODY_BYTES + 1, 32)),
      { ...json, 'content-encoding': 'gzip' },
      413,
      'BODY_TOO_LARGE',
    ],
    ['a form', 'name=a', { 'content-type': 'application/x-www-form-urlencoded' }, 415, 'UNSUPPORTED_CONTENT_TYPE'],
    ['another charset', '{}', { 'content-type': 'application/json; charset=latin1' }, 415, 'UNSUPPORTED_CONTENT_TYPE'],
  ])('%s has the same reason over REST and Connect', async (_name, body, headers, status, reason) => {
    for (const path of restAndConnect) {
      const answer = await post(path, body, headers)
      const { code, details } = (await answer.json()) as ErrorBody
      const expected = status === 413 ? 'resource_exhausted' : 'invalid_argument'
      expect({ path, status: answer.status, code, reason: reasonOf(details) }).toEqual({
        path,
        status,
        code: expected,
        reason,
      })
      expect(answer.headers.get('x-request-id')).not.toBeNull()
    }
  })

  it('an unknown compression has the code that each protocol prescribes', async () => {
    const answers = restAndConnect.map((path) => post(path, '{}', { ...json, 'content-encoding': 'zstd' }))
    const outcomes = answers.map(async (sent) => {
      const answer = await sent
      const { code, details } = (await answer.json()) as ErrorBody
      return [answer.status, code, reasonOf(details), answer.headers.get('accept-encoding')]
    })
    expect(await Promise.all(outcomes)).toEqual([
      [415, 'invalid_argument', 'UNSUPPORTED_CONTENT_ENCODING', 'gzip, br, identity'],
      [501, 'unimplemented', 'UNSUPPORTED_CONTENT_ENCODING', 'gzip, br, identity'],
    ])
  })

  it.each([
    ['bytes that are not a message', Buffer.from([0xff, 0xff, 0xff]), 'MALFORMED_BODY'],
    ['a message that ends too soon', Buffer.from([0x0a, 0x05, 0x61]), 'MALFORMED_BODY'],
    ['a text that is not UTF-8', Buffer.from([0x0a, 0x01, 0xff]), 'INVALID_UTF8'],
    ['an unknown field number', Buffer.from([0x0a, 0x01, 0x61, 0xf8, 0x06, 0x01]), 'UNKNOWN_FIELD'],
    ['an unknown field number inside', Buffer.from([0x0a, 0x01, 0x61, 0x22, 0x03, 0xf8, 0x06, 0x01]), 'UNKNOWN_FIELD'],
    ['an undefined enum number', Buffer.from([0x0a, 0x01, 0x61, 0x18, 0x63]), 'UNKNOWN_ENUM_VALUE'],
  ])('%s is refused in binary', async (_name, body, reason) => {
    const answer = await post(storePath, body, proto)
    const outcome = (await answer.json()) as { details: { debug: { reason: string } }[] }
    expect([answer.status, outcome.details[0]?.debug.reason]).toEqual([400, reason])
  })

  it('a body is refused where the route takes none', async () => {
    const socket = await sendBytes(`${requestLine('/v1/echo/a', 'content-length: 2\r\n')}{}`)
    expect(socket.head).toMatch(/^http\/1\.1 400 /)
    expect(socket.body).toContain('UNEXPECTED_BODY')
  })

  it('a compressed body is read', async () => {
    for (const path of restAndConnect) {
      const answer = await post(path, gzipSync('{"name":"zip"}'), { ...json, 'content-encoding': 'gzip' })
      expect(await answer.json()).toMatchObject({ name: 'zip' })
    }
  })
})

describe('an envelope of gRPC', () => {
  const frame = (flags: number, length: number, bytes: Uint8Array) => {
    const prefix = Buffer.alloc(5)
    prefix[0] = flags
    prefix.writeUInt32BE(length, 1)
    return Buffer.concat([prefix, bytes])
  }
  const message = Buffer.from([0x0a, 0x01, 0x61])

  async function callGrpc(body: Uint8Array, headers: Record<string, string> = {}, path = storePath) {
    const session = connectHttp2(listener.url)
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
      ...key,
      ...headers,
    })
    let trailers: Record<string, unknown> = {}
    stream.on('trailers', (fields) => {
      trailers = { ...fields }
    })
    stream.end(body)
    const reading = buffer(stream)
    const [head] = (await once(stream, 'response')) as [Record<string, unknown>]
    const answer = await reading
    session.close()
    return { ...head, ...trailers, answer }
  }

  it.each([
    ['no bytes', Buffer.alloc(0), {}, '12'],
    ['half a prefix', Buffer.from([0, 0, 0]), {}, '3'],
    ['a truncated message', frame(0, 10, message), {}, '3'],
    ['two messages', Buffer.concat([frame(0, 3, message), frame(0, 3, message)]), {}, '12'],
    ['unknown flags', frame(4, 3, message), {}, '3'],
    ['compressed without a stated compression', frame(1, 3, message), {}, '13'],
    ['a length beyond the limit', frame(0, 0xffffffff, message), {}, '8'],
    ['a malformed timeout', frame(0, 3, message), { 'grpc-timeout': 'soon' }, '3'],
  ])('%s is refused', async (_name, body, headers, status) => {
    const answer = await callGrpc(body, headers)
    expect(answer).toMatchObject({ ':status': 200, 'grpc-status': status, 'x-waybill-demo': 'true' })
    expect(answer).toHaveProperty('grpc-status-details-bin')
    expect(answer).toHaveProperty('x-request-id')
  })

  it('in an unknown compression is answered with those that are served', async () => {
    const answer = await callGrpc(frame(1, 3, message), { 'grpc-encoding': 'snappy' })
    expect(answer).toMatchObject({ 'grpc-status': '12', 'grpc-accept-encoding': 'identity,gzip,br' })
  })

  it('to an unknown method is UNIMPLEMENTED', async () => {
    const answer = await callGrpc(frame(0, 3, message), {}, '/tests.v1.EchoService/Nothing')
    expect(answer).toMatchObject({ ':status': 200, 'grpc-status': '12' })
  })

  it('with a compressed message is read, and a large answer is compressed as well', async () => {
    const zipped = gzipSync(Buffer.from([0x0a, 5, ...Buffer.from('large')]))
    const answer = await callGrpc(frame(1, zipped.length, zipped), { 'grpc-encoding': 'gzip' })
    expect(answer).toMatchObject({ 'grpc-status': '0', 'grpc-encoding': 'gzip' })
    expect(answer.answer[0]).toBe(1)
    expect(gunzipSync(answer.answer.subarray(5)).length).toBeGreaterThan(20_000)
  })

  it('works over HTTP/1.1, with trailers', async () => {
    const body = frame(0, 3, message).toString('latin1')
    const { head, body: rest } = await sendBytes(
      Buffer.from(
        `POST ${storePath} HTTP/1.1\r\nhost: localhost\r\nx-api-key: good\r\ncontent-type: application/grpc\r\nconnection: close\r\ncontent-length: 8\r\n\r\n${body}`,
        'latin1',
      ),
    )
    expect(head).toContain('trailer: grpc-status')
    expect(rest).toContain('\r\ngrpc-status: 0')
  })

  it('gRPC-Web in base64 is answered in base64', async () => {
    const answer = await post(storePath, frame(0, 3, message).toString('base64'), {
      'content-type': 'application/grpc-web-text',
    })
    expect(answer.headers.get('content-type')).toBe('application/grpc-web-text+proto')
    const text = Buffer.from(await answer.text(), 'base64').toString('latin1')
    expect(text).toContain('grpc-status: 0')
  })
})

describe('a call of Connect by GET', () => {
  const base64 = (name: string) => Buffer.from(toBinary(echo.input, create(echo.input, { name }))).toString('base64url')

  it.each([
    ['JSON', () => `encoding=json&message=${encodeURIComponent('{"name":"get"}')}`],
    ['JSON with its version', () => `connect=v1&encoding=json&message=${encodeURIComponent('{"name":"get"}')}`],
    ['binary', () => `encoding=proto&base64=1&message=${base64('get')}`],
    [
      'compressed',
      () => `encoding=json&base64=1&compression=gzip&message=${gzipSync('{"name":"get"}').toString('base64url')}`,
    ],
  ])('%s', async (_name, query) => {
    const answer = await get(`${echoPath}?${query()}`)
    expect(answer.status).toBe(200)
    expect(Buffer.from(await answer.arrayBuffer()).toString('latin1')).toContain('get')
  })

  it.each([
    ['without an encoding', 'message=%7B%7D', 'INVALID_FIELD'],
    ['with an unknown parameter', 'encoding=json&message=%7B%7D&name=a', 'UNKNOWN_PARAMETER'],
    ['with a parameter given twice', 'encoding=json&message=%7B%7D&message=%7B%7D', 'DUPLICATE_PARAMETER'],
    ['with another version', 'connect=v9&encoding=json&message=%7B%7D', 'INVALID_FIELD'],
    ['with an unknown compression', 'encoding=json&compression=zstd&message=%7B%7D', 'UNSUPPORTED_CONTENT_ENCODING'],
    ['without a message', 'encoding=json', 'MISSING_FIELD'],
  ])('%s is refused', async (_name, query, reason) => {
    const answer = await get(`${echoPath}?${query}`)
    const { details } = (await answer.json()) as { details: { debug: { reason: string } }[] }
    expect([answer.ok, details[0]?.debug.reason]).toEqual([false, reason])
  })
})

describe('a malformed request', () => {
  it.each([
    ['a query of 1 MB', requestLine(`/v1/echo/a?code=${'a'.repeat(1_000_000)}`), 431, 'HEADERS_TOO_LARGE'],
    ['a header of 1 MB', requestLine('/v1/echo/a', `x-filler: ${'a'.repeat(1_000_000)}\r\n`), 431, 'HEADERS_TOO_LARGE'],
    ['garbage', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    ['almost HTTP/2', 'PRI * HTTP/3.0\r\n\r\n', undefined, undefined],
  ])('%s', async (_name, bytes, status, reason) => {
    const { head, body } = await sendBytes(Buffer.from(bytes, 'latin1'))
    if (status === undefined) return expect(head).not.toContain('200')
    expect(head).toMatch(new RegExp(`^http/1\\.1 ${status} `))
    expect(head).toMatch(/x-request-id: [0-9a-f-]{36}/)
    expect(JSON.parse(body)).toMatchObject({ details: [{ reason, domain: 'waybill' }] })
  })

  it('a query of 1 MB over HTTP/2 ends its connection and no other', async () => {
    const session = connectHttp2(listener.url, { maxSendHeaderBlockLength: 2_000_000 })
    const failed = once(session, 'error') as Promise<[Error & { code: string }]>
    const stream = session.request({ ':path': `/v1/echo/a?code=${'a'.repeat(1_000_000)}`, ...key })
    stream.on('error', () => {})
    stream.on('response', () => expect.unreachable())
    const [error] = await failed
    expect(error.code).toBe('ERR_HTTP2_SESSION_ERROR')
    expect((await get('/v1/echo/a')).status).toBe(200)
  })

  it('a query of 60 kB over HTTP/2 is read', async () => {
    const session = connectHttp2(listener.url)
    const stream = session.request({ ':path': `/v1/echo/a?code=${'a'.repeat(60_000)}`, ...key })
    const [fields] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect(fields[':status']).toBe(200)
    session.close()
  })

  it.each([
    ['nothing', ''],
    ['half of the first bytes of HTTP/2', 'PR'],
    ['half a request', 'GET /healthz HTTP/1.1\r\nhos'],
  ])('a connection that sends %s is closed in time', async (_name, bytes) => {
    const socket = connectSocket(listener.port, listener.host)
    socket.write(bytes)
    socket.resume()
    await once(socket, 'close')
    expect(socket.destroyed).toBe(true)
  })
})

describe('what HTTP clients expect', () => {
  it('every answer has the additional headers of the process', async () => {
    for (const path of ['/v1/echo/a', '/nowhere', '/healthz', '/v1/echo/%zz']) {
      expect((await get(path)).headers.get('x-waybill-demo')).toBe('true')
    }
  })

  it('answers are private and depend on the key', async () => {
    const { headers } = await get('/v1/echo/a')
    expect(headers.get('cache-control')).toBe('private')
    expect(headers.get('vary')).toContain('x-api-key')
  })

  it('a handler may set headers of the answer', async () => {
    expect((await get('/v1/echo/header')).headers.get('x-from-handler')).toBe('yes')
    const answer = await post(storePath, '{"name":"header"}', { 'content-type': 'application/json' })
    expect(answer.headers.get('x-from-handler')).toBe('yes')
  })

  it('an answer that cannot be encoded is INTERNAL, and is logged with its cause', async () => {
    lines.length = 0
    const answer = await get('/v1/echo/unencodable')
    expect([answer.status, await readRestAnswer(answer)]).toMatchObject([500, { reason: 'INTERNAL' }])
    expect(lines.at(-1)).toMatchObject({ level: 'error', fields: { reason: 'INTERNAL', err: expect.any(Error) } })
  })

  it('HEAD is GET without the body, over HTTP/1.1 and HTTP/2', async () => {
    const length = (await get('/v1/echo/a')).headers.get('content-length')
    const head = await fetch(`${listener.url}/v1/echo/a`, { method: 'HEAD', headers: key })
    expect([head.status, await head.text(), head.headers.get('content-length')]).toEqual([200, '', length])
    const session = connectHttp2(listener.url)
    const stream = session.request({ ':method': 'HEAD', ':path': '/v1/echo/a', ...key })
    const [fields] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect([fields[':status'], fields['content-length'], (await buffer(stream)).length]).toEqual([200, length, 0])
    session.close()
  })

  it('a known entity tag is answered with 304; it changes with the resource, but not with its confirmations', async () => {
    const first = (await get('/v1/echo/a')).headers.get('etag') ?? ''
    confirmations += 1
    const again = await get('/v1/echo/a', { ...key, 'if-none-match': `"other", ${first}` })
    expect([again.status, await again.text()]).toEqual([304, ''])
    expect((await get('/v1/echo/b', { ...key, 'if-none-match': first })).status).toBe(200)
  })

  it('a large answer is compressed for callers that accept it', async () => {
    const session = connectHttp2(listener.url)
    const ask = async (acceptEncoding: string) => {
      const stream = session.request({ ':path': '/v1/echo/large', ...key, 'accept-encoding': acceptEncoding })
      const [fields] = (await once(stream, 'response')) as [Record<string, unknown>]
      return { encoding: fields['content-encoding'], body: await buffer(stream) }
    }
    const zipped = await ask('deflate, gzip;q=0.5')
    const plain = await ask('gzip;q=0, identity')
    session.close()
    expect([zipped.encoding, plain.encoding]).toEqual(['gzip', undefined])
    expect(gunzipSync(zipped.body)).toEqual(plain.body)
  })

  it('OPTIONS is open and lists the methods', async () => {
    const answer = await fetch(`${listener.url}/v1/echo/a`, { method: 'OPTIONS' })
    expect([answer.status, answer.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
    expect((await fetch(`${listener.url}/nowhere`, { method: 'OPTIONS' })).status).toBe(404)
  })

  it('OPTIONS * lists the methods of all paths', async () => {
    const { head } = await sendBytes('OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
    expect(head).toMatch(/^http\/1\.1 204 /)
    expect(head).toContain('allow: get, head, options, post')
  })

  it.each([
    ['https://app.example', 'https://app.example'],
    ['https://evil.example', null],
  ])('a page of %s may call: %s', async (origin, allowed) => {
    const preflight = await fetch(`${listener.url}/v1/echo/a`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-api-key' },
    })
    expect(preflight.headers.get('access-control-allow-origin')).toBe(allowed)
    expect(preflight.headers.get('access-control-allow-headers')).toBe(allowed && 'x-api-key')
    const answer = await get('/v1/echo/a', { ...key, origin })
    expect(answer.headers.get('access-control-allow-origin')).toBe(allowed)
    expect(answer.headers.get('vary')).toContain('origin')
  })

  it('a host that is not allowed is refused, whatever the protocol', async () => {
    const { head, body } = await sendBytes('GET /healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n')
    expect(head).toMatch(/^http\/1\.1 403 /)
    expect(body).toContain('HOST_NOT_ALLOWED')
    const session = connectHttp2(listener.url)
    const stream = session.request({
      ':method': 'POST',
      ':path': storePath,
      ':authority': 'evil.example',
      'content-type': 'application/grpc',
    })
    const [fields] = (await once(stream, 'response')) as [Record<string, unknown>]
    expect(fields['grpc-status']).toBe('7')
    session.close()
  })

  it('an absolute request target is read as its path', async () => {
    const { head } = await sendBytes(requestLine(`http://localhost/v1/echo/a?code=b`))
    expect(head).toMatch(/^http\/1\.1 200 /)
  })

  it('/healthz and /readyz give no details', async () => {
    expect(await (await get('/healthz', {})).json()).toEqual({ status: 'ok' })
    expect(await (await get('/readyz', {})).json()).toEqual({ status: 'ok' })
    isReady = () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:5432'))
    const answer = await get('/readyz', {})
    expect([answer.status, await answer.json()]).toEqual([503, { status: 'unavailable' }])
    expect((await get('/healthz', {})).status).toBe(200)
    isReady = async () => true
  })
})
