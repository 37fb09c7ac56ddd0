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

const post = (options: { maxBytes?: number; takesGzip?: boolean } = {}, url = `http://${host}/`) =>
  createHttpPost(url, { maxBytes: 1_000, takesGzip: false, ...options })('{}', signal)

it('decompresses gzip where it asked for it, and does not ask for it elsewhere', async () => {
  answer = ({ headers }, response) => {
    const takesGzip = headers['accept-encoding'] === 'gzip'
    response.writeHead(200, takesGzip ? { 'content-encoding': 'gzip' } : {})
    response.end(takesGzip ? gzipSync('compressed') : `plain, for ${headers['accept-encoding']}`)
  }
  expect(await post({ takesGzip: true })).toMatchObject({ status: 200, body: 'compressed' })
  expect(await post()).toMatchObject({ status: 200, body: 'plain, for undefined' })
})

it.each([
  ['plain', {}, (text: string) => text],
  ['compressed', { 'content-encoding': 'gzip' }, gzipSync],
] as const)('refuses an answer above the limit, %s', async (_, headers, pack) => {
  answer = (_request, response) => response.writeHead(200, headers).end(pack('x'.repeat(1_001)))
  await expect(post({ takesGzip: true })).rejects.toThrow(ReplyTooLargeError)
  answer = (_request, response) => response.writeHead(200, headers).end(pack('x'.repeat(1_000)))
  expect((await post({ takesGzip: true })).body).toHaveLength(1_000)
})

it.each([
  ['corrupt', (gzip: Buffer) => gzip.fill(0xff, 12)],
  ['cut off', (gzip: Buffer) => gzip.subarray(0, -10)],
])('fails when the gzip stream is %s', async (_, spoil) => {
  const compressed = gzipSync(JSON.stringify(Array.from({ length: 20 }, (_each, n) => n * n)))
  answer = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(spoil(compressed))
  await expect(post({ takesGzip: true })).rejects.toHaveProperty('code')
})

it('sends the user and password of a URL, and follows no redirect', async () => {
  answer = ({ headers, url }, response) => {
    response.writeHead(307, { location: `http://${host}/elsewhere` }).end(`${url} ${headers.authorization}`)
  }
  const basic = `Basic ${Buffer.from('user:pass word').toString('base64')}`
  const outcome = await post({}, `http://user:pass%20word@${host}/v3/key`)
  expect(outcome).toMatchObject({ status: 307, body: `/v3/key ${basic}` })
})
