import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPostWebhook, type PostOptions } from '../../src/webhooks/send/post-webhook.ts'
import { testCertificate } from '../support/tls-certificate.ts'
import { type Receiver, startReceiver } from './webhook-stage.ts'

// Where connections go. Names are resolved by the test, connections are real.

let inner: Receiver
beforeAll(async () => {
  inner = await startReceiver()
})
afterAll(() => inner.stop())

const never = new AbortController().signal
const posting = (url: string) => ({ url, body: '{}', headers: { 'content-length': '2' } })

async function post(url: string, options: Partial<PostOptions> = {}) {
  const sending = createPostWebhook({ allowsPrivate: false, now: () => new Date(), ...options })
  try {
    return await sending.post(posting(url), never)
  } finally {
    sending.close()
  }
}

describe('a name is refused with all its addresses', () => {
  it.each([
    ['a private one', ['10.0.0.1']],
    ['loopback', ['127.0.0.1']],
    ['a public and a private one', ['1.1.1.1', '192.168.0.1']],
    ['a public one and loopback of IPv6', ['1.1.1.1', '::1']],
    ['an IPv4 address in IPv6', ['::ffff:127.0.0.1']],
    ['link-local, where clouds have their metadata', ['169.254.169.254']],
    ['NAT64 of loopback', ['64:ff9b::7f00:1']],
    ['6to4', ['2002:7f00:1::1']],
  ])('%s', async (_, addresses) => {
    const outcome = await post(`http://shop.example:${new URL(inner.url).port}/`, {
      resolveHost: async () => addresses,
    })
    expect(outcome).toEqual({ failure: 'its name has an address that is not public' })
    expect(inner.received).toEqual([])
  })

  it.each(['http://127.0.0.1', 'http://[::1]', 'http://[::ffff:7f00:1]', 'http://localhost', 'http://2130706433'])(
    'the URL %s itself',
    async (origin) => {
      const outcome = await post(`${origin}:${new URL(inner.url).port}/`)
      expect(outcome).toEqual({ failure: 'its name has an address that is not public' })
      expect(inner.received).toEqual([])
    },
  )
})

/** Names of /etc/hosts that no DNS has, if this machine has any. */
const ownNames = [...readFileSync('/etc/hosts', 'utf8').matchAll(/^127\.0\.0\.1[ \t]+(?!localhost)([\w-]+)$/gm)].map(
  ([, name = '']) => name,
)
it.skipIf(ownNames.length === 0)(
  'finds names that only this machine knows where private addresses are allowed',
  async () => {
    const url = `http://${ownNames[0]}:${new URL(inner.url).port}/`
    expect(await post(url, { allowsPrivate: true })).toEqual({ status: 204 })
    expect(await post(url)).toEqual({ failure: 'its name has no address' })
    expect(await post('http://nothing.invalid/', { allowsPrivate: true })).toEqual({
      failure: 'its name has no address',
    })
  },
)

it('connects to the address that was checked, with the old name: what the DNS answers next reaches nothing', async () => {
  const first = await startReceiver(() => 204, '127.0.0.2')
  const { port } = new URL(first.url)
  const answers = ['127.0.0.2', '127.0.0.1']
  const asked: string[] = []
  const resolveHost = async (host: string) => {
    asked.push(host)
    return [answers[asked.length - 1] ?? '127.0.0.1']
  }
  expect(await post(`http://shop.example:${port}/hook`, { allowsPrivate: true, resolveHost })).toEqual({ status: 204 })
  expect(asked).toEqual(['shop.example'])
  expect(first.received.map(({ headers }) => headers.host)).toEqual([`shop.example:${port}`])
  await first.stop()
})

it('asks TLS for the name of the URL, and refuses a certificate that nobody trusts', async () => {
  const names: string[] = []
  const SNICallback = (name: string, done: (error: null) => void) => {
    names.push(name)
    done(null)
  }
  const server = createServer({ ...testCertificate, SNICallback }, (_, response) => response.end())
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const outcome = await post(`https://shop.example:${port}/`, {
    allowsPrivate: true,
    resolveHost: async () => ['127.0.0.1'],
  })
  expect(outcome.failure).toMatch(/^TLS failed: /)
  expect(names).toEqual(['shop.example'])
  server.close()
})

it('closes the connection of an answer that never ends; its status counts', async () => {
  let open = 0
  const server = createHttpServer((_, response) => response.writeHead(503).flushHeaders())
  server.on('connection', (socket) => {
    open += 1
    socket.on('close', () => {
      open -= 1
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const sending = createPostWebhook({ allowsPrivate: true, now: () => new Date() })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const outcomes = await Promise.all(Array.from({ length: 3 }, () => sending.post(posting(url), never)))
  expect(new Set(outcomes.map(({ failure }) => failure))).toEqual(new Set(['it answered 503']))
  await expect.poll(() => open, { timeout: 5_000 }).toBe(0)
  sending.close()
  server.close()
})

it('says in plain words why there was no answer', async () => {
  const silent = await startReceiver(() => 'never')
  const broken = await startReceiver(() => 'break')
  const local = { allowsPrivate: true }
  expect(await post(silent.url, { ...local, timeoutMs: 50 })).toEqual({ failure: 'no answer within 0.05 s' })
  expect(await post(broken.url, local)).toEqual({ failure: 'the connection broke off' })
  await broken.stop()
  expect(await post(broken.url, local)).toEqual({ failure: 'it cannot be connected to' })
  expect(await post('http://shop.example/', { resolveHost: async () => [] })).toEqual({
    failure: 'its name has no address',
  })
  await silent.stop()
})
