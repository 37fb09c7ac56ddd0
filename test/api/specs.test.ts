import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { buffer } from 'node:stream/consumers'
import { Code, ConnectError } from '@connectrpc/connect'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { authenticateGood, loadEchoService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'

const UNARY = '/tests.v1.EchoService/Store'
const STREAM = '/tests.v1.EchoService/Count'

let listener: Listener
let session: ClientHttp2Session
beforeAll(async () => {
  const refuse = async () => {
    throw new ConnectError('elsewhere', Code.Aborted, { 'x-why': 'because' })
  }
  async function* count() {
    yield { name: 'counted' }
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [
      serveEcho(loadEchoService(), { echo: refuse, store: async () => ({ name: 'stored' }), wait: refuse, count }),
    ],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
  })
  session = connect(listener.url)
})
afterAll(async () => {
  session.destroy()
  await listener.stop({ graceMs: 0 })
})

/** The headers, the body and the trailers of an answer. */
async function post(path: string, type: string, body: Uint8Array) {
  const fields = { ':method': 'POST', ':path': path, 'content-type': type, 'x-api-key': 'good' }
  const stream = session.request(fields)
  let trailers: Record<string, unknown> = {}
  stream.on('trailers', (sent: Record<string, unknown>) => {
    trailers = sent
  })
  stream.end(body)
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  const sent = await buffer(stream)
  return { headers, trailers, fields: { ...headers, ...trailers } as Record<string, unknown>, body: sent.toString() }
}

const message = Buffer.from([0, 0, 0, 0, 3, 0x0a, 1, 0x61])
const none = Buffer.alloc(0)
const two = Buffer.concat([message, message])

describe('a method of one request that gets no message or several', () => {
  it.each([
    ['unary, none', UNARY, none],
    ['unary, two', UNARY, two],
    ['stream, none', STREAM, none],
    ['stream, two', STREAM, two],
  ])('is UNIMPLEMENTED over gRPC: %s', async (_name, path, body) => {
    const { fields } = await post(path, 'application/grpc', body)
    expect([fields['grpc-status'], fields['grpc-message']]).toEqual(['12', expect.stringContaining('the call holds')])
  })

  it.each([
    ['none', none],
    ['two', two],
  ])('is unimplemented in a stream of Connect: %s', async (_name, sent) => {
    const { body } = await post(STREAM, 'application/connect+proto', sent)
    const { error } = JSON.parse(body.slice(5)) as { error: { code: string; message: string } }
    expect(error).toMatchObject({ code: 'unimplemented', message: expect.stringContaining('the call holds') })
  })

  it('an empty message counts as a message', async () => {
    const { fields } = await post(UNARY, 'application/grpc', Buffer.alloc(5))
    // The refusal of a request without a name shows that the message was read.
    expect(fields).toMatchObject({ 'grpc-status': '3', 'grpc-message': expect.stringContaining('name') })
  })
})

it.each([UNARY, STREAM])('a message that is too large is RESOURCE_EXHAUSTED over gRPC: %s', async (path) => {
  const { fields } = await post(path, 'application/grpc', Buffer.from([0, 1, 0, 0, 0, 0]))
  expect(fields['grpc-status']).toBe('8')
})

describe('the metadata of a ConnectError', () => {
  const path = '/tests.v1.EchoService/Echo'
  it('is sent as trailers over gRPC', async () => {
    const { fields } = await post(path, 'application/grpc', message)
    expect(fields).toMatchObject({ 'grpc-status': '10', 'x-why': 'because' })
  })

  it('is sent in the trailers of the body over gRPC-Web', async () => {
    const { body } = await post(path, 'application/grpc-web', message)
    expect(body).toContain('x-why: because\r\n')
  })

  it('is sent in the header over Connect', async () => {
    const { headers } = await post(path, 'application/json', Buffer.from('{"name":"a"}'))
    expect(headers).toMatchObject({ ':status': 409, 'x-why': 'because' })
  })
})
