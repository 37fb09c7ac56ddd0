import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { waybillError } from '../../src/errors/waybill-error.ts'
import {
  authenticateGood,
  type EchoRequest,
  loadEchoService,
  recordingLogger,
  serveEcho,
} from '../support/clients/echo-service.ts'
import {
  createProtocolClients,
  findMethod,
  type Outcome,
  type ProtocolClient,
} from '../support/clients/protocol-clients.ts'

const service = loadEchoService()
const store = findMethod(service, 'store')
const { lines, logger } = recordingLogger()
const key = { 'x-api-key': 'good' }

let listener: Listener
let clients: readonly ProtocolClient[]
let answerWith: (request: EchoRequest) => unknown
let handled = 0
let authenticated = 0

beforeAll(async () => {
  const handle = async (request: EchoRequest) => {
    handled += 1
    return answerWith(request)
  }
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [serveEcho(service, { echo: handle, store: handle, wait: handle, count: handle })],
    authenticate: (credentials, scope, report) => {
      authenticated += 1
      return authenticateGood(credentials, scope, report)
    },
    logger,
    ready: async () => true,
    classify: (error) => (error instanceof RangeError ? 'DATABASE_TIMEOUT' : undefined),
  })
  clients = createProtocolClients(listener.url, { store: '/v1/echo' })
})

afterAll(async () => {
  for (const client of clients) client.close()
  await listener.stop({ graceMs: 1000 })
})

beforeEach(() => {
  lines.length = 0
  handled = 0
  authenticated = 0
  answerWith = ({ name, limit, colors }) => ({ name, limit, colors })
})

async function callAll(request: object, headers: Readonly<Record<string, string>> = key): Promise<Outcome> {
  const outcomes: [string, Outcome][] = []
  for (const client of clients) outcomes.push([client.protocol, await client.call(store, request, { headers })])
  const [[, first] = []] = outcomes
  expect(Object.fromEntries(outcomes)).toEqual(Object.fromEntries(outcomes.map(([protocol]) => [protocol, first])))
  if (first === undefined) throw new Error('nobody called')
  return first
}

describe('all protocols give the same answer', () => {
  it.each([
    [
      'zeros and empty lists',
      {},
      { name: 'a', colors: [], price_impact: 0, large: '0', done: false, confirmations: 0, filler: '' },
    ],
    [
      'values of every kind',
      {
        limit: 0,
        colors: [1, 2],
        priceImpact: -0.000015,
        large: 9_007_199_254_740_993n,
        done: true,
        at: { seconds: 1_700_000_000n, nanos: 5_000_000 },
        inner: { text: 'é\u{1F600}' },
        filler: 'a"b\\c\n',
      },
      {
        name: 'a',
        limit: 0,
        colors: ['RED', 'BLUE'],
        price_impact: -0.000015,
        large: '9007199254740993',
        done: true,
        at: '2023-11-14T22:13:20.005Z',
        inner: { text: 'é\u{1F600}', color: 'COLOR_UNSPECIFIED' },
        confirmations: 0,
        filler: 'a"b\\c\n',
      },
    ],
  ])('%s', async (_name, extra, expected) => {
    answerWith = ({ name }) => ({ name, ...extra })
    expect(await callAll({ name: 'a' })).toEqual({ answer: expected })
  })

  it('a page that is large enough to be compressed', async () => {
    answerWith = () => ({ filler: 'x'.repeat(100_000) })
    expect(await callAll({ name: 'a' })).toMatchObject({ answer: { filler: 'x'.repeat(100_000) } })
  })

  it('an answer smaller than a frame, as large as one, and larger', async () => {
    for (const length of [16_383, 16_384, 16_385, 70_000]) {
      answerWith = () => ({ filler: 'y'.repeat(length) })
      expect(await callAll({ name: 'a' })).toMatchObject({ answer: { filler: 'y'.repeat(length) } })
    }
  })
})

describe('all protocols give the same error', () => {
  const violation = (field: string, reason: string) => ({ field, reason, description: expect.any(String) })

  it.each([
    ['without a key', { name: 'a' }, {}, 'unauthenticated', 'MISSING_API_KEY', []],
    ['with a wrong key', { name: 'a' }, { 'x-api-key': 'bad' }, 'unauthenticated', 'INVALID_API_KEY', []],
    ['with a wrong key and a wrong request', {}, { 'x-api-key': 'bad' }, 'unauthenticated', 'INVALID_API_KEY', []],
    ['a missing field', {}, key, 'invalid_argument', 'MISSING_FIELD', [violation('name', 'MISSING_FIELD')]],
    [
      'a long value',
      { name: 'a'.repeat(17) },
      key,
      'invalid_argument',
      'VALUE_TOO_LONG',
      [violation('name', 'VALUE_TOO_LONG')],
    ],
    [
      'a long value inside',
      { name: 'a', inners: [{}, { text: '123456789' }] },
      key,
      'invalid_argument',
      'VALUE_TOO_LONG',
      [violation('inners[1].text', 'VALUE_TOO_LONG')],
    ],
    [
      'too many values',
      { name: 'a', colors: [1, 1, 1, 1] },
      key,
      'invalid_argument',
      'TOO_MANY_VALUES',
      [violation('colors', 'TOO_MANY_VALUES')],
    ],
    [
      'a negative limit',
      { name: 'a', limit: -1 },
      key,
      'invalid_argument',
      'INVALID_LIMIT',
      [violation('limit', 'INVALID_LIMIT')],
    ],
    [
      'the zero of an enum',
      { name: 'a', colors: [0] },
      key,
      'invalid_argument',
      'UNKNOWN_ENUM_VALUE',
      [violation('colors[0]', 'UNKNOWN_ENUM_VALUE')],
    ],
    [
      'an undefined enum number',
      { name: 'a', colors: [1, 99] },
      key,
      'invalid_argument',
      'UNKNOWN_ENUM_VALUE',
      [violation('colors[1]', 'UNKNOWN_ENUM_VALUE')],
    ],
    [
      'an undefined enum number inside',
      { name: 'a', inner: { color: 7 } },
      key,
      'invalid_argument',
      'UNKNOWN_ENUM_VALUE',
      [violation('inner.color', 'UNKNOWN_ENUM_VALUE')],
    ],
    [
      'a broken pattern',
      { name: 'a', code: 'A1' },
      key,
      'invalid_argument',
      'INVALID_FIELD',
      [violation('code', 'INVALID_FIELD')],
    ],
    [
      'several at once',
      { limit: -5, code: '?' },
      key,
      'invalid_argument',
      'MISSING_FIELD',
      [violation('name', 'MISSING_FIELD'), violation('limit', 'INVALID_LIMIT'), violation('code', 'INVALID_FIELD')],
    ],
  ])('%s', async (_name, request, headers, code, reason, violations) => {
    expect(await callAll(request, headers as Record<string, string>)).toEqual({
      code,
      reason,
      violations,
      message: expect.stringMatching(/./),
      metadata: expect.any(Object),
    })
    expect(handled).toBe(0)
  })

  it('a WaybillError of a handler, with its metadata', async () => {
    answerWith = () => {
      throw waybillError('REQUEST_TERMS_DIFFER', { value: 'ü1', detail: '100 % "other"' })
    }
    expect(await callAll({ name: 'a' })).toEqual({
      code: 'already_exists',
      message:
        'the request ü1 is stored with other terms: 100 % "other"; terms never change: send the stored ones, or another requestId',
      reason: 'REQUEST_TERMS_DIFFER',
      metadata: { value: 'ü1', detail: '100 % "other"' },
      violations: [],
    })
  })

  it('an unknown error, without its cause, which is logged', async () => {
    answerWith = () => {
      throw new Error('password=hunter2')
    }
    const outcome = await callAll({ name: 'a' })
    expect(outcome).toMatchObject({ code: 'internal', reason: 'INTERNAL', metadata: {}, violations: [] })
    expect(JSON.stringify(outcome)).not.toContain('hunter2')
    for (const { level, fields } of lines) {
      expect(level).toBe('error')
      expect(fields.err).toMatchObject({ message: 'password=hunter2', stack: expect.any(String) })
    }
  })

  it('an error of the database', async () => {
    answerWith = () => {
      throw new RangeError('canceling statement due to statement timeout')
    }
    expect(await callAll({ name: 'a' })).toMatchObject({ code: 'deadline_exceeded', reason: 'DATABASE_TIMEOUT' })
  })
})

describe('the interceptors run exactly once a call', () => {
  it('for every protocol, and log one line with the account and without the key', async () => {
    await callAll({ name: 'a' })
    expect({ handled, authenticated }).toEqual({ handled: clients.length, authenticated: clients.length })
    expect(lines.map(({ fields }) => fields.protocol)).toEqual(['rest', 'connect', 'connect', 'grpc-web', 'grpc'])
    for (const { level, message, fields } of lines) {
      expect({ level, message, fields }).toEqual({
        level: 'info',
        message: 'call',
        fields: {
          requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
          method: 'tests.v1.EchoService/Store',
          protocol: expect.any(String),
          code: 'ok',
          durationMs: expect.any(Number),
          account: 'acme',
          key: 'good',
          client: '127.0.0.1',
          status: 200,
        },
      })
    }
  })

  it('and log one line with the reason if the call fails', async () => {
    await callAll({})
    expect(lines).toHaveLength(clients.length)
    for (const { level, fields } of lines) {
      expect(level).toBe('info')
      expect(fields).toMatchObject({ code: 'invalid_argument', reason: 'MISSING_FIELD', account: 'acme' })
    }
  })

  it('and log the request id of the caller, if it is well-formed', async () => {
    await callAll({ name: 'a' }, { ...key, 'x-request-id': 'trace-1/2' })
    expect(lines.map(({ fields }) => fields.requestId)).toEqual(clients.map(() => 'trace-1/2'))
  })

  it('and replace a malformed request id', async () => {
    await callAll({ name: 'a' }, { ...key, 'x-request-id': 'a b' })
    for (const { fields } of lines) expect(fields.requestId).toMatch(/^[0-9a-f-]{36}$/)
  })
})
