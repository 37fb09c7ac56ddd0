import { once } from 'node:events'
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import type { Listener } from '../../src/api/listener/listener.ts'
import { issueApiKey } from '../../src/auth/manage-keys.ts'
import { createApiKeyRepository } from '../../src/auth/sql/api-key-repository.ts'
import { createStreamClient, streamProtocols } from '../support/clients/stream-clients.ts'
import { watchBy } from '../support/clients/watch-clients.ts'
import { generatePayments, insertPayments } from '../support/data/search-payments.ts'
import { NOW, startTestService, type TestService } from '../support/service.ts'

// One client cannot starve others, by open streams, slow reading, many calls or cancellations.

let running: TestService
let accountIds: Readonly<Record<'shop' | 'other' | 'nobody', number>>
let sessions: ClientHttp2Session[] = []

beforeAll(async () => {
  running = await startTestService()
  const { knex } = running.database
  const accounts = createApiKeyRepository(knex)
  const idOf = async (name: string) => (await accounts.ensureAccount(name)).id
  accountIds = { shop: await idOf('shop'), other: await idOf('other'), nobody: await idOf('nobody') }
  await Promise.all([store(accountIds.shop, 800, 1), store(accountIds.other, 800, 2)])
})
afterEach(() => {
  for (const session of sessions) session.destroy()
  sessions = []
})
afterAll(() => running?.stop())

async function issueKey(account: string): Promise<string> {
  const terms = { account, scopes: ['payments:read'], now: NOW, callsPerMinute: 0 } as const
  return (await issueApiKey(createApiKeyRepository(running.database.knex), terms)).key
}

function openSession({ url }: { readonly url: string }): ClientHttp2Session {
  // Small windows, so that unread data soon waits in the service.
  const session = connect(url, { settings: { initialWindowSize: 16_384 } })
  session.on('error', () => {})
  sessions.push(session)
  return session
}

const RPC = '/payments.v1.PaymentSearchService/ExportPayments'
const noMessage = Buffer.alloc(5)
const emptyJson = Buffer.from([0, 0, 0, 0, 2, ...Buffer.from('{}')])

/** Ways to ask for an export over HTTP/2. */
const exportForms = [
  ['JSON lines', { ':path': '/v1/payments:export' }, undefined],
  ['CSV', { ':path': '/v1/payments:export?format=csv' }, undefined],
  ['gRPC', { ':path': RPC, 'content-type': 'application/grpc', te: 'trailers' }, noMessage],
  ['gRPC-Web', { ':path': RPC, 'content-type': 'application/grpc-web' }, noMessage],
  ['Connect', { ':path': RPC, 'content-type': 'application/connect+json' }, emptyJson],
] as const

function askForExport(session: ClientHttp2Session, key: string, form = 0): ClientHttp2Stream {
  const [, fields, body] = exportForms[form % exportForms.length] ?? exportForms[0]
  const stream = session.request({ ':method': body === undefined ? 'GET' : 'POST', 'x-api-key': key, ...fields })
  stream.on('error', () => {})
  stream.end(body)
  return stream
}

/** Reads a chunk of at most 16 KB at intervals. @returns all data and the trailers, as text, at the end */
async function readSlowly(stream: ClientHttp2Stream, everyMs: number): Promise<string> {
  const pieces: Buffer[] = []
  let trailers: Readonly<Record<string, string>> = {}
  stream.on('trailers', (fields) => {
    trailers = fields
  })
  stream.on('data', (piece: Buffer) => {
    pieces.push(piece)
    stream.pause()
    setTimeout(() => stream.resume(), everyMs)
  })
  await new Promise((resolve) => stream.once('close', resolve))
  const body = Buffer.concat(pieces).toString('latin1')
  const details = trailers['grpc-status-details-bin'] ?? /grpc-status-details-bin: (\S+)/.exec(body)?.[1] ?? ''
  return body + Buffer.from(details, 'base64').toString('latin1')
}

/** So many payments of one account. */
const store = (accountId: number, count: number, seed: number) =>
  insertPayments(running.database.knex, generatePayments(accountId, count, seed))

describe('streams', () => {
  let listener: Listener
  let keys: readonly string[]

  beforeAll(async () => {
    listener = await running.listen({ maxOpenStreams: 20 })
    keys = await Promise.all(['shop', 'shop', 'other', 'other'].map(issueKey))
  })

  /** Five exports of each of the four keys, in all forms, each over a connection of its own, and slowly read. */
  async function fill(): Promise<readonly ClientHttp2Stream[]> {
    const streams = keys.flatMap((key) => exportForms.map((_, form) => askForExport(openSession(listener), key, form)))
    await Promise.all(streams.map((stream) => once(stream, 'response')))
    for (const stream of streams) void readSlowly(stream, 200)
    return streams
  }

  it('of four keys that read exports slowly leave space for a fifth key, which gets its watch and its events', async () => {
    await fill()
    const { messages, error } = await watchBy('grpc-js', {
      url: listener.url,
      headers: { 'x-api-key': running.keys.nobody },
      onMessage({ type }) {
        if (type === 'HEARTBEAT') void store(accountIds.nobody, 1, 77)
        return type === 'HEARTBEAT' ? 'go on' : 'hang up'
      },
    })
    expect([messages.map(({ type }) => type), error]).toEqual([['HEARTBEAT', 'ADDED'], undefined])
  })

  it('beyond a tenth of the process for a key, and a fifth for an account, are refused over every protocol', async () => {
    const [ofShop = '', alsoOfShop = ''] = keys
    const hold = async (key: string) => {
      const stream = askForExport(openSession(listener), key)
      const [fields] = (await once(stream, 'response')) as [Record<string, number>]
      return fields[':status'] === 200 ? stream : undefined
    }
    // The streams of the test before may still be closing.
    const held: ClientHttp2Stream[] = []
    for (const key of [ofShop, ofShop, alsoOfShop, alsoOfShop]) {
      held.push(await vi.waitUntil(() => hold(key), { timeout: 5_000 }))
    }
    const client = createStreamClient(listener.url)
    const { exportPayments } = PaymentSearchService.method
    for (const [key, holder, limit] of [
      [ofShop, 'key', '2'],
      [running.keys.shop, 'account', '4'],
    ] as const) {
      const headers = { 'x-api-key': key }
      const refused = { code: 'resource_exhausted', reason: 'TOO_MANY_STREAMS', metadata: { holder, limit } }
      for (const protocol of streamProtocols) {
        const { messages, error } = await client.call(protocol, exportPayments, [{}], { headers })
        expect([messages, error]).toMatchObject([[], refused])
      }
      const { reason, metadata, code } = refused
      const answer = await fetch(`${listener.url}/v1/payments:export`, { headers })
      expect([answer.status, await answer.json()]).toMatchObject([
        429,
        { code, details: [{ reason, metadata }, { retryDelay: '5s' }] },
      ])
      expect(answer.headers.get('retry-after')).toBe('5')
    }
    client.close()
    // A stream that ends makes space, and so does one that is cancelled.
    held[0]?.close(constants.NGHTTP2_CANCEL)
    await vi.waitUntil(() => hold(running.keys.shop), { timeout: 5_000 })
  })
})

it('an export that is read below the minimum rate is ended in every form, however steadily it is read', async () => {
  const listener = await running.listen({ maxStallMs: 400, minRowsPerSecond: 4_000 })
  // Several chunks within the allowed pause, but too few rows.
  const read = exportForms.map((_, form) =>
    readSlowly(askForExport(openSession(listener), running.keys.shop, form), 60),
  )
  for (const reported of await Promise.all(read)) expect(reported).toContain('READER_TOO_SLOW')
})

it('200 watches cancelled together, twice, on one connection leave its searches in flight alone', async () => {
  const session = openSession(running)
  const watch = async (key: string) => {
    const stream = session.request({ ':path': '/v1/payments:watch', 'x-api-key': key })
    stream.on('error', () => {})
    await once(stream, 'data')
    return stream
  }
  const search = async () => {
    const stream = session.request({
      ':path': '/payments?limit=100&includeTotal=exact',
      'x-api-key': running.keys.shop,
    })
    stream.on('error', () => {})
    const [headers] = (await once(stream, 'response')) as [Record<string, number>]
    return [headers[':status'], (JSON.parse(await text(stream)) as { payments: [] }).payments.length]
  }
  for (let round = 0; round < 2; round++) {
    const keys = [running.keys.shop, running.keys.other]
    const watches = await Promise.all(Array.from({ length: 200 }, (_, n) => watch(keys[n % 2] ?? '')))
    const searches = Array.from({ length: 5 }, search)
    for (const stream of watches) stream.close(constants.NGHTTP2_CANCEL)
    expect(await Promise.all(searches)).toEqual(searches.map(() => [200, 100]))
  }
  expect(session.closed).toBe(false)
})
