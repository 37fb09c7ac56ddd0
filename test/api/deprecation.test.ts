import { connect } from 'node:http2'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { authenticateGood, loadTestService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'

const service = loadTestService('tests.v1.OldService')
const HEADERS = {
  deprecation: '@1795824000',
  sunset: 'Wed, 01 Dec 2027 00:00:00 GMT',
  link: '</docs/changelog#020>; rel="deprecation"; type="text/html"',
}

let listener: Listener
beforeAll(async () => {
  const echo = ({ name }: { readonly name: string }) => ({ name })
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { ask: echo, stay: echo })],
    authenticate: authenticateGood,
    logger: recordingLogger().logger,
    ready: async () => true,
  })
})
afterAll(() => listener.stop({ graceMs: 0 }))

async function headersOf(path: string, key: string) {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' }
  const answer = await fetch(listener.url + path, { method: 'POST', headers, body: '{"name":"a"}' })
  const given = Object.keys(HEADERS).map((name) => [name, answer.headers.get(name) ?? undefined] as const)
  return { status: answer.status, given: Object.fromEntries(given) }
}

describe('a method that is on its way out', () => {
  it.each(['/v1/old', '/tests.v1.OldService/Ask'])('says so in every answer of %s', async (path) => {
    expect(await headersOf(path, 'good')).toEqual({ status: 200, given: HEADERS })
    expect(await headersOf(path, 'bad')).toEqual({ status: 401, given: HEADERS })
  })

  it('says so over gRPC', async () => {
    const session = connect(listener.url)
    const headers = { 'content-type': 'application/grpc', 'x-api-key': 'good' }
    const stream = session.request({ ':method': 'POST', ':path': '/tests.v1.OldService/Ask', ...headers })
    const given = new Promise((resolve) => stream.once('response', resolve))
    stream.end(Buffer.alloc(5))
    expect(await given).toMatchObject(HEADERS)
    await text(stream)
    session.close()
  })

  it('is the only one that does', async () => {
    expect(await headersOf('/v1/new', 'good')).toEqual({ status: 200, given: {} })
  })
})
