import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { authenticateGood, loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'
import { sendRequest } from '../support/clients/raw-http.ts'

const MAX_BODY_BYTES = 4_096
const unaryPath = '/tests.v1.EchoService/Store'
const streamPath = '/tests.v1.EchoService/Count'

let listener: Listener

beforeAll(async () => {
  const service = loadEchoService()
  const echo = async ({ name }: { readonly name: string }) => ({ name })
  const count = async function* ({ name }: { readonly name: string }) {
    yield { name }
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo, store: echo, wait: echo, count })],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
    limits: { maxBodyBytes: MAX_BODY_BYTES, maxStreamMessageBytes: MAX_BODY_BYTES },
  })
})

afterAll(() => listener.stop({ graceMs: 1000 }))

const json = Buffer.from('{"name":"a"}')
const binary = Buffer.from([0x0a, 0x01, 0x61])

function envelope(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

/** One way to call, and what stands in a good answer and in a refusal of the type. */
interface Way {
  readonly path: string
  readonly type: string
  readonly body: Uint8Array
  readonly good: RegExp
  readonly refused: RegExp
}

const ofConnect = { good: /"name":"a"|^200 .*\n.a/s, refused: /^415 .*UNSUPPORTED_CONTENT_TYPE/s }
const ofGrpc = { good: /^200 .*grpc-status: 0/s, refused: /^200 .*grpc-status: 3/s }
const ways: readonly Way[] = [
  { path: '/v1/echo', type: 'application/json', body: json, ...ofConnect },
  { path: unaryPath, type: 'application/json', body: json, ...ofConnect },
  { path: unaryPath, type: 'application/proto', body: binary, ...ofConnect },
  { path: streamPath, type: 'application/connect+json', body: envelope(json), ...ofConnect },
  { path: streamPath, type: 'application/connect+proto', body: envelope(binary), ...ofConnect },
  ...[unaryPath, streamPath].flatMap((path) => [
    { path, type: 'application/grpc', body: envelope(binary), ...ofGrpc },
    { path, type: 'application/grpc+json', body: envelope(json), ...ofGrpc },
    { path, type: 'application/grpc-web+proto', body: envelope(binary), ...ofGrpc },
    { path, type: 'application/grpc-web+json', body: envelope(json), ...ofGrpc },
  ]),
]

async function call({ path, body }: Way, contentType: string): Promise<string> {
  const headers = { 'x-api-key': 'good', 'content-type': contentType, te: 'trailers' }
  const answer = await sendRequest(listener.port, { method: 'POST', target: path, headers, body })
  // Without a message, gRPC has its status among the headers.
  return `${answer.status} grpc-status: ${answer.headers['grpc-status']} ${answer.body}`
}

const goodParameters = [
  ';',
  ';=',
  ';charset',
  ' ; ; ',
  ';charset=utf-8;',
  '; Charset="UTF-8"',
  '\t;charset=utf8',
  ';a=b;c="d;e"',
]

describe.each(ways)('$type at $path', (way) => {
  it.each(['', ...goodParameters])('is served with %j behind it, in any case', async (parameters) => {
    expect(await call(way, way.type + parameters)).toMatch(way.good)
    expect(await call(way, way.type.toUpperCase() + parameters)).toMatch(way.good)
  })

  it.each([', text/plain', ' charset=utf-8'])('is refused with %j', async (parameters) => {
    expect(await call(way, way.type + parameters)).toMatch(/^415 .*UNSUPPORTED_CONTENT_TYPE/s)
  })

  it.each([';charset=latin1', ';charset=latin1;charset=utf-8', ';charset=utf-16', ';charset=""'])(
    'with %j is refused where the message is a text',
    async (parameters) => {
      expect(await call(way, way.type + parameters)).toMatch(way.type.endsWith('json') ? way.refused : way.good)
    },
  )
})
