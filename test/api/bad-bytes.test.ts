import { once } from 'node:events'
import { type ClientHttp2Session, connect } from 'node:http2'
import { gzipSync } from 'node:zlib'
import { fromBinary, type Message } from '@bufbuild/protobuf'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import { codeToString } from '@connectrpc/connect/protocol-connect'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ErrorInfoSchema } from '../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../gen/google/rpc/status_pb.js'
import type { Listener } from '../../src/api/listener/listener.ts'
import { serveApi } from '../../src/api/serve-api.ts'
import { authenticateGood, loadTestService, recordingLogger, serveEcho } from '../support/clients/echo-service.ts'

/*
 * The same mistake in the bytes of a request has the same reason in every kind of call over every protocol, on the wire as in the log.
 * A row is a mistake, a cell a kind of call in a form.
 */

const MAX_BYTES = 200_000
const service = loadTestService('tests.v1.StreamService')
const { lines, logger } = recordingLogger()
let listener: Listener
let session: ClientHttp2Session

beforeAll(async () => {
  listener = await serveApi({
    host: '127.0.0.1',
    port: 0,
    services: [
      serveEcho(service, {
        echo: async () => ({}),
        sum: async (requests) => readAll(requests),
        async *count() {},
        async *chat(requests) {
          yield await readAll(requests)
        },
      }),
    ],
    authenticate: authenticateGood,
    logger,
    ready: async () => true,
    limits: { maxBodyBytes: MAX_BYTES, maxStreamMessageBytes: MAX_BYTES },
  })
  session = connect(listener.url)
})
afterAll(async () => {
  session.destroy()
  await listener.stop({ graceMs: 0 })
})

async function readAll(requests: unknown): Promise<object> {
  for await (const _ of requests as AsyncIterable<Message>);
  return {}
}

interface Form {
  readonly name: string
  readonly protocol: 'rest' | 'connect' | 'grpc' | 'grpc-web'
  readonly contentType: { readonly unary: string; readonly stream: string }
  readonly isJson: boolean
}

const oneType = (type: string) => ({ unary: type, stream: type })
const forms: readonly Form[] = [
  { name: 'gRPC', protocol: 'grpc', contentType: oneType('application/grpc'), isJson: false },
  { name: 'gRPC in JSON', protocol: 'grpc', contentType: oneType('application/grpc+json'), isJson: true },
  { name: 'gRPC-Web', protocol: 'grpc-web', contentType: oneType('application/grpc-web'), isJson: false },
  { name: 'gRPC-Web in text', protocol: 'grpc-web', contentType: oneType('application/grpc-web-text'), isJson: false },
  {
    name: 'Connect',
    protocol: 'connect',
    contentType: { unary: 'application/proto', stream: 'application/connect+proto' },
    isJson: false,
  },
  {
    name: 'Connect in JSON',
    protocol: 'connect',
    contentType: { unary: 'application/json', stream: 'application/connect+json' },
    isJson: true,
  },
  { name: 'REST', protocol: 'rest', contentType: oneType('application/json'), isJson: true },
]

const kinds = ['Echo', 'Count', 'Sum', 'Chat'] as const

interface Cell {
  readonly form: Form
  readonly kind: (typeof kinds)[number]
  readonly isEnveloped: boolean
}

/** REST has a route for one of the methods only. */
const cells: readonly Cell[] = forms.flatMap((form) =>
  kinds
    .filter((kind) => form.protocol !== 'rest' || kind === 'Count')
    .map((kind) => {
      const isEnveloped = form.protocol !== 'rest' && (form.protocol !== 'connect' || kind !== 'Echo')
      return { form, kind, isEnveloped }
    }),
)

interface Row {
  readonly reason: string
  /** `invalid_argument` by default. */
  readonly code?: string
  /** The code in REST, if it differs. */
  readonly codeOfRest?: string
  /** The message; absent for a format in which the mistake cannot be made. */
  readonly binary?: Uint8Array
  readonly json?: string | Uint8Array
  /** The flags of its envelope, or the whole body. Both only for cells with envelopes. */
  readonly flags?: number
  readonly body?: Uint8Array
  /** The compression that the call states. */
  readonly encoding?: string
}

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const compressed = gzipSync(Buffer.alloc(MAX_BYTES + 1, 32))

/** A field of wire type 2. */
function field(number: number, value: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([(number << 3) | 2]), varint(value.length), value])
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  for (let left = value; ; left = Math.floor(left / 128)) {
    bytes.push(left < 128 ? left : (left % 128) + 128)
    if (left < 128) return Buffer.from(bytes)
  }
}

function deep(levels: number): Buffer {
  return levels === 0 ? Buffer.alloc(0) : field(5, deep(levels - 1))
}

const rows: Readonly<Record<string, Row>> = {
  malformed: { reason: 'MALFORMED_BODY', binary: hex('ff ff ff'), json: '{]' },
  'cut off': { reason: 'MALFORMED_BODY', binary: hex('0a 05 61'), json: '{"text":"a' },
  'of another type': { reason: 'INVALID_FIELD', binary: hex('08 05'), json: '{"text":5}' },
  'of another type, deep within': {
    reason: 'INVALID_FIELD',
    binary: field(5, hex('12 01 61')),
    json: '{"inner":{"number":"a"}}',
  },
  'with a field of number 0': { reason: 'MALFORMED_BODY', binary: hex('02 01 61') },
  'with a field that extends beyond its message': { reason: 'MALFORMED_BODY', binary: hex('2a 02 10 80 01') },
  'not in UTF-8': {
    reason: 'INVALID_UTF8',
    binary: hex('0a 01 ff'),
    json: Buffer.from('{"text":"\xff"}', 'latin1'),
  },
  'with an unknown field': { reason: 'UNKNOWN_FIELD', binary: hex('98 06 01'), json: '{"txet":"a"}' },
  'with an unknown enum value': { reason: 'UNKNOWN_ENUM_VALUE', binary: hex('18 63'), json: '{"kind":"PLANE"}' },
  'that breaks a rule': {
    reason: 'VALUE_TOO_LONG',
    binary: field(1, Buffer.alloc(17, 'a')),
    json: JSON.stringify({ text: 'a'.repeat(17) }),
  },
  'too deep': {
    reason: 'BODY_TOO_COMPLEX',
    binary: deep(101),
    json: `${'{"inner":'.repeat(101)}{}${'}'.repeat(101)}`,
  },
  'of 60,000 values': {
    reason: 'BODY_TOO_COMPLEX',
    binary: field(4, Buffer.alloc(60_000)),
    json: `{"numbers":[${'0,'.repeat(59_999)}0]}`,
  },
  'in an unknown compression': {
    reason: 'UNSUPPORTED_CONTENT_ENCODING',
    code: 'unimplemented',
    codeOfRest: 'invalid_argument',
    binary: hex('0a 01 61'),
    json: '{"text":"a"}',
    encoding: 'foo',
  },
  'that is not in the compression that it states': {
    reason: 'MALFORMED_BODY',
    binary: hex('0a 01 61'),
    json: '{"text":"a"}',
    flags: 1,
    encoding: 'gzip',
  },
  'that is cut off within its compression': {
    reason: 'MALFORMED_BODY',
    binary: gzipSync(hex('0a 01 61')).subarray(0, 12),
    json: gzipSync('{"text":"a"}').subarray(0, 12),
    flags: 1,
    encoding: 'gzip',
  },
  'that is compressed without a stated compression': {
    reason: 'UNSTATED_COMPRESSION',
    code: 'internal',
    body: hex('01 00000001 61'),
  },
  'that is compressed where the stated compression is none': {
    reason: 'UNSTATED_COMPRESSION',
    code: 'internal',
    body: hex('01 00000001 61'),
    encoding: 'Identity',
  },
  'too large': {
    reason: 'BODY_TOO_LARGE',
    code: 'resource_exhausted',
    binary: Buffer.alloc(MAX_BYTES + 1),
    json: Buffer.alloc(MAX_BYTES + 1, 32),
  },
  'too large once it is decompressed': {
    reason: 'BODY_TOO_LARGE',
    code: 'resource_exhausted',
    binary: compressed,
    json: compressed,
    flags: 1,
    encoding: 'gzip',
  },
  'that ends within its envelope': { reason: 'MALFORMED_BODY', body: hex('00 00000005 61') },
  'that ends within the prefix of its envelope': { reason: 'MALFORMED_BODY', body: hex('00 0000') },
  'in an envelope of unknown flags': { reason: 'MALFORMED_BODY', body: hex('04 00000001 61') },
}

function envelope(message: Uint8Array, flags = 0): Buffer {
  const prefix = Buffer.from([flags, 0, 0, 0, 0])
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

/** The body of a row in a cell; undefined where the mistake cannot be made. */
function bodyOf(row: Row, { form, isEnveloped }: Cell): Buffer | undefined {
  if (row.body !== undefined) return isEnveloped ? Buffer.from(row.body) : undefined
  const message = form.isJson ? row.json : row.binary
  if (message === undefined) return undefined
  return isEnveloped ? envelope(Buffer.from(message), row.flags) : Buffer.from(message)
}

const encodingHeaders = {
  rest: 'content-encoding',
  grpc: 'grpc-encoding',
  'grpc-web': 'grpc-encoding',
} as const

interface Sent {
  readonly headers: Record<string, unknown>
  readonly trailers: Record<string, unknown>
  readonly body: Buffer
}

async function post(cell: Cell, body: Buffer, encoding: string | undefined): Promise<Sent> {
  const { form, kind, isEnveloped } = cell
  const ofConnect = isEnveloped ? 'connect-content-encoding' : 'content-encoding'
  const encodingHeader = form.protocol === 'connect' ? ofConnect : encodingHeaders[form.protocol]
  const stream = session.request({
    ':method': 'POST',
    ':path': form.protocol === 'rest' ? '/v1/count' : `/tests.v1.StreamService/${kind}`,
    'x-api-key': 'good',
    'content-type': form.contentType[kind === 'Echo' ? 'unary' : 'stream'],
    te: 'trailers',
    ...(encoding !== undefined && { [encodingHeader]: encoding }),
  })
  let trailers: Record<string, unknown> = {}
  const chunks: Buffer[] = []
  stream.on('trailers', (received: Record<string, unknown>) => {
    trailers = received
  })
  stream.on('data', (chunk: Buffer) => chunks.push(chunk))
  const isText = form.contentType.unary.endsWith('-text')
  stream.end(isText ? body.toString('base64') : body)
  const closed = once(stream, 'close')
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  await closed
  const received = Buffer.concat(chunks)
  return { headers, trailers, body: isText ? Buffer.from(received.toString(), 'base64') : received }
}

interface Outcome {
  readonly code: string
  readonly reason: string | undefined
}

function outcomeOf({ form, isEnveloped }: Cell, { headers, trailers, body }: Sent): Outcome {
  if (form.protocol === 'grpc') return fromTrailers({ ...headers, ...trailers })
  if (form.protocol === 'grpc-web') return fromTrailers(trailersOf(body))
  // A stream of Connect ends with an envelope that holds the error.
  const json = JSON.parse((isEnveloped ? body.subarray(5) : body).toString()) as object
  const { code, details } = ('error' in json ? json.error : json) as ErrorBody
  return { code, reason: details[0]?.debug?.reason ?? details[0]?.reason }
}

interface ErrorBody {
  readonly code: string
  readonly details: readonly { readonly reason?: string; readonly debug?: { readonly reason: string } }[]
}

function trailersOf(body: Buffer): Record<string, unknown> {
  const lines = body.subarray(5).toString().trim().split('\r\n')
  return Object.fromEntries(lines.map((line) => line.split(': ', 2)))
}

function fromTrailers(fields: Record<string, unknown>): Outcome {
  const bytes = Buffer.from(String(fields['grpc-status-details-bin']), 'base64')
  const [detail] = fromBinary(StatusSchema, bytes).details
  const info = detail && anyUnpack(detail, ErrorInfoSchema)
  return { code: codeToString(Number(fields['grpc-status'])), reason: info?.reason }
}

it.each(Object.entries(rows))('a message %s has one reason', async (_name, row) => {
  const { reason, code = 'invalid_argument', codeOfRest = code } = row
  let count = 0
  for (const cell of cells) {
    const body = bodyOf(row, cell)
    if (body === undefined) continue
    const name = `${cell.kind} over ${cell.form.name}`
    lines.length = 0
    const wire = outcomeOf(cell, await post(cell, body, row.encoding))
    const expected = { code: cell.form.protocol === 'rest' ? codeOfRest : code, reason }
    const logged = lines.map(({ level, fields }) => ({ level, code: fields.code, reason: fields.reason }))
    expect({ name, wire, logged }).toEqual({ name, wire: expected, logged: [{ level: 'info', ...expected }] })
    count += 1
  }
  expect(count).toBeGreaterThanOrEqual(15)
})

it('a message after others has the same reason as the first', async () => {
  const row: Row = { reason: 'UNKNOWN_FIELD', binary: hex('98 06 01'), json: '{"txet":"a"}' }
  for (const cell of cells.filter(
    ({ kind, form }) => form.protocol !== 'rest' && (kind === 'Sum' || kind === 'Chat'),
  )) {
    const good = envelope(cell.form.isJson ? Buffer.from('{"text":"a"}') : hex('0a 01 61'))
    const bad = bodyOf(row, cell) ?? Buffer.alloc(0)
    const outcome = outcomeOf(cell, await post(cell, Buffer.concat([good, good, bad]), undefined))
    expect({ cell, outcome }).toEqual({ cell, outcome: { code: 'invalid_argument', reason: row.reason } })
  }
})

it.each([
  ['application/grpc', 'grpc-accept-encoding', 'identity,gzip,br'],
  ['application/connect+proto', 'connect-accept-encoding', 'gzip,br'],
])('%s with an unknown compression is answered with those that are served', async (type, header, value) => {
  const cell = cells.find(({ form, kind }) => kind === 'Chat' && form.contentType.stream === type) as Cell
  const { headers } = await post(cell, envelope(Buffer.alloc(0)), 'foo')
  expect(headers[header]).toBe(value)
})
