/**
 * One attack, in a process of its own: `node bench/hostile/hostile-attacks.ts NAME PORT PUBLISHABLE,KEY,… ADDRESS`, from that loopback
 * address; attacks of several clients from others that differ in the last number. Runs until
 * SIGTERM, then prints a report. Every attack has a fixed rate, so that the kind of attack is measured and not its volume. It runs at the
 * lowest priority, because real attackers have their own processors.
 */
import { connect, type Socket } from 'node:net'
import { constants, setPriority } from 'node:os'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import {
  END_HEADERS,
  END_STREAM,
  fieldBlock,
  frame,
  frameTypes,
  INITIAL_WINDOW,
  NO_BYTES,
  preface,
  uint32,
} from './hostile-frames.ts'
import { NETWORKS, SYMBOLS, WALLETS } from './hostile-payments.ts'

/** An action that is repeated at a fixed rate. */
export interface Attack {
  readonly perSecond: number
  /** Acts once. @returns false when it could not, because a refused connection must be opened again first */
  readonly act: (target: Target) => boolean
}

export interface Target {
  readonly port: number
  /** The first of {@link keys}. */
  readonly key: string
  /** Secret keys, each with the attackers' rate. */
  readonly keys: readonly string[]
  readonly publishableKey: string
  /** The address from which the attacker connects. */
  readonly localAddress: string
}

/** The report of an attacker at its end. */
export interface AttackerReport {
  readonly acts: number
  readonly seconds: number
  readonly connections: number
  readonly refused: number
}

let connections = 0
let refused = 0

function open({ port, localAddress }: Target, bytes: string | Buffer, dripMs?: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  connections += 1
  let isHeard = false
  socket.on('error', () => {})
  socket.on('data', () => {
    isHeard = true
  })
  socket.write(bytes)
  const drip = dripMs === undefined ? undefined : setInterval(() => socket.write('x'), dripMs)
  socket.once('close', () => {
    clearInterval(drip)
    if (!isHeard) refused += 1
  })
  return socket
}

/** An attack that opens connections. */
function connecting(perSecond: number, bytesFor: (target: Target) => string | Buffer, dripMs?: number): Attack {
  let bytes: string | Buffer | undefined
  return {
    perSecond,
    act(target) {
      bytes ??= bytesFor(target)
      open(target, bytes, dripMs)
      return true
    },
  }
}

/** An attack that opens connections from several addresses, up to so many, and keeps them. */
function connectingFrom(addresses: number, perSecond: number, most: number, bytes: string): Attack {
  return {
    perSecond,
    act(target) {
      if (connections >= most) return true
      const localAddress = target.localAddress.replace(/\d+$/, String((connections % addresses) + 1))
      open({ ...target, localAddress }, bytes)
      return true
    },
  }
}

interface Session {
  readonly socket: Socket
  nextStream: number
}

/** An attack that sends HTTP/2 frames over one connection, and opens another when the service has closed it. */
function framing(
  perSecond: number,
  write: (session: Session, target: Target) => void,
  settings: readonly (readonly [number, number])[] = [],
): Attack {
  let session: Session | undefined
  return {
    perSecond,
    act(target) {
      if (session === undefined || session.socket.destroyed || session.nextStream > 2 ** 30) {
        session?.socket.destroy()
        session = { socket: open(target, preface(settings)), nextStream: 1 }
      }
      const { socket } = session
      // A backlog here uses only the memory of the attacker.
      if (socket.connecting || socket.writableLength > 1_000_000) return false
      write(session, target)
      return true
    },
  }
}

/** An attack over one HTTP/2 connection for each of several addresses or keys, alternately. */
function framingMany(
  perSecond: number,
  clients: number,
  write: (session: Session, target: Target, n: number) => void,
): Attack {
  const attacks = Array.from({ length: clients }, (_, n) =>
    framing(perSecond, (session, target) => write(session, target, n)),
  )
  let sent = 0
  return {
    perSecond,
    act(target) {
      sent += 1
      const n = sent % clients
      const localAddress = target.localAddress.replace(/\d+$/, String(n + 1))
      return attacks[n]?.act({ ...target, localAddress }) === true
    },
  }
}

const SEARCH = '/payments.v1.PaymentSearchService/SearchPayments'
const LIST = '/payments?limit=100'
const REQUEST = '/payments.v1.RequestsService/GetPaymentRequest'
const GET_HEALTH = 'GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n'

const fieldsOf = ({ key }: Target, path: string, method = 'GET') => ({
  ':method': method,
  ':path': path,
  ':scheme': 'http',
  ':authority': 'localhost',
  'x-api-key': key,
})

function begin(session: Session, block: Buffer, flags: number): number {
  const stream = session.nextStream
  session.nextStream += 2
  session.socket.write(frame(frameTypes.headers, flags, stream, block))
  return stream
}

function post(type: string, body: Buffer, { extra = '', path = SEARCH } = {}): (target: Target) => Buffer {
  return ({ key }) => {
    const head = `POST ${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${key}\r\ncontent-type: ${type}\r\n${extra}`
    return Buffer.concat([Buffer.from(`${head}connection: close\r\ncontent-length: ${body.length}\r\n\r\n`), body])
  }
}

const get =
  (path: string, extra = '') =>
  ({ key }: Target) =>
    `GET ${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${key}\r\n${extra}connection: close\r\n\r\n`

/** Opens a gRPC stream whose only message declares more bytes than it has. */
function lie(session: Session, target: Target, stated: number): void {
  const fields = { ...fieldsOf(target, SEARCH, 'POST'), 'content-type': 'application/grpc', te: 'trailers' }
  const stream = begin(session, fieldBlock(fields), END_HEADERS)
  session.socket.write(
    frame(frameTypes.data, END_STREAM, stream, Buffer.concat([Buffer.from([0]), uint32(stated), Buffer.alloc(10)])),
  )
}

const randomByte = () => Math.floor(Math.random() * 254) + 1
const randomKey = () => `wb_${Array.from({ length: 40 }, () => Math.floor(Math.random() * 36).toString(36)).join('')}`

const MB = 1_000_000
const piece = Buffer.alloc(65_536)
const zeros = Buffer.alloc(100 * MB)
const json = 'application/json'

const hundredOfEverything = post(
  json,
  Buffer.from(
    JSON.stringify({
      network: NETWORKS,
      currency: SYMBOLS,
      walletAddress: WALLETS,
      sortBy: 'AMOUNT',
      includeTotal: 'EXACT',
    }),
  ),
)

/** The attacks by name; each has the rate of one attacker on one line. */
export const attacks: Readonly<Record<string, Attack>> = {
  // Slow or silent clients
  'silent connections': connecting(500, () => ''),
  'slow headers': connecting(100, () => 'GET / HTTP/1.1\r\nhost: a\r\nx-a: ', 500),
  'slow bodies': connecting(100, (target) => post(json, Buffer.alloc(10_000))(target).subarray(0, -10_000), 500),
  'slow bodies over HTTP/2': framing(100, (session, target) => {
    const stream = begin(
      session,
      fieldBlock({ ...fieldsOf(target, SEARCH, 'POST'), 'content-type': json }),
      END_HEADERS,
    )
    session.socket.write(frame(frameTypes.data, 0, stream, Buffer.from('{')))
  }),
  'half-open streams over HTTP/2': framing(1_000, (session, target) => {
    begin(session, fieldBlock(fieldsOf(target, LIST, 'POST')), END_HEADERS)
  }),
  // Places that are held
  'bodies without end of four keys': framingMany(200, 4, (session, target, n) => {
    const fields = fieldsOf({ ...target, key: target.keys[n % target.keys.length] ?? '' }, SEARCH, 'POST')
    begin(session, fieldBlock({ ...fields, 'content-type': 'application/grpc', te: 'trailers' }), END_HEADERS)
  }),
  'bodies without end of a publishable key from 17 addresses': framingMany(200, 17, (session, target) => {
    const fields = fieldsOf({ ...target, key: target.publishableKey }, REQUEST, 'POST')
    begin(session, fieldBlock({ ...fields, 'content-type': json, origin: 'https://shop.example' }), END_HEADERS)
  }),
  'connections with one health check from eight addresses': connectingFrom(8, 500, 8_000, GET_HEALTH),
  'connections with one call of four keys': {
    perSecond: 500,
    act(target) {
      if (connections < 8_000) open(target, get('/payments?limit=1')(target).replace('connection: close\r\n', ''))
      return true
    },
  },
  'streams without a key': framing(200, (session, target) => {
    const isWatch = session.nextStream % 4 === 1
    const path = isWatch ? '/grpc.health.v1.Health/Watch' : '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
    const fields = { ...fieldsOf(target, path, 'POST'), 'content-type': 'application/grpc', te: 'trailers' }
    const stream = begin(session, fieldBlock(fields), END_HEADERS)
    if (isWatch) session.socket.write(frame(frameTypes.data, END_STREAM, stream, Buffer.alloc(5)))
  }),
  // Clients that do not read
  'answers not read': {
    perSecond: 20,
    act(target) {
      open(target, get(LIST)(target).replace('connection: close\r\n', '').repeat(20)).pause()
      return true
    },
  },
  'answers not read over HTTP/2': framing(
    200,
    (session, target) => void begin(session, fieldBlock(fieldsOf(target, LIST)), END_HEADERS | END_STREAM),
    [[INITIAL_WINDOW, 0]],
  ),
  // Frames without purpose
  'rapid reset': framing(2_000, (session, target) => {
    const stream = begin(session, fieldBlock(fieldsOf(target, '/payments')), END_HEADERS | END_STREAM)
    session.socket.write(frame(frameTypes.reset, 0, stream, uint32(8)))
  }),
  'resets a moment later': framing(2_000, (session, target) => {
    const stream = begin(session, fieldBlock(fieldsOf(target, '/payments')), END_HEADERS | END_STREAM)
    const { socket } = session
    setTimeout(() => socket.write(frame(frameTypes.reset, 0, stream, uint32(8))), 5)
  }),
  'resets of /docs from thirty addresses': framingMany(6_000, 30, (session, target) => {
    const fields = { ...fieldsOf(target, '/docs'), 'accept-encoding': 'gzip' }
    const stream = begin(session, fieldBlock(fields), END_HEADERS | END_STREAM)
    const { socket } = session
    setTimeout(() => socket.write(frame(frameTypes.reset, 0, stream, uint32(8))), 2)
  }),
  'calls without a key from thirty addresses': framingMany(6_000, 30, (session, target) => {
    begin(session, fieldBlock(fieldsOf(target, '/docs')), END_HEADERS | END_STREAM)
  }),
  'preflights from thirty addresses': framingMany(3_000, 30, (session, target) => {
    const asked = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    begin(session, fieldBlock({ ...fieldsOf(target, '/v1/request', 'OPTIONS'), ...asked }), END_HEADERS | END_STREAM)
  }),
  // A connection with a call in flight is drained, not closed at once.
  'resets beside a watch': framing(2_000, (session, target) => {
    const path = session.nextStream === 1 ? '/v1/payments:watch' : '/payments'
    const stream = begin(session, fieldBlock(fieldsOf(target, path)), END_HEADERS | END_STREAM)
    if (stream > 1) session.socket.write(frame(frameTypes.reset, 0, stream, uint32(8)))
  }),
  'PING flood': framing(5_000, ({ socket }) => socket.write(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)))),
  'SETTINGS flood': framing(5_000, ({ socket }) => socket.write(frame(frameTypes.settings, 0, 0, NO_BYTES))),
  'WINDOW_UPDATE flood': framing(20_000, ({ socket }) => {
    socket.write(frame(frameTypes.windowUpdate, 0, 0, uint32(1)))
  }),
  'PRIORITY flood': framing(20_000, (session) => {
    session.nextStream += 2
    session.socket.write(frame(frameTypes.priority, 0, session.nextStream, Buffer.from([0, 0, 0, 0, 1])))
  }),
  'empty DATA flood': framing(20_000, (session, target) => {
    if (session.nextStream === 1) {
      begin(session, fieldBlock({ ...fieldsOf(target, SEARCH, 'POST'), 'content-type': json }), END_HEADERS)
    }
    session.socket.write(frame(frameTypes.data, 0, 1, NO_BYTES))
  }),
  'CONTINUATION flood': framing(2_000, (session) => {
    if (session.nextStream === 1) begin(session, fieldBlock({ 'x-a': 'b' }), 0)
    session.socket.write(frame(frameTypes.continuation, 0, 1, fieldBlock({ 'x-a': 'b'.repeat(1_000) })))
  }),
  // Too much input
  'too many headers': connecting(50, () => `GET / HTTP/1.1\r\nhost: a\r\n${'x-a: b\r\n'.repeat(20_000)}\r\n`),
  'a header of 1 MB': connecting(50, () => `GET / HTTP/1.1\r\nhost: a\r\nx-a: ${'b'.repeat(MB)}\r\n\r\n`),
  'a header of 1 MB over HTTP/2': framing(50, (session, target) => {
    const block = fieldBlock({ ...fieldsOf(target, '/'), 'x-a': 'b'.repeat(MB) })
    begin(session, block.subarray(0, 16_000), 0)
    const stream = session.nextStream - 2
    for (let at = 16_000; at < block.length; at += 16_000) {
      const flags = at + 16_000 < block.length ? 0 : END_HEADERS
      session.socket.write(frame(frameTypes.continuation, flags, stream, block.subarray(at, at + 16_000)))
    }
  }),
  'an accept of sixty thousand commas': connecting(
    100,
    get('/payments?limit=1', `accept: application/json${','.repeat(60_000)}\r\n`),
  ),
  'a path of 1 MB': connecting(50, () => `GET /${'a'.repeat(MB)} HTTP/1.1\r\nhost: a\r\n\r\n`),
  'a path of 60 kB': connecting(100, get(`/${'a/'.repeat(30_000)}`)),
  'a query of 60 kB': connecting(100, get(`/payments?${'a=b&'.repeat(15_000)}`)),
  'bodies of 4 MB': connecting(20, post(json, Buffer.alloc(4 * MB, 'a'))),
  'bodies without end': {
    perSecond: 10,
    act(target) {
      const socket = open(target, 'POST /payments HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000000\r\n\r\n')
      const pour = () => {
        while (!socket.destroyed && socket.write(piece));
      }
      socket.on('drain', pour)
      pour()
      return true
    },
  },
  'messages of 4 MB over gRPC': framing(20, (session, target) => {
    const fields = { ...fieldsOf(target, SEARCH, 'POST'), 'content-type': 'application/grpc', te: 'trailers' }
    const stream = begin(session, fieldBlock(fields), END_HEADERS)
    const start = Buffer.concat([Buffer.from([0]), uint32(4 * MB), Buffer.alloc(16_000)])
    session.socket.write(frame(frameTypes.data, 0, stream, start))
    for (let n = 0; n < 50; n++) session.socket.write(frame(frameTypes.data, 0, stream, Buffer.alloc(16_000)))
  }),
  'lies about lengths over gRPC': framing(200, (session, target) => lie(session, target, 2 ** 32 - 1)),
  'short messages over gRPC': framing(200, (session, target) => lie(session, target, 1_000)),
  // Input that is costly to parse
  'deep JSON': connecting(20, post(json, Buffer.from('{"a":'.repeat(40_000)))),
  'long lists': connecting(20, post(json, Buffer.from(`[${'{},'.repeat(80_000)}{}]`))),
  'empty messages': connecting(
    20,
    post('application/proto', Buffer.concat(Array.from({ length: 100_000 }, () => Buffer.from([0x0a, 0])))),
  ),
  'gzip bombs': connecting(20, post(json, gzipSync(zeros), { extra: 'content-encoding: gzip\r\n' })),
  'brotli bombs': connecting(20, post(json, brotliCompressSync(zeros), { extra: 'content-encoding: br\r\n' })),
  // Costly searches, most of which exceed the limit of the key
  'searches for a hundred of everything': connecting(20, hundredOfEverything),
  'forty searches for a hundred of everything at once': {
    perSecond: 1,
    act(target) {
      for (let n = 0; n < 40; n++) open(target, hundredOfEverything(target))
      return true
    },
  },
  'searches of a hundred years': connecting(
    20,
    get('/payments?fromDate=1970-01-01&toDate=2069-12-31&sortBy=amount&includeTotal=exact'),
  ),
  'the dearest search in a loop': connecting(
    20,
    get(`/payments?network=${NETWORKS[3]}&minAmount=1&maxAmount=1000000&sortBy=date&sortOrder=asc`),
  ),
  'summaries in a loop': connecting(20, get('/v1/payments:summarize?groupBy=payer&groupBy=currency')),
  'watchers that never read': {
    perSecond: 50,
    act(target) {
      const request = get('/v1/payments:watch', 'accept: text/event-stream\r\n')(target)
      if (connections < 50) open(target, request.replace('connection: close\r\n', '')).pause()
      return true
    },
  },
  // Without a valid key
  garbage: connecting(100, () => Buffer.alloc(1_000, 0xfe)),
  'health checks': connecting(200, () => 'GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n'),
  'unknown keys': {
    perSecond: 200,
    act(target) {
      open(target, get('/payments')({ ...target, key: randomKey() }))
      return true
    },
  },
  'unknown keys from everywhere': {
    perSecond: 200,
    act(target) {
      const localAddress = `127.${randomByte()}.${randomByte()}.${randomByte()}`
      open({ ...target, localAddress }, get('/payments')({ ...target, key: randomKey() }))
      return true
    },
  },
  'unknown keys over HTTP/2': framing(2_000, (session, target) => {
    begin(session, fieldBlock(fieldsOf({ ...target, key: randomKey() }, '/payments')), END_HEADERS | END_STREAM)
  }),
}

const TICK_MS = 10

if (import.meta.main) {
  const [name, port, keyList, localAddress] = process.argv.slice(2)
  const attack = attacks[name ?? '']
  const [publishableKey, key, ...more] = keyList?.split(',') ?? []
  if (attack === undefined || key === undefined || publishableKey === undefined || localAddress === undefined) {
    throw new Error('usage: hostile-attacks.ts NAME PORT PUBLISHABLE,KEY,… ADDRESS')
  }
  setPriority(constants.priority.PRIORITY_LOW)
  console.log('ready')
  keepUp(attack, { port: Number(port), key, keys: [key, ...more], publishableKey, localAddress })
}

/** Acts at the rate of the attack, in small bursts; missed actions are not made up for. */
function keepUp({ perSecond, act }: Attack, target: Target): void {
  const startedMs = performance.now()
  let acts = 0
  let due = 0
  let lastMs = startedMs
  const timer = setInterval(() => {
    const nowMs = performance.now()
    due = Math.min(due + ((nowMs - lastMs) / 1000) * perSecond, Math.max(1, perSecond / 10))
    lastMs = nowMs
    for (; due >= 1; due -= 1) if (act(target)) acts += 1
  }, TICK_MS)
  process.once('SIGTERM', () => {
    clearInterval(timer)
    const report: AttackerReport = { acts, seconds: (performance.now() - startedMs) / 1000, connections, refused }
    process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0))
  })
}
