import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import type { JsonObject, JsonValue } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import { createClient } from '@connectrpc/connect'
import { createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { Health, HealthCheckResponse_ServingStatus } from '../../gen/grpc/health/v1/health_pb.js'
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.js'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { type ApiOptions, serveApi } from '../../src/api/serve-api.ts'
import { methodNamed, type Outcome, openWays, rpcPathOf, type Way, type Ways } from '../support/clients/clients.ts'
import { sendRequest } from '../support/clients/raw-http.ts'
import { seedPayments, type Values } from '../support/data/seed-payments.ts'
import { fillIn } from '../support/fill-in.ts'
import { PATIENCE } from '../support/patience.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { startPlainConnect } from './plain-connect-server.ts'

// Unchanged; the test reads which services it is given.
vi.mock(import('../../src/api/serve-api.ts'), { spy: true })

/** A call and its result, the same over every protocol. `${name}` stands for a value of the seeds. */
interface Case {
  readonly name: string
  readonly method: string
  readonly request: JsonObject
  /** The owner of the key. Default: `shop`. */
  readonly key?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Fields that the answer must hold; its lists must have the same length. */
  readonly answer?: JsonObject
  /** Paths of fields that must be absent. */
  readonly absent?: readonly string[]
  readonly error?: {
    readonly http: number
    readonly code: string
    readonly reason: string
    readonly message: string
    readonly fields: readonly string[]
    readonly newQuote?: JsonObject
  }
}

const folder = new URL('../cases/protocols/', import.meta.url)

function readCases(file: string): readonly Case[] {
  return JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Case[]
}

let running: TestService
let values: Values
let ways: Ways
/** What the service was started with. */
let served: ApiOptions

beforeAll(async () => {
  running = await startTestService()
  served = vi.mocked(serveApi).mock.calls[0]![0]
  ways = openWays(running.url)
  values = await seedPayments(running)
  values = { ...values, ...(await walkToCursors()) }
})
afterAll(async () => {
  ways?.close()
  await running?.stop()
})

/** Cursors, taken from answers. */
async function walkToCursors(): Promise<Values> {
  const cursorOf = async (method: string, request: JsonObject, key = 'shop') => {
    const { answer } = await ask(ways.named('REST'), { method, request, key })
    const { pagination } = answer as { pagination: { nextCursor: string } }
    return pagination.nextCursor
  }
  const next = await cursorOf('SearchPayments', { limit: 2, sortBy: 'AMOUNT', currency: ['USDC-ETHEREUM'] })
  return {
    'cursor.next': next,
    'cursor.tampered': `${next.slice(0, 40)}${next[40] === 'A' ? 'B' : 'A'}${next.slice(41)}`,
    'cursor.foreign': await cursorOf('SearchPayments', { limit: 1 }, 'other'),
    'cursor.requests': await cursorOf('ListPaymentRequests', { limit: 2 }),
    'cursor.unmatched': await cursorOf('ListUnmatchedEvents', { limit: 1 }, 'operator'),
    'cursor.unmatched.reason': await cursorOf(
      'ListUnmatchedEvents',
      { limit: 1, reason: ['RATE_OFF', 'WRONG_PAYEE'] },
      'operator',
    ),
  }
}

const otherKeys: Readonly<Record<string, string>> = {
  empty: '',
  unknown: `wb_${'x'.repeat(40)}`,
  malformed: 'Bearer me',
  demo: 'demo',
}

type Asked = Pick<Case, 'method' | 'request' | 'key' | 'headers'> &
  Partial<Pick<Parameters<Way['ask']>[0], 'unknownFields' | 'signal'>>

function ask(way: Way, { method, request, key = 'shop', headers = {}, ...rest }: Asked): Promise<Outcome> {
  const apiKey = key === 'none' ? undefined : (otherKeys[key] ?? running.keys[key as keyof TestService['keys']])
  return way.ask({
    ...rest,
    method: methodNamed(method),
    request: fillIn(request, values),
    headers: { ...headers, ...(apiKey !== undefined && { 'x-api-key': apiKey }), 'x-request-id': requestIdOver(way) },
  })
}

function requestIdOver({ name }: Way): string {
  return `over-${name.replaceAll(' ', '-')}`
}

/** Methods that write, and so are not called by GET. */
const writing: ReadonlySet<string> = new Set(['CreatePaymentRequest', 'CancelPaymentRequest'])

/** The ways that a method can be called. */
function waysOf(method: string, from: Ways = ways): readonly Way[] {
  const { idempotency } = methodNamed(method)
  const canBeGet = idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS
  return from.all.filter(({ readsOnly }) => !readsOnly || canBeGet)
}

describe.each(readdirSync(folder).filter((file) => file.endsWith('.json')))('%s', (file) => {
  it.each(readCases(file).map((each) => [each.name, each] as const))('%s', async (_, wanted) => {
    const first = await ask(ways.named('REST'), wanted)
    if (wanted.error === undefined) checkAnswer(first, wanted)
    else checkError(first, wanted.error)
    for (const way of waysOf(wanted.method)) {
      const outcome = await ask(way, wanted)
      checkSame(way, outcome, first)
    }
  })
})

function checkAnswer({ answer, error, httpStatus }: Outcome, wanted: Case): void {
  expect(error).toBeUndefined()
  expect(httpStatus).toBe(200)
  expect(answer).toMatchObject(fillIn(wanted.answer ?? {}, values))
  for (const path of wanted.absent ?? []) {
    const { parent, name } = parentOf(answer ?? null, path)
    expect(Object.hasOwn(parent, name) ? path : 'absent').toBe('absent')
  }
}

function checkError({ error, httpStatus }: Outcome, { newQuote, ...wanted }: NonNullable<Case['error']>): void {
  const violations = (error?.violations ?? []) as { field: string }[]
  const { reason, domain } = (error?.info ?? {}) as { reason?: string; domain?: string }
  const { code, message } = error ?? {}
  const fields = violations.map(({ field }) => field)
  expect({ http: httpStatus, code, reason, message, fields }).toEqual(fillIn(wanted, values))
  expect(domain).toBe('waybill')
  expect({ newQuote: error?.route }).toMatchObject({ newQuote: newQuote ?? null })
}

/** Compares a protocol with REST: every field, every detail, and nothing empty for an unknown value. */
function checkSame(way: Way, outcome: Outcome, first: Outcome): void {
  const { answer, error, httpStatus = first.httpStatus, requestId, isRaw } = outcome
  const empty = isRaw && answer !== undefined ? emptyPlacesOf(answer) : []
  expect({ way: way.name, answer, error, httpStatus, requestId, empty }).toEqual({
    way: way.name,
    answer: first.answer,
    error: first.error,
    httpStatus: first.httpStatus,
    requestId: requestIdOver(way),
    empty: [],
  })
}

function parentOf(json: JsonValue, path: string): { parent: object; name: string } {
  const names = path.split('.')
  const name = names.pop() ?? ''
  const parent = names.reduce<unknown>((at, each) => (at as Record<string, unknown>)[each], json)
  if (typeof parent !== 'object' || parent === null) throw new Error(`there is nothing at ${path}`)
  return { parent, name }
}

/** The paths of all nulls and empty texts: unknown values must be absent. */
function emptyPlacesOf(json: JsonValue, path = '$'): string[] {
  if (json === null || json === '') return [path]
  if (typeof json !== 'object') return []
  return Object.entries(json).flatMap(([name, value]) => emptyPlacesOf(value, `${path}.${name}`))
}

describe('the handlers on connect-node alone', () => {
  const connectWays = ['Connect JSON', 'gRPC-Web']
  let plain: Awaited<ReturnType<typeof startPlainConnect>>
  let plainWays: Ways
  beforeAll(async () => {
    plain = await startPlainConnect(served.services, served.authenticate)
    plainWays = openWays(plain.url)
  })
  afterAll(() => {
    plainWays.close()
    plain.stop()
  })

  const answered = readdirSync(folder)
    .filter((file) => file.endsWith('.json'))
    .flatMap((file) => readCases(file))
    .filter(({ answer }) => answer !== undefined)

  it.each(answered.map((each) => [each.name, each] as const))('%s', async (_, wanted) => {
    const first = await ask(ways.named('REST'), wanted)
    for (const name of connectWays) {
      const { answer, error } = await ask(plainWays.named(name), wanted)
      expect({ name, answer, error }).toEqual({ name, answer: first.answer, error: undefined })
    }
  })

  it('stream the same messages', async () => {
    const exports = [running.url, plain.url].map(async (baseUrl) => {
      const client = createClient(PaymentSearchService, createGrpcWebTransport({ baseUrl, httpVersion: '1.1' }))
      const headers = { 'x-api-key': running.keys.shop }
      const messages: unknown[] = []
      for await (const message of client.exportPayments({}, { headers })) messages.push(message)
      return messages
    })
    const [own, ofConnect] = await Promise.all(exports)
    expect(own?.length).toBeGreaterThan(0)
    expect(ofConnect).toEqual(own)
  })
})

it('a compressed answer is the same over every protocol', async () => {
  const asked = { method: 'SearchPayments', request: { includeTotal: 'EXACT' } }
  const plain = await ask(ways.named('REST'), asked)
  const { url } = await running.listen({ compressMinBytes: 1 })
  const { headers } = await fetch(`${url}/payments`, { headers: { 'x-api-key': running.keys.shop } })
  expect(headers.get('content-encoding')).toBe('gzip')
  const compressing = openWays(url)
  for (const way of compressing.all) checkSame(way, await ask(way, asked), plain)
  compressing.close()
})

/** A valid call of each method. */
const calls: readonly (readonly [method: string, request: JsonObject])[] = [
  ['GetPaymentRoutes', { paymentReference: '${open.paymentReference}', wallet: '${wallet.funded}' }],
  ['SearchPayments', {}],
  ['GetPayment', { id: '${native.paymentId}' }],
  ['SummarizePayments', {}],
  [
    'CreatePaymentRequest',
    { payee: '${payee}', amount: '1', invoiceCurrency: 'USD', paymentCurrency: 'USDC', network: 'ETHEREUM' },
  ],
  ['GetPaymentRequest', { paymentReference: '${open.paymentReference}' }],
  ['CancelPaymentRequest', { paymentReference: '${native.paymentReference}' }],
  ['ListPaymentRequests', {}],
  ['SummarizePaymentRequests', {}],
]

describe.each(calls)('a field that the definition of %s does not have', (method, request) => {
  const reasonAndCode = ({ error }: Outcome) => [error?.code, (error?.info as JsonObject | null)?.['reason']]

  it('is refused by its number', async () => {
    const unknownFields = [{ no: 99, wireType: 0, data: Uint8Array.of(1) }]
    const { typeName } = methodNamed(method).input
    for (const name of ['Connect binary', 'Connect GET binary', 'gRPC-Web', 'gRPC of connect', 'gRPC']) {
      const way = ways.named(name)
      if (way.readsOnly && writing.has(method)) continue
      const { error } = await ask(way, { method, request, unknownFields })
      const message = `the message has an unknown field: number 99 of ${typeName}; remove it, or generate the client again from the current definitions`
      expect({ name, ...error }).toMatchObject({
        name,
        code: 'invalid_argument',
        message,
        info: { reason: 'UNKNOWN_FIELD' },
        violations: [{ field: '99', reason: 'UNKNOWN_FIELD', description: message }],
      })
    }
  })

  it('is refused by its JSON name', async () => {
    const outcome = await ask(ways.named('Connect JSON without a client'), {
      method,
      request: { ...request, __proto: 1 },
    })
    expect([outcome.httpStatus, ...reasonAndCode(outcome)]).toEqual([400, 'invalid_argument', 'UNKNOWN_FIELD'])
    expect(outcome.error?.violations).toMatchObject([{ field: '__proto', reason: 'UNKNOWN_FIELD' }])
  })

  it('is refused as a query parameter, or in the body if there is one', async () => {
    const outcome = await ask(ways.named('REST'), { method, request: { ...request, __proto: '1' } })
    const reason = writing.has(method) ? 'UNKNOWN_FIELD' : 'UNKNOWN_PARAMETER'
    expect([outcome.httpStatus, ...reasonAndCode(outcome)]).toEqual([400, 'invalid_argument', reason])
    expect(outcome.error?.violations).toMatchObject([{ field: '__proto', reason }])
  })
})

describe('calls that the database keeps waiting', () => {
  /** No call waits for its slot. */
  const allAtOnce = { maxSearches: 20, maxSearchesPerKey: 20, maxSummaries: 20, maxSummariesPerKey: 20 }

  /** While it runs, every call waits for its tables. */
  async function whileLocked(body: () => Promise<void>): Promise<void> {
    await running.database.knex.transaction(async (trx) => {
      await trx.raw('lock table payments, requests in access exclusive mode')
      await body()
    })
  }

  const waiting = async () => {
    const { rows } = await running.database.knex.raw<{ rows: unknown[] }>(
      `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
    return rows.length
  }

  it.each(calls)('%s ends at the deadline of the service, the same over every protocol', async (method, request) => {
    const hasty = openWays((await running.listen({ maxCallMs: 100, ...allAtOnce })).url)
    await whileLocked(async () => {
      const outcomes = await Promise.all(
        waysOf(method, hasty).map(async (way) => [way, await ask(way, { method, request })] as const),
      )
      const [, first] = outcomes[0] ?? []
      if (first === undefined) throw new Error('nothing was asked')
      checkError(first, {
        http: 504,
        code: 'deadline_exceeded',
        reason: 'DEADLINE_EXCEEDED',
        message: 'the call took longer than 100 ms; allow more time, or ask for less',
        fields: [],
      })
      for (const [way, outcome] of outcomes) checkSame(way, outcome, first)
      await vi.waitFor(async () => expect(await waiting()).toBe(0), PATIENCE)
    })
    hasty.close()
  })

  it.each([
    ['Connect JSON without a client', 'connect-timeout-ms', '50'],
    ['Connect GET binary', 'connect-timeout-ms', '50'],
    ['gRPC-Web', 'grpc-timeout', '50m'],
    ['gRPC of connect', 'grpc-timeout', '50000u'],
    ['gRPC', 'grpc-timeout', '50m'],
  ])('end at the deadline that a caller names over %s', async (name, header, timeout) => {
    await whileLocked(async () => {
      const request = { limit: 1 }
      const outcome = await ask(ways.named(name), { method: 'SearchPayments', request, headers: { [header]: timeout } })
      expect(outcome.error).toMatchObject({
        code: 'deadline_exceeded',
        message: 'the call took longer than 50 ms; allow more time, or ask for less',
        info: { reason: 'DEADLINE_EXCEEDED' },
      })
      await vi.waitFor(async () => expect(await waiting()).toBe(0), PATIENCE)
    })
  })

  it('end when the caller hangs up, over every protocol, and the statement with them', async () => {
    for (const way of waysOf('SearchPayments')) {
      await whileLocked(async () => {
        const caller = new AbortController()
        const asked = ask(way, { method: 'SearchPayments', request: { limit: 1 }, signal: caller.signal })
        const settled = asked.then(
          ({ error }) => error?.code,
          (thrown: Error) => thrown.name,
        )
        await vi.waitFor(async () => expect(await waiting()).toBe(1), PATIENCE)
        const logged = running.logs.records.length
        caller.abort()
        expect([way.name, await settled]).toEqual([way.name, expect.stringMatching(/^(?:canceled|AbortError)$/)])
        await vi.waitFor(async () => expect(await waiting()).toBe(0), PATIENCE)
        await vi.waitFor(() => {
          const line = running.logs.records.slice(logged).find(({ message }) => message === 'call')
          expect(line?.fields).toMatchObject({ requestId: requestIdOver(way), reason: 'CALL_CANCELLED' })
        }, PATIENCE)
      })
    }
  })
})

describe('health and reflection', () => {
  const transport = () => createGrpcTransport({ baseUrl: running.url })

  it.each([
    '',
    'payments.v1.RoutesService',
    'payments.v1.PaymentSearchService',
    'payments.v1.RequestsService',
    'payments.v1.OperationsService',
  ])('the service "%s" is serving, without a key', async (service) => {
    const health = createClient(Health, transport())
    expect((await health.check({ service })).status).toBe(HealthCheckResponse_ServingStatus.SERVING)
    for await (const { status } of health.watch({ service })) {
      expect(status).toBe(HealthCheckResponse_ServingStatus.SERVING)
      break
    }
  })

  it('an unknown service is NOT_FOUND', async () => {
    const health = createClient(Health, transport())
    await expect(health.check({ service: 'payments.v1.Nobody' })).rejects.toThrow(/not_found/)
  })

  it.each(['/healthz', '/readyz'])('%s answers without a key', async (target) => {
    const { status, body } = await sendRequest(running.port, { target })
    expect([status, body]).toEqual([200, '{"status":"ok"}'])
  })

  it('reflection names every service and gives their files', async () => {
    const requests = [
      { messageRequest: { case: 'listServices', value: '' } },
      { messageRequest: { case: 'fileContainingSymbol', value: 'payments.v1.RoutesService' } },
    ] as const
    const seen: string[] = []
    async function* ask() {
      yield* requests
    }
    for await (const { messageResponse } of createClient(ServerReflection, transport()).serverReflectionInfo(ask())) {
      if (messageResponse.case === 'listServicesResponse') {
        seen.push(...messageResponse.value.service.map(({ name }) => name))
      } else seen.push(String(messageResponse.case))
    }
    expect(seen).toEqual(expect.arrayContaining(SERVED))
    expect(seen.at(-1)).toBe('fileDescriptorResponse')
  })

  const SERVED = [
    'grpc.health.v1.Health',
    'payments.v1.OperationsService',
    'payments.v1.PaymentSearchService',
    'payments.v1.RequestsService',
    'payments.v1.RoutesService',
  ]
  const buf = async (...parameters: string[]) => {
    const { stdout } = await promisify(execFile)('buf', ['curl', '--http2-prior-knowledge', ...parameters])
    return stdout
  }

  it('buf curl lists the services', async () => {
    const listed = (await buf('--list-services', running.url)).trim().split('\n')
    expect(listed).toEqual(expect.arrayContaining(SERVED))
  })

  it.each(['grpc', 'grpcweb', 'connect'])('buf curl calls through reflection over %s', async (protocol) => {
    const request = fillIn({ paymentReference: '${partial.paymentReference}' }, values)
    const method = methodNamed('GetPaymentRequest')
    const how = ['--protocol', protocol, '--header', `x-api-key: ${running.keys.shop}`]
    const printed = await buf(...how, '--data', JSON.stringify(request), running.url + rpcPathOf(method))
    const { answer } = await ask(ways.named('REST'), { method: method.name, request })
    // buf leaves out empty fields.
    expect({ warnings: [], metadata: {}, allowedPayers: [], ...JSON.parse(printed) }).toEqual(answer)
  })
})
