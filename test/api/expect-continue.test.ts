import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { connect as connectSocket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { authenticateGood, loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'

const MAX_BODY_BYTES = 4_096
const unaryPath = '/tests.v1.EchoService/Store'
const streamPath = '/tests.v1.EchoService/Count'

let listener: Listener

beforeAll(async () => {
  const echo = async ({ name }: { readonly name: string }) => ({ name })
  const count = async function* ({ name }: { readonly name: string }) {
    yield { name }
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(loadEchoService(), { echo, store: echo, wait: echo, count })],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
    limits: { maxBodyBytes: MAX_BODY_BYTES, maxStreamMessageBytes: MAX_BODY_BYTES },
  })
})

afterAll(() => listener.stop({ graceMs: 1000 }))

const json = { 'x-api-key': 'good', 'content-type': 'application/json' }
const { 'x-api-key': _, ...keyless } = json
const grpc = { ...json, 'content-type': 'application/grpc', te: 'trailers' }
const web = { ...json, 'content-type': 'application/grpc-web+proto' }
const connectStream = { ...json, 'content-type': 'application/connect+json' }
const message = Buffer.from('{"name":"a"}')
const tooLarge = MAX_BODY_BYTES + 6

interface Case {
  readonly name: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly length: number
  readonly status: number
}

const refused: readonly Case[] = [
  { name: 'without a key, REST', path: '/v1/echo', headers: keyless, length: 12, status: 401 },
  { name: 'without a key, Connect', path: unaryPath, headers: keyless, length: 12, status: 401 },
  { name: 'with a wrong key', path: '/v1/echo', headers: { ...json, 'x-api-key': 'bad' }, length: 12, status: 401 },
  { name: 'on an unknown path', path: '/v1/nothing', headers: json, length: 12, status: 404 },
  { name: 'on an unknown method of RPC', path: '/tests.v1.EchoService/Nope', headers: json, length: 12, status: 404 },
  { name: 'on a path that takes no POST', path: '/v1/echo/a', headers: json, length: 12, status: 405 },
  {
    name: 'of another type',
    path: '/v1/echo',
    headers: { ...json, 'content-type': 'text/csv' },
    length: 12,
    status: 415,
  },
  {
    name: 'in an unknown compression',
    path: '/v1/echo',
    headers: { ...json, 'content-encoding': 'zstd' },
    length: 12,
    status: 415,
  },
  { name: 'too large, REST', path: '/v1/echo', headers: json, length: tooLarge, status: 413 },
  { name: 'too large, Connect', path: unaryPath, headers: json, length: tooLarge, status: 413 },
  { name: 'too large, gRPC', path: unaryPath, headers: grpc, length: tooLarge, status: 200 },
  { name: 'too large, gRPC-Web', path: unaryPath, headers: web, length: tooLarge, status: 200 },
  { name: 'too large, a stream of gRPC', path: streamPath, headers: grpc, length: tooLarge, status: 200 },
  { name: 'too large, a stream of Connect', path: streamPath, headers: connectStream, length: tooLarge, status: 200 },
]

describe('a client that waits for 100 Continue over HTTP/1.1', () => {
  /** Sends the headers, and the body once it is asked for. @returns all that came back */
  async function ask(path: string, headers: Readonly<Record<string, string>>, length: number) {
    const socket = connectSocket({ port: listener.port, host: listener.host, allowHalfOpen: true })
    const lines = Object.entries({ host: 'localhost', expect: '100-Continue', 'content-length': length, ...headers })
    socket.write(`POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (text === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write(message)
      else if (/grpc-status|\r\n\r\n./s.test(text.replace(/^HTTP\/1.1 100 Continue\r\n\r\n/, ''))) socket.end()
    })
    await once(socket, 'end')
    socket.destroy()
    return text
  }

  it.each(refused)('$name: gets the final status at once, and the connection is closed', async (each) => {
    const text = await ask(each.path, each.headers, each.length)
    expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${each.status} `))
    expect(text).toMatch(/^connection: close\r$/im)
    expect(text).not.toContain('100 Continue')
  })

  it.each(['/v1/echo', unaryPath])('%s: is asked for a body that is read', async (path) => {
    const text = await ask(path, json, message.length)
    expect(text).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 .*"name":"a"/s)
  })
})

describe('a client that waits for 100 Continue over HTTP/2', () => {
  async function ask(path: string, headers: Readonly<Record<string, string>>, length: number) {
    const session = connectHttp2(listener.url)
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      expect: '100-continue',
      'content-length': length,
      ...headers,
    })
    let isAsked = false
    stream.on('continue', () => {
      isAsked = true
      stream.end(message)
    })
    const [head] = (await once(stream, 'response')) as [Record<string, unknown>]
    stream.destroy()
    session.destroy()
    return { status: head[':status'], isAsked }
  }

  it.each(refused)('$name: gets the final status at once', async ({ path, headers, length, status }) => {
    expect(await ask(path, headers, length)).toEqual({ status, isAsked: false })
  })

  it.each(['/v1/echo', unaryPath])('%s: is asked for a body that is read', async (path) => {
    expect(await ask(path, json, message.length)).toEqual({ status: 200, isAsked: true })
  })
})
