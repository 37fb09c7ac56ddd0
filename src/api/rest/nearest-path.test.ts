import { expect, test } from 'vitest'
import { parseTemplate } from '../../transcoding/paths/template-parser.ts'
import { findNearestPath } from './nearest-path.ts'

const templates = [
  '/payments',
  '/v1/payments',
  '/v1/payments/{id}',
  '/v1/payments:summarize',
  '/v1/request/{reference}',
  '/v1/request/{reference}/routes',
  '/v1/request/{reference}/routes:stream',
  '/v1/files/**',
].map(parseTemplate)

test.each([
  ['/payments/', '/payments'],
  ['//payments', '/payments'],
  ['/payment', '/payments'],
  ['/PAYMENTS', '/payments'],
  ['/payments%20', '/payments'],
  ['/v2/payments', '/v1/payments'],
  ['/v1//payments', '/v1/payments'],
  ['/v1/payment/7', '/v1/payments/7'],
  ['/request/0x0123456789abcdef/routes', '/v1/request/0x0123456789abcdef/routes'],
  ['/v1/request/0123456789abcdef/route', '/v1/request/0123456789abcdef/routes'],
  ['/v1/request/0123456789abcdef/routes/', '/v1/request/0123456789abcdef/routes'],
  ['/v1/request/0123456789abcdef/routes/x', '/v1/request/0123456789abcdef/routes'],
  ['/v1/payments:sumarise', '/v1/payments:summarize'],
  ['/payments:Summarize/', '/v1/payments:summarize'],
  ['/v1/payments%3Asummarize', '/v1/payments:summarize'],
  ['/v1/payments:', '/v1/payments'],
  ['/v1/request/0123456789abcdef/route:streams', '/v1/request/0123456789abcdef/routes:stream'],
  ['/api/v1/payments', '/v1/payments'],
  ['/v1/requests/0123456789abcdef', '/v1/request/0123456789abcdef'],
  ['/v1/requests:summarize', undefined],
  ['/v1/request:summarize', undefined],
  ['/payments/search', undefined],
  ['/v1/payments/export/csv', undefined],
  ['/v1/routes', undefined],
  ['/v1/refunds/7', undefined],
  ['/v1/0123456789abcdef/routes', undefined],
  ['/v1/request/0123456789abcdef:cancle', undefined],
  ['/', undefined],
  ['/nothing', undefined],
  ['/a/b/c/d/e/f', undefined],
  ['/__proto__', undefined],
  [`/${'x'.repeat(100_000)}`, undefined],
  ['/x'.repeat(100_000), undefined],
])('%.40s means %s', (path, expected) => {
  expect(findNearestPath(path, templates)).toBe(expected)
})

const others = ['/healthz', '/readyz', '/tests.v1.EchoService/Echo', '/tests.v1.EchoService/Wait'].map(parseTemplate)

test.each([
  ['/health', '/healthz'],
  ['/healthz/', '/healthz'],
  ['/ready', '/readyz'],
  ['/tests.v1.EchoService/echo', '/tests.v1.EchoService/Echo'],
  ['/tests.v1.EhcoService/Wait', '/tests.v1.EchoService/Wait'],
  ['/tests.v1.EchoService/Nothing', undefined],
  ['/tests.v1.EchoService', '/tests.v1.EchoService/Echo'],
  ['/tests.v2.PaymentService/Echo', undefined],
  ['/status', undefined],
  ['/', undefined],
])('%s means %s among paths without variables', (path, expected) => {
  expect(findNearestPath(path, others)).toBe(expected)
})
