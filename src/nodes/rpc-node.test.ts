import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createNodeLimits } from './node-limits.ts'
import type { NodePolicy } from './node-policy.ts'
import { createRpcNode } from './rpc-node.ts'

interface JsonCall {
  readonly id: number
  readonly method: string
}

/** Answers the bodies of requests: a status and a body. */
let respond: (body: JsonCall | JsonCall[], response: ServerResponse) => void
let bodies: (JsonCall | JsonCall[])[] = []
let server: Server
let url: string

beforeAll(async () => {
  server = createServer((request, response) => {
    void json(request).then((body) => {
      bodies.push(body as JsonCall[])
      respond(body as JsonCall[], response)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v3/secret-key`
})
beforeEach(() => {
  bodies = []
  respond = answerAll
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

const SMALL_READS: NodePolicy = {
  maxAnswerBytes: 10_000,
  maxParallelCalls: 8,
  isBulk: false,
  waitsForSlots: false,
  maxWaitMs: 1_000,
}
const LARGE_READS: NodePolicy = { ...SMALL_READS, isBulk: true }

const callsOf = (...methods: string[]) => methods.map((method) => ({ method, params: [] }))
const THREE = callsOf('one', 'two', 'three')
const answerTo = ({ id, method }: JsonCall) => ({ jsonrpc: '2.0', id, result: method })
const send = (response: ServerResponse, body: unknown, status = 200) =>
  void response.writeHead(status).end(typeof body === 'string' ? body : JSON.stringify(body))

function answerAll(body: JsonCall | JsonCall[], response: ServerResponse): void {
  send(response, Array.isArray(body) ? body.map(answerTo) : answerTo(body))
}

/** Treats batches so, and answers single calls. */
function toBatches(treat: (batch: JsonCall[], response: ServerResponse) => void): typeof respond {
  return (body, response) => (Array.isArray(body) ? treat : answerAll)(body as JsonCall[], response)
}

const ask = (policy: NodePolicy, calls = THREE, maySplit = true) => createRpcNode(url, policy).ask(calls, { maySplit })
const resultsOf = (...methods: string[]) => methods.map((result) => ({ ok: true, result }))
/** The calls of each request. */
const sizes = () => bodies.map((body) => (Array.isArray(body) ? body.length : 1))

describe('a batch', () => {
  it('of no calls is not sent', async () => {
    expect(await ask(SMALL_READS, [])).toEqual([])
    expect(bodies).toEqual([])
  })

  it('is one request; a single call is not sent as a batch', async () => {
    expect(await ask(SMALL_READS)).toEqual(resultsOf('one', 'two', 'three'))
    expect(await ask(SMALL_READS, callsOf('one'))).toEqual(resultsOf('one'))
    expect(bodies.map((body) => Array.isArray(body))).toEqual([true, false])
  })

  const refusals: [string, NodePolicy, (response: ServerResponse) => void][] = [
    ['an error for all of it', SMALL_READS, (response) => send(response, { id: null, error: { code: -32600 } })],
    ['an error under 400', LARGE_READS, (response) => send(response, { jsonrpc: '2.0', error: { code: 1 } }, 400)],
    ['one answer', SMALL_READS, (response) => send(response, { id: 0, result: 'one' })],
    ...[400, 405, 413, 422, 501].map((status): [string, NodePolicy, (response: ServerResponse) => void] => [
      `status ${status}`,
      SMALL_READS,
      (response) => send(response, '<html>', status),
    ]),
    ['status 403, at a node of large reads', LARGE_READS, (response) => send(response, '<html>', 403)],
  ]
  it.each(refusals)('that is refused by %s goes call by call, from then on', async (_, policy, refuse) => {
    respond = toBatches((_batch, response) => refuse(response))
    const node = createRpcNode(url, policy)
    expect(await node.ask(THREE)).toEqual(resultsOf('one', 'two', 'three'))
    expect(await node.ask(THREE)).toEqual(resultsOf('one', 'two', 'three'))
    expect(sizes()).toEqual([3, 1, 1, 1, 1, 1, 1])
  })

  it('is tried again where only one of its calls was at fault', async () => {
    respond = (body, response) => {
      const error = { code: -32601, message: 'method not found' }
      if (Array.isArray(body)) send(response, { id: null, error })
      else send(response, body.method === 'two' ? { id: 0, error } : answerTo(body))
    }
    const node = createRpcNode(url, SMALL_READS)
    const answers = await node.ask(THREE)
    expect(answers).toMatchObject([{ ok: true }, { ok: false, error: { kind: 'REFUSED' } }, { ok: true }])
    await node.ask(THREE)
    expect(sizes()).toEqual([3, 1, 1, 1, 3, 1, 1, 1])
  })

  it('that is refused fails as TOO_LARGE where it may not be divided', async () => {
    respond = toBatches((_batch, response) => send(response, '<html>', 413))
    await expect(ask(SMALL_READS, THREE, false)).rejects.toMatchObject({ kind: 'TOO_LARGE' })
    expect(sizes()).toEqual([3])
  })

  it.each<[string, (response: ServerResponse) => void]>([
    ['under 413', (response) => send(response, '', 413)],
    ['by an answer above the limit', (response) => send(response, ' '.repeat(10_001))],
  ])('that is too large %s is halved at a node of large reads', async (_, refuse) => {
    respond = (body, response) => {
      if (Array.isArray(body) && body.length > 2) refuse(response)
      else answerAll(body, response)
    }
    expect(await ask(LARGE_READS)).toEqual(resultsOf('one', 'two', 'three'))
    expect(sizes()).toEqual([3, 2, 1])
  })

  it('fails where an answer is above the limit and is not to be halved', async () => {
    respond = toBatches((_batch, response) => send(response, ' '.repeat(10_001)))
    await expect(ask(SMALL_READS)).rejects.toMatchObject({ kind: 'TOO_LARGE', detail: /larger than 10000 bytes/ })
    expect(sizes()).toEqual([3])
  })

  it('is asked again for what was too large in it', async () => {
    const error = { code: -32003, message: 'response too large' }
    respond = toBatches((batch, response) =>
      send(
        response,
        batch.map((call, place) => (place > 0 && batch.length === 3 ? { id: call.id, error } : answerTo(call))),
      ),
    )
    expect(await ask(LARGE_READS)).toEqual(resultsOf('one', 'two', 'three'))
    expect(sizes()).toEqual([3, 2])
  })
})

describe('a node that does not work', () => {
  it.each<[string, (response: ServerResponse) => void, object]>([
    ['resets', (response) => void response.destroy(), { kind: 'UNREACHABLE', detail: 'ECONNRESET' }],
    ['answers 500', (response) => send(response, '{}', 500), { kind: 'UNREACHABLE', detail: 'HTTP status 500' }],
    ['answers 401', (response) => send(response, '{"jsonrpc":"2.0","error":{}}', 401), { kind: 'UNREACHABLE' }],
    ['redirects', (response) => send(response, '', 307), { kind: 'UNREACHABLE' }],
    ['answers 429', (response) => send(response, '', 429), { kind: 'RATE_LIMITED', retryAfterMs: 1_000 }],
    [
      'asks to be left alone',
      (response) => void response.writeHead(503, { 'retry-after': '7' }).end(),
      { kind: 'UNREACHABLE', retryAfterMs: 7_000 },
    ],
    [
      'answers HTML',
      (response) => send(response, '<html>'),
      { kind: 'INCONSISTENT', detail: 'its answer is not JSON' },
    ],
    ['answers a number', (response) => send(response, '7'), { kind: 'INCONSISTENT' }],
  ])('fails the whole question when it %s, without its key', async (_, behave, expected) => {
    respond = (_body, response) => behave(response)
    const error: unknown = await ask(SMALL_READS).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject(expected)
    expect(String(error)).not.toContain('secret-key')
    expect(sizes()).toEqual([3])
  })

  it('does not work where it refuses the key, though it says so in JSON-RPC', async () => {
    respond = (_body, response) =>
      send(response, { jsonrpc: '2.0', id: 0, error: { code: -32002, message: 'bad key' } }, 401)
    await expect(ask(LARGE_READS, callsOf('one'))).rejects.toMatchObject({ kind: 'UNREACHABLE' })
  })

  it('times out by the policy, and by the caller’s signal with its reason', async () => {
    respond = () => {}
    await expect(ask({ ...SMALL_READS, timeoutMs: 20 })).rejects.toMatchObject({ kind: 'TIMEOUT' })
    const controller = new AbortController()
    const asked = createRpcNode(url, SMALL_READS).ask(THREE, { signal: controller.signal })
    const reason = new Error('hung up')
    controller.abort(reason)
    await expect(asked).rejects.toBe(reason)
  })
})

describe('a single call', () => {
  const limited = (body: JsonCall | JsonCall[], response: ServerResponse) =>
    send(response, { id: (body as JsonCall).id, error: { code: 429, message: 'slow down' } })

  it('that is refused for its size fails alone', async () => {
    respond = (_body, response) => send(response, '', 413)
    expect(await ask(LARGE_READS, callsOf('one'))).toMatchObject([{ ok: false, error: { kind: 'TOO_LARGE' } }])
  })

  it('that is rate-limited fails all of the question, since more calls would only add to it', async () => {
    respond = limited
    await expect(ask(LARGE_READS, callsOf('one'))).rejects.toMatchObject({ kind: 'RATE_LIMITED' })
  })

  it('that is optional fails alone, whatever the node answers', async () => {
    const optional = [{ method: 'one', params: [], isOptional: true }]
    for (const behave of [limited, (_body: unknown, response: ServerResponse) => send(response, '', 500)]) {
      respond = behave
      expect(await ask(SMALL_READS, optional)).toMatchObject([{ ok: false }])
    }
  })
})

describe('a node that limits its rate', () => {
  const limited = { code: -32007, message: '2/second request limit reached' }
  /** Answers at most so many calls between two waits. @returns how often was waited, and the node */
  function limitTo(calls: number) {
    let left = calls
    let waits = 0
    const sleep = async () => {
      waits += 1
      left = calls
    }
    const answer = (call: JsonCall) => (left-- > 0 ? answerTo(call) : { id: call.id, error: limited })
    respond = (body, response) => send(response, Array.isArray(body) ? body.map(answer) : answer(body))
    const limits = createNodeLimits([], { sleep, clock: () => 0 }).of(url)
    return { node: createRpcNode(url, { ...LARGE_READS, waitsForSlots: true }, limits), limits, waits: () => waits }
  }

  it('is asked again for what it refused of a batch, alone', async () => {
    const { node, waits, limits } = limitTo(2)
    expect(await node.ask(THREE)).toEqual(resultsOf('one', 'two', 'three'))
    expect(sizes()).toEqual([3, 1])
    expect(waits()).toBe(1)
    // It counts calls, so no batch is larger than what it takes in a second.
    expect(limits.batchSize()).toBe(2)
  })

  it('is given up after some refusals in a row, with the time', async () => {
    const { node } = limitTo(0)
    await expect(node.ask(THREE, { maxRefusedRounds: 2, maxWaitMs: 60_000 })).rejects.toMatchObject({
      kind: 'RATE_LIMITED',
      retryAfterMs: 4_000,
    })
    expect(bodies.length).toBe(3)
  })

  it.each([
    ['seconds', '7'],
    ['a date', new Date(7_000).toUTCString()],
  ])('is not waited for where it wants more time than there is, reported in %s', async (_, header) => {
    const { limits } = limitTo(0)
    respond = (_body, response) =>
      void response.writeHead(429, { 'retry-after': header, date: new Date(0).toUTCString() }).end()
    const node = createRpcNode(url, { ...LARGE_READS, waitsForSlots: true }, limits)
    await expect(node.ask(THREE, { maxWaitMs: 6_000 })).rejects.toMatchObject({ retryAfterMs: 7_000 })
    expect(bodies.length).toBe(1)
    await expect(node.ask(THREE, { maxWaitMs: 6_000 })).rejects.toMatchObject({ retryAfterMs: 7_000 })
    expect(bodies.length).toBe(1)
  })
})

it.each<[string, unknown]>([
  [
    'words',
    { jsonrpc: '2.0', id: 1, error: { code: 402, message: 'Payment Required', details: 'daily credit limit' } },
  ],
  ['a page', '<html>402</html>'],
])('a node whose quota is used up, reported by status 402 with %s, is left alone for a while', async (_, body) => {
  respond = (_body, response) => send(response, body, 402)
  const limits = createNodeLimits([], { clock: () => 0 }).of(url)
  const node = createRpcNode(url, { ...LARGE_READS, waitsForSlots: true }, limits)
  for (const calls of [THREE, callsOf('eth_getLogs')]) {
    await expect(node.ask(calls)).rejects.toMatchObject({ kind: 'RATE_LIMITED', retryAfterMs: 900_000 })
  }
  expect([bodies.length, limits.rate()]).toEqual([1, undefined])
})

describe('a batch that is too large for a node', () => {
  const BATCH_TOO_LARGE = { code: -32600, message: 'batch too large' }
  const tooMany = (most: number) => ({ code: 31, message: `Batch of more than ${most} requests are not allowed` })
  const toLarge = (most: number, refuse: (batch: JsonCall[], response: ServerResponse) => void) =>
    toBatches((batch, response) =>
      batch.length > most ? refuse(batch, response) : send(response, batch.map(answerTo)),
    )
  const sizesUntilLearned: [string, (most: number) => typeof respond, number][] = [
    [
      'said for each call, with the number',
      (most) =>
        toLarge(most, (batch, response) =>
          send(
            response,
            batch.map(({ id }) => ({ id, error: tooMany(most) })),
          ),
        ),
      3,
    ],
    [
      'said once in a list',
      (most) => toLarge(most, (_, response) => send(response, [{ id: 0, error: BATCH_TOO_LARGE }])),
      5,
    ],
    [
      'by status 500 with JSON',
      (most) => toLarge(most, (_, response) => send(response, { jsonrpc: '2.0', error: { code: 1 } }, 500)),
      3,
    ],
  ]

  it.each(sizesUntilLearned)('is cut, and the size is kept: %s', async (_, refuseAbove, most) => {
    respond = refuseAbove(most)
    const names = Array.from({ length: 40 }, (_each, n) => `call${n}`)
    const node = createRpcNode(url, LARGE_READS)
    for (let slot = 0; slot < 3; slot++) expect(await node.ask(callsOf(...names))).toEqual(resultsOf(...names))
    bodies = []
    await node.ask(callsOf(...names))
    expect(Math.max(...sizes())).toBeLessThanOrEqual(most)
  })

  it('is read where ids come back as strings', async () => {
    respond = toBatches((batch, response) =>
      send(
        response,
        batch.map((call) => ({ ...answerTo(call), id: String(call.id) })),
      ),
    )
    expect(await ask(LARGE_READS)).toEqual(resultsOf('one', 'two', 'three'))
  })
})

it('counts a single call once that is refused by its status', async () => {
  respond = (_, response) => send(response, '', 405)
  const limits = createNodeLimits([{ name: 'BASE', rpcUrls: [url] }])
  await expect(createRpcNode(url, SMALL_READS, limits.of(url)).ask(callsOf('one'))).rejects.toThrow('HTTP status 405')
  expect(limits.figures()).toMatchObject([{ calls: { one: { calls: 1, errors: 1 } } }])
})

describe('a revert', () => {
  const reverted = { code: 3, message: 'execution reverted: RATE_LIMITED', data: '0x' }

  it.each([200, 400, 500])('under status %i is the answer to its call, and no error of the node', async (status) => {
    respond = (body, response) => {
      const [first, ...others] = Array.isArray(body) ? body : [body]
      const answers = [{ jsonrpc: '2.0', id: first?.id, error: reverted }, ...others.map(answerTo)]
      send(response, Array.isArray(body) ? answers : answers[0], Array.isArray(body) ? 200 : status)
    }
    const limits = createNodeLimits([{ name: 'BASE', rpcUrls: [url] }])
    const node = createRpcNode(url, SMALL_READS, limits.of(url))
    const [asAnswer, asked] = [{ ok: false, error: { kind: 'REVERTED', refusal: reverted } }, callsOf('one')]
    expect(await node.ask(asked)).toMatchObject([asAnswer])
    expect(await node.ask(THREE)).toMatchObject([asAnswer, ...resultsOf('two', 'three')])
    expect(limits.figures()).toMatchObject([{ calls: { one: { calls: 2, errors: 0 } } }])
  })
})
