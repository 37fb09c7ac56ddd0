import { create, fromBinary } from '@bufbuild/protobuf'
import { anyUnpack } from '@bufbuild/protobuf/wkt'
import { Code, ConnectError } from '@connectrpc/connect'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { BadRequestSchema, ErrorInfoSchema } from '../../../gen/google/rpc/error_details_pb.js'
import { StatusSchema } from '../../../gen/google/rpc/status_pb.js'
import { type Reason, reasons } from '../../errors/reasons.ts'
import { type FieldViolation, waybillError } from '../../errors/waybill-error.ts'
import {
  connectErrorJson,
  encodeGrpcMessage,
  grpcErrorTrailers,
  httpErrorBody,
  MAX_ERROR_BYTES,
  sendAlong,
  toWaybillError,
  wireFormOf,
  wireFormOfError,
} from './error-mapping.ts'

describe('wireFormOf', () => {
  it.each([
    ['MISSING_FIELD', Code.InvalidArgument, 400],
    ['MISSING_API_KEY', Code.Unauthenticated, 401],
    ['MISSING_SCOPE', Code.PermissionDenied, 403],
    ['ROUTE_NOT_FOUND', Code.NotFound, 404],
    ['METHOD_NOT_FOUND', Code.Unimplemented, 404],
    ['METHOD_NOT_ALLOWED', Code.Unimplemented, 405],
    ['NOT_ACCEPTABLE', Code.InvalidArgument, 406],
    ['REQUEST_TOO_SLOW', Code.DeadlineExceeded, 408],
    ['REQUEST_TERMS_DIFFER', Code.AlreadyExists, 409],
    ['BODY_TOO_LARGE', Code.ResourceExhausted, 413],
    ['UNSUPPORTED_CONTENT_TYPE', Code.InvalidArgument, 415],
    ['UNSUPPORTED_CONTENT_ENCODING', Code.InvalidArgument, 415],
    ['RATE_LIMITED', Code.ResourceExhausted, 429],
    ['HEADERS_TOO_LARGE', Code.InvalidArgument, 431],
    ['CALL_CANCELLED', Code.Canceled, 499],
    ['INTERNAL', Code.Internal, 500],
    ['DATABASE_UNAVAILABLE', Code.Unavailable, 503],
    ['DATABASE_TIMEOUT', Code.DeadlineExceeded, 504],
  ] as const)('%s is %s and %s', (reason, code, httpStatus) => {
    expect(wireFormOf(reason, 'rest')).toEqual({ code, httpStatus })
  })

  it.each([
    ['UNSUPPORTED_CONTENT_ENCODING', Code.Unimplemented],
    ['UNSTATED_COMPRESSION', Code.Internal],
    ['BODY_TOO_LARGE', Code.ResourceExhausted],
  ] as const)('%s is %s on every RPC protocol', (reason, code) => {
    for (const protocol of ['connect', 'grpc', 'grpc-web'] as const) {
      expect(wireFormOf(reason, protocol)).toMatchObject({ code })
    }
  })

  it('knows every reason that can be an error, as an error', () => {
    const errors = Object.entries(reasons).filter(([, { in: appears }]) =>
      (appears as readonly string[]).includes('error'),
    )
    const withoutStatus = errors.filter(([reason]) => wireFormOf(reason as Reason, 'rest').httpStatus < 400)
    expect(withoutStatus).toEqual([])
    expect(errors.length).toBeGreaterThan(40)
  })
})

it('an error over HTTP has its code, message and typed details', () => {
  const error = waybillError('RATE_LIMITED', { limit: 300, retryAfterSeconds: 1.2 })
  expect(JSON.parse(httpErrorBody(error))).toEqual({
    code: 'resource_exhausted',
    message: 'the limit of 300 calls a minute is reached; wait 1.2 seconds',
    details: [
      {
        '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
        reason: 'RATE_LIMITED',
        domain: 'waybill',
        metadata: { limit: '300', retryAfterSeconds: '1.2' },
      },
      { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' },
    ],
  })
})

describe('toWaybillError', () => {
  const classify = (error: unknown) => (error === 'down' ? ('DATABASE_UNAVAILABLE' as const) : undefined)

  it.each([
    ['an error of the table', waybillError('MISSING_API_KEY', {}), 'MISSING_API_KEY'],
    ['a failure of the database', 'down', 'DATABASE_UNAVAILABLE'],
    ['a plain error', new Error('x'), 'INTERNAL'],
    ['a value that is not an error', undefined, 'INTERNAL'],
  ])('%s', (_name, thrown, reason) => {
    expect(toWaybillError(thrown, classify)).toMatchObject({ reason })
  })

  it('keeps the code of a ConnectError', () => {
    const error = toWaybillError(new ConnectError('x', Code.Aborted), classify)
    expect(wireFormOfError(error, 'grpc')).toEqual({ code: Code.Aborted, httpStatus: 409 })
  })

  it('keeps the cause for the log', () => {
    const cause = new Error('x')
    expect(toWaybillError(cause, classify).cause).toBe(cause)
  })
})

it.each([
  ['a; b, c: d?', 'a; b, c: d?'],
  ['100 %', '100 %25'],
  ['ü\n', '%C3%BC%0A'],
  ['\u{1F600}', '%F0%9F%98%80'],
  ['\ud800', '%EF%BF%BD'],
])('grpc-message escapes %j as %j', (message, escaped) => {
  expect(encodeGrpcMessage(message)).toBe(escaped)
})

describe('an error in the trailers of gRPC', () => {
  /** As HPACK counts: names, values, and 32 bytes a field. */
  function sizeOf(trailers: Readonly<Record<string, string>>): number {
    return Object.entries(trailers).reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0)
  }

  function unpack(trailers: Readonly<Record<string, string>>) {
    const status = fromBinary(StatusSchema, Buffer.from(trailers['grpc-status-details-bin'] ?? '', 'base64'))
    const [info, bad] = status.details
    return {
      message: status.message,
      info: info && anyUnpack(info, ErrorInfoSchema),
      violations: (bad && anyUnpack(bad, BadRequestSchema)?.fieldViolations) ?? [],
    }
  }

  const letters = fc.constantFrom('x', '%', 'ü', '中', '\u{1F600}', 'a, ', '\u0007', 'wb_')
  const value = fc.tuple(letters, fc.integer({ min: 0, max: 4_000 })).map(([text, count]) => text.repeat(count))
  const names = fc
    .array(
      value.map((text) => text.slice(0, 64)),
      { maxLength: 100 },
    )
    .map((all) => all.join(', '))
  const errorReasons = (Object.keys(reasons) as Reason[]).filter((reason) => reasons[reason].in.includes('error'))
  const parametersOf = (reason: Reason) =>
    [...`${reasons[reason].message} ${reasons[reason].remedy}`.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
  const violation: fc.Arbitrary<FieldViolation> = fc.record({
    field: value.map((text) => text.slice(0, 120)),
    reason: fc.constantFrom(...errorReasons),
    description: fc.oneof(value, names),
  })

  it('fits, whatever the reason and its values, and counts what is left out', () => {
    let shortened = 0
    fc.assert(
      fc.property(
        fc.constantFrom(...errorReasons),
        fc.infiniteStream(fc.oneof(value, names)),
        fc.option(fc.array(violation, { maxLength: 100, size: 'max' }), { nil: undefined }),
        fc.record({ count: fc.nat(1_000), isRestUnchecked: fc.boolean() }),
        (reason, values, violations, unlisted) => {
          const parameters = Object.fromEntries(
            parametersOf(reason).map((name) => [name, values.next().value as string]),
          )
          const error = waybillError(reason, parameters as never, violations && { violations, unlisted })
          const trailers = grpcErrorTrailers(error)
          expect(sizeOf(trailers)).toBeLessThanOrEqual(MAX_ERROR_BYTES)
          const reported = unpack(trailers)
          expect(reported.info).toMatchObject({ reason, domain: 'waybill' })
          expect(decodeURIComponent(trailers['grpc-message'] ?? '')).toBe(reported.message)
          const last = reported.violations.at(-1)
          const counted = last?.field === '' ? Number(/^and (\d+) more/.exec(last.description)?.[1] ?? 0) : 0
          const listed = reported.violations.filter(
            (each) => each !== last || last.field !== '' || !/^and |^the rest/.test(last.description),
          )
          expect(listed.length + counted).toBe(error.violations.length + error.unlisted.count)
          if (error.violations.length > 0) expect(listed.length).toBeGreaterThan(0)
          if (error.unlisted.isRestUnchecked) expect(last?.description).toContain('the rest was not checked')
          if (listed.length < error.violations.length) shortened++
        },
      ),
      { numRuns: 500 },
    )
    expect(shortened).toBeGreaterThan(50)
  })

  it('keeps all that fits', () => {
    const error = waybillError('UNKNOWN_NETWORK', { field: 'network', value: 'nope', suggestion: 'use one of: BASE' })
    expect(unpack(grpcErrorTrailers(error))).toMatchObject({
      message: error.message,
      info: { metadata: error.metadata },
      violations: [{ field: 'network', reason: 'UNKNOWN_NETWORK', description: error.message }],
    })
  })

  it('cuts the values of a long error, and keeps what to do', () => {
    const suggestion = `use one of: ${Array.from({ length: 40 }, (_, at) => `中文网络名称${at}`).join(', ')}`
    const error = waybillError('UNKNOWN_NETWORK', { field: 'network', value: '网'.repeat(120), suggestion })
    const { message } = unpack(grpcErrorTrailers(error))
    expect(message).toMatch(/^network: unknown network "网+…"; use one of: 中文网络名称0, .* and \d+ more$/)
  })

  it('of a handler from elsewhere leaves out the details that do not fit', () => {
    const info = (length: number) => ({ desc: ErrorInfoSchema, value: { reason: 'X'.repeat(length), domain: 'd' } })
    const thrown = new ConnectError('é'.repeat(5_000), Code.Aborted, undefined, [info(10), info(5_000)])
    const trailers = grpcErrorTrailers(toWaybillError(thrown, () => undefined))
    expect(sizeOf(trailers)).toBeLessThanOrEqual(MAX_ERROR_BYTES)
    expect(unpack(trailers).info?.reason).toBe('X'.repeat(10))
  })

  it('sends along the longest form of a message that fits', () => {
    const detail = (length: number) => ({
      desc: ErrorInfoSchema,
      message: create(ErrorInfoSchema, { reason: 'X'.repeat(length) }),
    })
    const sentOf = (...lengths: readonly number[]) => {
      const error = sendAlong(waybillError('INTERNAL', {}), ...lengths.map(detail))
      const trailers = grpcErrorTrailers(error)
      expect(sizeOf(trailers)).toBeLessThanOrEqual(MAX_ERROR_BYTES)
      const { details } = fromBinary(StatusSchema, Buffer.from(trailers['grpc-status-details-bin'] ?? '', 'base64'))
      return details.slice(1).map((each) => anyUnpack(each, ErrorInfoSchema)?.reason.length)
    }
    expect(sentOf(1_000)).toEqual([1_000])
    expect(sentOf(5_000, 2_000, 10)).toEqual([2_000])
    expect(sentOf(5_000, 4_000)).toEqual([])
  })

  it('says the same over the other protocols', () => {
    const violations = Array.from({ length: 16 }, (_, at) => ({
      field: `network[${at}]`,
      reason: 'UNKNOWN_NETWORK' as const,
      description: 'x'.repeat(500),
    }))
    const error = waybillError('UNKNOWN_NETWORK', { field: 'network', value: 'x', suggestion: 'y' }, { violations })
    const overGrpc = unpack(grpcErrorTrailers(error)).violations.map(({ description }) => description)
    const rest = JSON.parse(httpErrorBody(error)) as { details: { fieldViolations?: { description: string }[] }[] }
    expect(rest.details[1]?.fieldViolations?.map(({ description }) => description)).toEqual(overGrpc)
    const connect = connectErrorJson(error) as never as {
      details: { debug: { fieldViolations?: { description: string }[] } }[]
    }
    expect(connect.details[1]?.debug.fieldViolations?.map(({ description }) => description)).toEqual(overGrpc)
  })
})
