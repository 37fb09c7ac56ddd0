import { readdirSync, readFileSync } from 'node:fs'
import { type DescField, fromBinary, type JsonObject, ScalarType } from '@bufbuild/protobuf'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../gen/google/rpc/status_pb.js'
import { KeysService } from '../../gen/payments/v1/keys_service_pb.js'
import { OperationsService } from '../../gen/payments/v1/operations_service_pb.js'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../gen/payments/v1/routes_service_pb.js'
import { ofConnectError, ofHttpError, restRequestOf, rpcPathOf, type WireError } from '../support/clients/clients.ts'
import { type RawAnswer, type RawRequest, sendBytes, sendRequest } from '../support/clients/raw-http.ts'
import { seedPayments, type Values } from '../support/data/seed-payments.ts'
import { fillIn, fillInText } from '../support/fill-in.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { arbitraryJson, arbitraryMessage, arbitraryTarget } from './arbitrary-requests.ts'

/** A request, byte for byte, and its answer. `${name}` stands for a value of the seeds. */
interface Row {
  readonly target: string
  readonly status: number
  readonly reason?: string
  /** The field of the first violation. */
  readonly field?: string
  /** The fields of all violations. */
  readonly fields?: readonly string[]
  /** A part of the message. */
  readonly says?: string
  /** A header of the answer. */
  readonly allow?: string
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The body, as text, as bytes in base64, or as terms of a request that differ from good ones. */
  readonly text?: string
  readonly base64?: string
  readonly with?: JsonObject
  readonly without?: string
}

let running: TestService
let values: Values

beforeAll(async () => {
  running = await startTestService()
  const seeded = await seedPayments(running)
  const cursorOf = async (target: string, key: string) => {
    const { body } = await send({ target, headers: { 'x-api-key': key } })
    return (JSON.parse(body) as { pagination: { nextCursor: string } }).pagination.nextCursor
  }
  const { shop, other } = running.keys
  const next = await cursorOf('/payments?limit=2&sortBy=amount', shop)
  values = {
    ...seeded,
    'cursor.next': next,
    'cursor.tampered': `${next.slice(0, 40)}${next[40] === 'A' ? 'B' : 'A'}${next.slice(41)}`,
    'cursor.foreign': await cursorOf('/payments?limit=1', other),
    'cursor.requests': await cursorOf('/v1/request?limit=2', shop),
  }
})
afterAll(() => running?.stop())

function send(request: RawRequest): Promise<RawAnswer> {
  const { shop, operator } = running.keys
  const apiKey = /unmatched/i.test(request.target) ? operator : shop
  return sendRequest(running.port, { ...request, headers: { 'x-api-key': apiKey, ...request.headers } })
}

const folder = new URL('../cases/bad-inputs/', import.meta.url)

function rowsOf(file: string): [string, Row][] {
  const rows = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Row[]
  return rows.map((row) => [nameOf(row), row])
}

function nameOf({ target, status, reason, method = 'GET', headers, text, base64, without, with: terms }: Row): string {
  const body = text ?? base64 ?? terms ?? (without && `without ${without}`)
  const parts = [method, target, headers, body].filter((part) => part !== undefined)
  const shown = parts.map((part) => (typeof part === 'string' ? part : JSON.stringify(part))).join(' ')
  return `${status} ${reason ?? 'fine'}: ${shown.length > 120 ? `${shown.slice(0, 120)}…` : shown}`
}

const files = readdirSync(folder).filter((file) => file.endsWith('.json'))

describe.each(files)('%s', (file) => {
  it.each(rowsOf(file))('%s', async (_, row) => {
    const { target, method = 'GET', headers = {} } = row
    const body = bodyOf(row)
    const contentType = body === undefined || 'content-type' in headers ? {} : { 'content-type': 'application/json' }
    const answer = await send({
      method,
      target: fillInText(target, values),
      headers: { ...contentType, ...headers },
      ...(body !== undefined && { body }),
    })
    checkAnswer(answer, method)
    const error = answer.status >= 400 && method !== 'HEAD' ? errorOf(answer) : undefined
    expect({ status: answer.status, reason: reasonOf(error) }).toEqual({ status: row.status, reason: row.reason })
    if (row.field !== undefined) expect(firstViolation(error)).toMatchObject({ field: row.field, reason: row.reason })
    if (row.fields !== undefined) expect(fieldsOf(error)).toEqual(row.fields)
    if (row.says !== undefined) expect(error?.message).toContain(row.says)
    if (row.allow !== undefined) expect(answer.headers['allow']).toBe(row.allow)
  })
})

const goodTerms = { amount: '1', invoiceCurrency: 'USD', paymentCurrency: 'USDC', network: 'ETHEREUM' }

function bodyOf({ text, base64, method, target, ...row }: Row): string | Buffer | undefined {
  if (text !== undefined) return fillInText(text, values)
  if (base64 !== undefined) return Buffer.from(base64, 'base64')
  if (method !== 'POST' || !target.startsWith('/v1/request')) return undefined
  const terms = {
    payee: values['payee'],
    ...goodTerms,
    ...fillIn(row.with ?? {}, values),
  }
  return JSON.stringify(Object.fromEntries(Object.entries(terms).filter(([name]) => name !== row.without)))
}

function fieldsOf(error: WireError | undefined): readonly unknown[] {
  return ((error?.violations ?? []) as JsonObject[]).map(({ field }) => field)
}

function firstViolation(error: WireError | undefined): unknown {
  return (error?.violations as JsonObject[] | undefined)?.[0]
}

function reasonOf(error: WireError | undefined): unknown {
  return (error?.info as JsonObject | null | undefined)?.['reason']
}

/** Texts that no answer may hold. */
const LEAKS = /node_modules|\.ts:\d|\n\s+at |select .* from|insert into|current_database|pg_catalog|ECONN|SQLSTATE/i

function checkAnswer(answer: RawAnswer, method = 'GET'): void {
  const { status, headers, body } = answer
  // 501 is a compression that is unknown to a protocol of RPC.
  if (status !== 501) expect(status).toBeLessThan(500)
  expect(headers['x-request-id']).toMatch(/^[\w-]{1,128}$/)
  expect(body).not.toMatch(LEAKS)
  for (const secret of [...Object.values(running.keys), process.cwd(), running.chain.rpcUrl]) {
    expect(body).not.toContain(secret)
  }
  if (status < 400 || method === 'HEAD') return
  expect(headers['content-type']).toBe('application/json')
  const { code, message, info, details } = errorOf(answer)
  expect(code).toMatch(/^[a-z]+(_[a-z]+)*$/)
  expect(message).not.toBe('')
  expect(info).toEqual({
    reason: expect.stringMatching(/^[A-Z][A-Z0-9_]+$/),
    domain: 'waybill',
    metadata: expect.any(Object),
  })
  expect(details[0]).toBe('google.rpc.ErrorInfo')
}

function errorOf({ body }: RawAnswer): WireError {
  const json = JSON.parse(body) as JsonObject
  const [detail] = json['details'] as JsonObject[]
  return detail !== undefined && 'type' in detail ? ofConnectError(json) : ofHttpError(json)
}

/** A valid watch never ends; test/search/watch.test.ts and test/requests/watch-request.test.ts have the invalid ones. */
const endless = new Set(['WatchPayments', 'WatchPaymentRequest'])

const methods = [RoutesService, PaymentSearchService, RequestsService, OperationsService, KeysService]
  .flatMap(({ methods: each }) => each)
  .filter(({ name }) => !endless.has(name))

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000'

/** A valid call of each method, by method name. */
const goodRequests: Readonly<Record<string, JsonObject>> = {
  GetPaymentRoutes: { paymentReference: '${open.paymentReference}', wallet: '${payer}' },
  StreamPaymentRoutes: { paymentReference: '${open.paymentReference}', wallet: '${payer}' },
  GetPaymentOptions: { paymentReference: '${open.paymentReference}' },
  ListCurrencies: {},
  GetShop: {},
  GetPaymentCalldata: {
    paymentReference: '${open.paymentReference}',
    wallet: '${payer}',
    route: 'REQUEST_NETWORK_PAYMENT',
  },
  GetBatchCalldata: { paymentReferences: ['${open.paymentReference}'], wallet: '${payer}' },
  SearchPayments: {},
  SummarizePayments: {},
  ExportPayments: {},
  GetPayment: { id: '${native.paymentId}' },
  CreatePaymentRequest: { ...goodTerms, payee: '${payee}' },
  GetPaymentRequest: { paymentReference: '${open.paymentReference}' },
  UpdatePaymentRequest: { paymentReference: '${native.paymentReference}', title: 'One book' },
  CancelPaymentRequest: { paymentReference: '${native.paymentReference}' },
  ListPaymentRequests: {},
  SummarizePaymentRequests: {},
  CreateWatchTicket: {},
  AddRefundWallet: { address: '${wallet.funded}' },
  ListRefundWallets: {},
  RemoveRefundWallet: { address: '${wallet.empty}' },
  ListChains: {},
  ListUnmatchedEvents: {},
  CreateKey: { scopes: ['payments:read'] },
  GetOwnKey: {},
  ListKeys: {},
  RotateKey: { id: UNKNOWN_ID },
  RevokeKey: { id: UNKNOWN_ID },
  ListKeyChanges: {},
}

const goodRequestOf = (name: string) => fillIn(goodRequests[name] as JsonObject, values)

const isText = (field: DescField) => 'scalar' in field && field.scalar === ScalarType.STRING

const textFields = methods.flatMap((method) =>
  method.input.fields.filter(isText).map((field) => [`${method.name} ${field.jsonName}`, method, field] as const),
)

/** No text may hold NUL, which PostgreSQL cannot store, or a lone surrogate. */
describe.each(textFields)('every text: %s', (_, method, field) => {
  const { httpMethod } = restRequestOf(method, {})
  const MARK = 'marked-place'

  it.each([
    ['%00', /^(?!MALFORMED)/],
    ['1%00', /^(?!MALFORMED)/],
    ['%FF', /^INVALID_UTF8$/],
    ['%C3', /^INVALID_UTF8$/],
    ['%', /^MALFORMED_URL$/],
    ['', /^/],
  ])('%j is refused', async (value, reason) => {
    if (httpMethod === 'POST' || field.fieldKind === 'map') return
    // A path without its variable may be the path of another method.
    const refused = httpMethod === 'GET' ? [400, 404] : [400, 404, 405]
    const { target } = restRequestOf(method, { ...goodRequestOf(method.name), [field.jsonName]: MARK })
    if (!target.includes(MARK)) return
    const answer = await send({ method: httpMethod, target: target.replace(MARK, value) })
    checkAnswer(answer)
    expect(refused).toContain(answer.status)
    expect(reasonOf(errorOf(answer))).toMatch(reason)
  })

  // The body of a stream is enveloped; test/api/streams.test.ts has those cases.
  if (method.methodKind !== 'unary') return
  it.each(['\0', 'a\0b', '\ud800'])('%j in a JSON body is refused', async (value) => {
    const sent = { list: [value], map: { order: value } }[field.fieldKind as string] ?? value
    const request = { ...goodRequestOf(method.name), [field.jsonName]: sent }
    const { target: restTarget } = restRequestOf(method, goodRequestOf(method.name))
    const targets = httpMethod === 'POST' ? [restTarget, rpcPathOf(method)] : [rpcPathOf(method)]
    for (const target of targets) {
      const headers = { 'content-type': 'application/json' }
      const answer = await send({ method: 'POST', target, headers, body: JSON.stringify(request) })
      checkAnswer(answer)
      // No key has an id of another form.
      const mayBeMissing = method.parent === KeysService && field.jsonName === 'id' && value !== '\ud800'
      expect(mayBeMissing ? [400, 404] : [400]).toContain(answer.status)
    }
  })
})

describe('a request that is too large', () => {
  const tooLarge = { status: 431, reason: 'HEADERS_TOO_LARGE' }
  it.each<[string, RawRequest, { status: number; reason: string }]>([
    ['a query of 1 MB', { target: `/payments?reference=${'x'.repeat(1 << 20)}` }, tooLarge],
    ['a path of 1 MB', { target: `/v1/payments/${'x'.repeat(1 << 20)}` }, tooLarge],
    ['a header of 100 kB', { target: '/payments', headers: { 'x-request-id': 'x'.repeat(100_000) } }, tooLarge],
    [
      '5,000 headers',
      {
        target: '/payments',
        headers: Object.fromEntries(Array.from({ length: 5000 }, (_, n) => [`x-h-${n}`, 'value'])),
      },
      { status: 431, reason: 'HEADERS_TOO_LARGE' },
    ],
  ])('%s is refused', async (_, request, wanted) => {
    const answer = await send(request)
    checkAnswer(answer)
    expect({ status: answer.status, reason: reasonOf(errorOf(answer)) }).toEqual(wanted)
  })

  it.each(['/v1/request', '/payments.v1.PaymentSearchService/SearchPayments'])(
    'a body of 5 MB to %s',
    async (target) => {
      const headers = { 'content-type': 'application/json' }
      const body = JSON.stringify({ reference: ['x'.repeat(5 << 20)] })
      const answer = await send({ method: 'POST', target, headers, body })
      checkAnswer(answer)
      expect([answer.status, reasonOf(errorOf(answer))]).toEqual([413, 'BODY_TOO_LARGE'])
    },
  )
})

it.each([
  ['a TLS hello', Buffer.from('16030100a5010000a10303', 'hex')],
  ['no method', ' / HTTP/1.1\r\n\r\n'],
  ['an unknown version', 'GET /payments HTTP/9.9\r\n\r\n'],
  ['a header without a colon', 'GET /payments HTTP/1.1\r\nnonsense\r\n\r\n'],
  ['a body in malformed chunks', 'POST /v1/request HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'],
])('%s is answered as a malformed request', async (_, bytes) => {
  const answer = await sendBytes(running.port, bytes)
  checkAnswer(answer)
  expect([answer.status, reasonOf(errorOf(answer))]).toEqual([400, 'MALFORMED_REQUEST'])
})

/** gRPC bodies that are refused. */
const enveloped = JSON.parse(readFileSync(new URL('../grpc-messages.json', folder), 'utf8')) as {
  name: string
  hex: string
  reason: string
  /** Default: 3. */
  code?: string
}[]

/** Hand-made gRPC-Web over HTTP/1.1: flags, length, message. */
describe('a gRPC call', () => {
  const SEARCH = '/payments.v1.PaymentSearchService/SearchPayments'
  const IN_TEXT = { 'content-type': 'application/grpc-web-text' }
  it.each(enveloped.map(({ name, ...row }) => [name, row] as const))(
    'with %s is refused',
    async (_, { hex, reason, code = '3' }) => {
      const headers = { 'content-type': 'application/grpc-web+proto' }
      const answer = await send({ method: 'POST', target: SEARCH, headers, body: Buffer.from(hex, 'hex') })
      expect(answer.body).not.toMatch(LEAKS)
      expect([answer.status, statusOfTrailers(answer.body)]).toEqual([200, { code, reason }])
    },
  )

  it.each(['!!!!AAAAAAA=', 'AAAAAAA', 'AAAAAAA=!!!!', '====AAAAAAA=', 'AAAAAAA= '])(
    'in text %j is refused',
    async (body) => {
      const { body: answer } = await send({ method: 'POST', target: SEARCH, headers: IN_TEXT, body })
      const trailers = Buffer.from(answer, 'base64').toString('latin1')
      expect(statusOfTrailers(trailers)).toEqual({ code: '3', reason: 'MALFORMED_BODY' })
    },
  )

  it('with a message of 5 MB is refused with the limit of all protocols', async () => {
    const headers = { 'content-type': 'application/grpc-web' }
    const { body } = await send({ method: 'POST', target: SEARCH, headers, body: Buffer.alloc(5 << 20) })
    expect(statusOfTrailers(body)).toEqual({ code: '8', reason: 'BODY_TOO_LARGE' })
    expect(decodeURIComponent(body)).toContain('larger than 262144 bytes')
  })

  it('in base64 text of several padded pieces is answered', async () => {
    const { body } = await send({ method: 'POST', target: SEARCH, headers: IN_TEXT, body: 'AAAAAA==Aw==oAEF' })
    expect(Buffer.from(body, 'base64').toString('latin1')).toContain('grpc-status: 0')
  })

  it.each([
    [
      'application/grpc-web+proto',
      '/payments.v1.PaymentSearchService/Nope',
      { code: '12', reason: 'METHOD_NOT_FOUND' },
    ],
    ['application/grpc-web', '/nothing', { code: '12', reason: 'METHOD_NOT_FOUND' }],
  ])('as %s to %s is refused', async (contentType, target, wanted) => {
    const answer = await send({
      method: 'POST',
      target,
      headers: { 'content-type': contentType },
      body: Buffer.alloc(5),
    })
    expect([answer.status, statusOfTrailers(answer.body)]).toEqual([200, wanted])
  })

  it.each([
    'grpc-timeout: abc',
    'grpc-timeout: 123456789S',
    'grpc-timeout: -1S',
    'grpc-timeout: 1x',
    'grpc-timeout: 1',
  ])('with %s is refused', async (header) => {
    const [name = '', value = ''] = header.split(': ')
    const headers = { 'content-type': 'application/grpc-web', [name]: value }
    const { body } = await send({ method: 'POST', target: SEARCH, headers, body: Buffer.alloc(5) })
    expect(statusOfTrailers(body)).toEqual({ code: '3', reason: 'INVALID_FIELD' })
  })

  function statusOfTrailers(body: string): { code: string | undefined; reason: unknown } {
    const [, code] = /grpc-status: (\d+)/.exec(body) ?? []
    const [, details = ''] = /grpc-status-details-bin: (\S*)/.exec(body) ?? []
    const status = fromBinary(StatusSchema, Buffer.from(details, 'base64'))
    const info = status.details.map((any) => anyUnpack(any, ErrorInfoSchema)).find((each) => each !== undefined)
    return { code, reason: info?.reason }
  }
})

describe('an arbitrary request', () => {
  it('is answered in the documented form over REST', async () => {
    await fc.assert(
      fc.asyncProperty(arbitraryTarget(methods), async (target) => checkAnswer(await send({ target }))),
      { numRuns: 300 },
    )
  })

  it('is answered in the documented form as a JSON body', async () => {
    const headers = { 'content-type': 'application/json' }
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...methods), arbitraryJson(methods), async (method, fields) => {
        const body = JSON.stringify({ ...goodRequestOf(method.name), ...fields })
        checkAnswer(await send({ method: 'POST', target: rpcPathOf(method), headers, body }))
        if (method.name !== 'CreatePaymentRequest') return
        checkAnswer(await send({ method: 'POST', target: '/v1/request', headers, body }))
      }),
      { numRuns: 200 },
    )
  })

  it('is answered in the documented form as a binary message', async () => {
    const headers = { 'content-type': 'application/proto' }
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...methods), arbitraryMessage(), async (method, body) => {
        const answer = await send({ method: 'POST', target: rpcPathOf(method), headers, body })
        if (answer.status === 200) expect(answer.headers['content-type']).toBe('application/proto')
        else checkAnswer(answer)
      }),
      { numRuns: 200 },
    )
  })
})
