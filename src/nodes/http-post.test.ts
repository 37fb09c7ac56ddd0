import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createHttpPost, ReplyTooLargeError } from './http-post.ts'

let server: Server
let answer: RequestListener
let host: string
const { signal } = new AbortController()

beforeAll(async () => {
  server = createServer((request, response) => answer(request, response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const post = (options: { mostBytes?: number; takesGzip?: boolean } = {}, url = `http://${host}/`) =>
  createHttpPost(url, { mostBytes: 1_000, ...options })('{}', signal)

it('unpacks what comes packed where that is taken, and asks for nothing packed elsewhere', async () => {
  answer = ({ headers }, response) => {
    const takesGzip = headers['accept-encoding'] === 'gzip'
    response.writeHead(200, takesGzip ? { 'content-encoding': 'gzip' } : {})
    response.end(takesGzip ? gzipSync('packed') : `as it is, for ${headers['accept-encoding']}`)
  }
  expect(await post({ takesGzip: true })).toMatchObject({ status: 200, body: 'packed' })
  expect(await post()).toMatchObject({ status: 200, body: 'as it is, for undefined' })
})

it.each([
  ['as it is', {}, (text: string) => text],
  ['packed', { 'content-encoding': 'gzip' }, gzipSync],
] as const)('refuses an answer that is too large, %s', async (_, headers, pack) => {
  answer = (_request, response) => response.writeHead(200, headers).end(pack('x'.repeat(1_001)))
  await expect(post({ takesGzip: true })).rejects.toThrow(ReplyTooLargeError)
  answer = (_request, response) => response.writeHead(200, headers).end(pack('x'.repeat(1_000)))
  expect((await post({ takesGzip: true })).body).toHaveLength(1_000)
})

it.each([
  ['broken', (packed: Buffer) => packed.fill(0xff, 12)],
  ['cut off', (packed: Buffer) => packed.subarray(0, -10)],
])('fails where what comes packed is %s', async (_, spoil) => {
  const packed = gzipSync(JSON.stringify(Array.from({ length: 20 }, (_each, n) => n * n)))
  answer = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(spoil(packed))
  await expect(post({ takesGzip: true })).rejects.toHaveProperty('code')
})

it('sends user and password of a URL, and follows nobody elsewhere', async () => {
  answer = ({ headers, url }, response) => {
    response.writeHead(307, { location: `http://${host}/elsewhere` }).end(`${url} ${headers.authorization}`)
  }
  const basic = `Basic ${Buffer.from('user:pass word').toString('base64')}`
  const outcome = await post({}, `http://user:pass%20word@${host}/v3/key`)
  expect(outcome).toMatchObject({ status: 307, body: `/v3/key ${basic}` })
})
