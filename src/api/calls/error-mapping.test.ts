import { Code, ConnectError } from '@connectrpc/connect'
import { describe, expect, it } from 'vitest'
import { type Reason, reasons } from '../../errors/reasons.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { encodeGrpcMessage, httpErrorBody, toWaybillError, wireFormOf, wireFormOfError } from './error-mapping.ts'

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
