import { expect, test } from 'vitest'
import { checkAnswer, checkStreamMessage, type SeenAnswer } from '../support/described/check-answer.ts'

const page = {
  payments: [],
  pagination: { limit: 20, hasMore: false },
  asOf: [{ network: 'BASE', block: '7' }],
  removed: [],
}

function answer(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): SeenAnswer {
  const all: Record<string, string> = { 'x-request-id': 'a', 'content-type': 'application/json', ...headers }
  return { status, header: (name) => all[name] ?? null, headerNames: Object.keys(all), text: JSON.stringify(body) }
}

function refusal(reason: string): unknown {
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason, domain: 'waybill', metadata: {} }
  return { code: 'invalid_argument', message: 'no', details: [info] }
}

test('an answer that the description allows passes, and so does one that it does not know of', () => {
  checkAnswer({ method: 'GET', target: '/payments?limit=20' }, answer(200, page))
  checkAnswer({ method: 'GET', target: '/v1/payments/a' }, answer(404, refusal('PAYMENT_NOT_FOUND')))
  checkAnswer({ method: 'GET', target: '/v2/anything' }, answer(418, {}))
  expect(() =>
    checkStreamMessage('/v1/payments:watch', { type: 'HEARTBEAT', watchCursor: 'c', at: '2026-03-01T12:00:00Z' }),
  ).not.toThrow()
})

test.each([
  ['a field that is not described', answer(200, { ...page, extra: 1 }), /additional properties/],
  ['a field that is always there and is absent', answer(200, { ...page, payments: undefined }), /'payments'/],
  ['a field within a list', answer(200, { ...page, asOf: [{ network: 'BASE', block: 7 }] }), /block must be string/],
  ['null for unknown', answer(200, { ...page, watchCursor: null }), /watchCursor must be string/],
  ['a status', answer(201, page), /no such status/],
  ['a content type', answer(200, page, { 'content-type': 'text/html' }), /content type is text\/html/],
  ['a missing header', { ...answer(200, page), header: () => null }, /x-request-id is missing/],
  ['a header that is not described', answer(200, page, { 'x-more': '1' }), /x-more is not described/],
  ['a reason of another operation', answer(400, refusal('INVALID_SALT')), /INVALID_SALT is not among/],
])('%s is reported', (_, seen, fault) => {
  expect(() => checkAnswer({ method: 'GET', target: '/payments' }, seen)).toThrow(fault)
})

test.each([
  ['2026-03-01T12:00:00Z', true],
  ['2026-03-01T12:00:00.123Z', true],
  ['2026-03-01T12:00:00+01:00', false],
  ['2026-03-01', false],
])('the time %s in a message passes: %s', (at, passes) => {
  const check = () => checkStreamMessage('/v1/payments:watch', { type: 'HEARTBEAT', watchCursor: 'c', at })
  if (passes) expect(check).not.toThrow()
  else expect(check).toThrow(/date-time/)
})
