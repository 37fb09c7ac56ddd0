import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import {
  type DescField,
  type DescMethod,
  fromBinary,
  type JsonObject,
  type JsonValue,
  ScalarType,
} from '@bufbuild/protobuf'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BadRequestSchema } from '../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../gen/google/rpc/status_pb.js'
import { KeysService } from '../../gen/payments/v1/keys_service_pb.js'
import { OperationsService } from '../../gen/payments/v1/operations_service_pb.js'
import { PaymentSearchService } from '../../gen/payments/v1/payment_search_service_pb.js'
import { RequestsService } from '../../gen/payments/v1/requests_service_pb.js'
import { RoutesService } from '../../gen/payments/v1/routes_service_pb.js'
import { WebhooksService } from '../../gen/payments/v1/webhooks_service_pb.js'
import { rpcPathOf } from '../support/clients/clients.ts'
import { seedPayments } from '../support/data/seed-payments.ts'
import { startTestService, type TestService } from '../support/service.ts'

/** What proxies take of headers or trailers: nginx by default, with names. */
const MAX_BYTES = 4_096

let running: TestService
let session: ClientHttp2Session

beforeAll(async () => {
  running = await startTestService()
  await seedPayments(running)
  session = connect(running.url)
})

afterAll(async () => {
  session.close()
  await running.stop()
})

interface Ending {
  /** Of the largest block of headers or trailers, as HPACK counts them. */
  readonly bytes: number
  readonly status: string
  readonly violations: readonly { readonly field: string; readonly description: string }[]
}

async function callGrpc(method: DescMethod, request: JsonObject): Promise<Ending> {
  const message = Buffer.from(JSON.stringify(request))
  const prefix = Buffer.alloc(5)
  prefix.writeUInt32BE(message.length, 1)
  const stream = session.request({
    ':method': 'POST',
    ':path': rpcPathOf(method),
    'content-type': 'application/grpc+json',
    'x-api-key': method.parent === OperationsService ? running.keys.operator : running.keys.shop,
    'x-request-id': 'x'.repeat(128),
    // Ends a stream that has nothing to refuse.
    'grpc-timeout': '300m',
    te: 'trailers',
  })
  const blocks: Record<string, unknown>[] = []
  stream.on('trailers', (fields) => blocks.push(fields))
  stream.end(Buffer.concat([prefix, message]))
  const [head] = (await once(stream, 'response')) as [Record<string, unknown>]
  blocks.unshift(head)
  if (blocks.every((fields) => fields['grpc-status'] === undefined)) stream.resume()
  if (head['grpc-status'] === undefined) await once(stream, 'end')
  stream.close()
  const all = Object.assign({}, ...blocks) as Record<string, string>
  const packed = fromBinary(StatusSchema, Buffer.from(all['grpc-status-details-bin'] ?? '', 'base64'))
  const violations = packed.details.flatMap((each) => anyUnpack(each, BadRequestSchema)?.fieldViolations ?? [])
  return { bytes: Math.max(...blocks.map(sizeOf)), status: String(all['grpc-status']), violations }
}

function sizeOf(fields: Readonly<Record<string, unknown>>): number {
  return Object.entries(fields).reduce((sum, [name, value]) => sum + name.length + String(value).length + 32, 0)
}

describe('a search with unknown names', () => {
  it.each([1, 8, 16, 20, 100])('%i of 64 letters: lists what fits, and counts the others', async (count) => {
    const network = Array.from({ length: count }, (_, at) => `${at}`.padEnd(64, 'x'))
    const { bytes, status, violations } = await callGrpc(PaymentSearchService.method.searchPayments, { network })
    expect(status).toBe('3')
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES)
    const listed = violations.filter(({ field }) => field !== '')
    const counted = /^and (\d+) more/.exec(violations.at(-1)?.description ?? '')?.[1] ?? '0'
    // After 16 errors of a list the rest is not checked.
    expect(listed.length + Number(counted)).toBe(Math.min(count, 16))
    expect(listed.length).toBeGreaterThanOrEqual(Math.min(count, 5))
    if (count > 16) expect(violations.at(-1)?.description).toContain('the rest was not checked')
  })
})

/** Long values that are wrong everywhere: percent signs and base64 make most of the last. */
const worst = [
  ['letters', 'x'.repeat(64)],
  ['percent signs', '%'.repeat(100)],
  ['ideographs', '网'.repeat(64)],
  ['emoji', '😀'.repeat(40)],
  ['commas', 'a, b, c, '.repeat(12)],
] as const

function wrongValue(field: DescField, text: string, count: number): JsonValue | undefined {
  if (field.fieldKind === 'list') {
    if (field.listKind !== 'scalar' || field.scalar !== ScalarType.STRING) return undefined
    return Array.from({ length: count }, (_, at) => `${at}${text}`)
  }
  return field.fieldKind === 'scalar' && field.scalar === ScalarType.STRING ? text : undefined
}

const methods = [
  PaymentSearchService,
  RequestsService,
  RoutesService,
  OperationsService,
  WebhooksService,
  KeysService,
].flatMap((service) => service.methods)

describe.each(methods.map((method) => [method.name, method] as const))('%s', (_name, method) => {
  it.each(worst)('an error of %s everywhere fits', async (_kind, text) => {
    for (const count of [1, 16, 100]) {
      const fields = method.input.fields.map((field) => [field.jsonName, wrongValue(field, text, count)] as const)
      const request = Object.fromEntries(fields.filter(([, value]) => value !== undefined)) as JsonObject
      const unknown = Object.fromEntries(Array.from({ length: count }, (_, at) => [`${at}${text}`, 1]))
      const each = count === 100 ? Object.entries(request).map(([name, value]) => ({ [name]: value })) : []
      const endings = await Promise.all([request, unknown, ...each].map((asked) => callGrpc(method, asked)))
      for (const { bytes } of endings) expect(bytes).toBeLessThanOrEqual(MAX_BYTES)
      if (Object.keys(request).length > 0) expect(endings[0]?.status).not.toBe('0')
      expect(endings[1]?.status).toBe('3')
    }
  })
})
