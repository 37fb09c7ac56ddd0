/**
 * One attack on the service, in a process of its own: `node bench/hostile-attacks.ts NAME PORT KEY`. Runs until it is killed.
 * Every attack keeps to a number of connections and a pace, so that it is what it does that counts, not how much of it.
 */
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { gzipSync } from 'node:zlib'

/** What one round of an attack does; there is one every `everyMs`. */
interface Attack {
  readonly everyMs: number
  readonly round: (target: Target) => void
}

interface Target {
  readonly port: number
  readonly key: string
}

function raw({ port }: Target, bytes: string | Buffer, dripMs?: number): Socket {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {}).resume()
  socket.write(bytes)
  const drip = dripMs === undefined ? undefined : setInterval(() => socket.write('x'), dripMs)
  socket.once('close', () => clearInterval(drip))
  return socket
}

function post({ key }: Target, path: string, type: string, body: Buffer, extra = ''): Buffer {
  const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${key}\r\ncontent-type: ${type}\r\n${extra}`
  return Buffer.concat([Buffer.from(`${head}connection: close\r\ncontent-length: ${body.length}\r\n\r\n`), body])
}

let session: ClientHttp2Session | undefined

/** One connection, opened anew when the service has ended it. */
function http2({ port }: Target): ClientHttp2Session {
  if (session === undefined || session.closed || session.destroyed) {
    session = connectHttp2(`http://127.0.0.1:${port}`, { peerMaxConcurrentStreams: 1_000 })
    session.on('error', () => {})
  }
  return session
}

const SEARCH = '/payments.v1.PaymentSearchService/SearchPayments'
const bomb = gzipSync(Buffer.alloc(100_000_000))
const many = Buffer.concat(Array.from({ length: 100_000 }, () => Buffer.from([0x0a, 0])))
const deep = Buffer.from('{"a":'.repeat(40_000))
const long = Buffer.alloc(4_000_000, 'a')

export const attacks: Readonly<Record<string, Attack>> = {
  'slow headers': { everyMs: 10, round: (target) => raw(target, 'GET / HTTP/1.1\r\nhost: a\r\nx-a: ', 500) },
  'slow bodies': {
    everyMs: 10,
    round: (target) =>
      raw(target, post(target, SEARCH, 'application/json', Buffer.alloc(10_000)).subarray(0, -10_000), 500),
  },
  'slow bodies over HTTP/2': {
    everyMs: 20,
    round(target) {
      const stream = http2(target).request({
        ':method': 'POST',
        ':path': SEARCH,
        'content-type': 'application/json',
        'x-api-key': target.key,
      })
      stream.on('error', () => {})
      stream.write('{')
    },
  },
  'rapid reset': {
    everyMs: 10,
    round(target) {
      const to = http2(target)
      if (to.connecting) return
      for (let n = 0; n < 20; n++) {
        const stream = to.request({ ':path': '/payments', 'x-api-key': target.key })
        stream.on('error', () => {})
        stream.close(constants.NGHTTP2_CANCEL)
      }
    },
  },
  'PING flood': {
    everyMs: 10,
    round(target) {
      const to = http2(target)
      if (!to.connecting) for (let n = 0; n < 10; n++) to.ping(() => {})
    },
  },
  'header flood': {
    everyMs: 20,
    round: (target) => raw(target, `GET / HTTP/1.1\r\nhost: a\r\n${'x-a: b\r\n'.repeat(20_000)}\r\n`),
  },
  'connection flood': { everyMs: 10, round: (target) => void [1, 2, 3, 4, 5].map(() => raw(target, '')) },
  garbage: { everyMs: 10, round: (target) => raw(target, Buffer.alloc(1_000, 0xfe)) },
  'unknown keys': {
    everyMs: 10,
    round: (target) =>
      raw(target, `GET /payments HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-api-key: wb_${Math.random()}\r\n\r\n`),
  },
  'oversize bodies': { everyMs: 50, round: (target) => raw(target, post(target, SEARCH, 'application/json', long)) },
  'deep JSON': { everyMs: 50, round: (target) => raw(target, post(target, SEARCH, 'application/json', deep)) },
  'many empty messages': {
    everyMs: 50,
    round: (target) => raw(target, post(target, SEARCH, 'application/proto', many)),
  },
  'gzip bombs': {
    everyMs: 50,
    round: (target) => raw(target, post(target, SEARCH, 'application/json', bomb, 'content-encoding: gzip\r\n')),
  },
}

const [name, port, key] = process.argv.slice(2)
if (import.meta.main) {
  const attack = attacks[name ?? '']
  if (attack === undefined || key === undefined) throw new Error('usage: hostile-attacks.ts NAME PORT KEY')
  const target = { port: Number(port), key }
  console.log('ready')
  setInterval(() => attack.round(target), attack.everyMs)
}
