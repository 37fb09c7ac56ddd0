/** What is the same for all operations: headers, parameters in headers, and how callers identify themselves. */
import type { DescMethod } from '@bufbuild/protobuf'
import type { Components, Header, Parameter } from './openapi-document.ts'

export const headers = {
  RequestId: {
    description: 'Id of this call: the one that was sent, else a new one. Name it when you report a problem.',
    required: true,
    schema: { type: 'string' },
  },
  RateLimitPolicy: {
    description: 'Limit of the key: `q` calls in `w` seconds. Absent for a key without limit.',
    schema: { type: 'string', examples: ['"key";q=300;w=60'] },
  },
  RateLimit: {
    description: 'What is left of it: `r` calls for `t` more seconds.',
    schema: { type: 'string', examples: ['"key";r=291;t=42'] },
  },
  RateLimitLimit: {
    description: 'Calls a minute.',
    schema: { type: 'integer', examples: [300] },
  },
  RateLimitRemaining: {
    description: 'Calls that are left in this minute.',
    schema: { type: 'integer', examples: [291] },
  },
  RateLimitReset: {
    description: 'Seconds until the minute ends.',
    schema: { type: 'integer', examples: [42] },
  },
  Demo: { description: 'Present in the demo only.', schema: { type: 'string', const: 'true' } },
  ETag: {
    description: 'Changes with the answer. Send it as `if-none-match`.',
    schema: { type: 'string', examples: ['W/"2jmj7l5rSw0yVb_vlWAYkK_YBwk"'] },
  },
  RetryAfter: { description: 'Seconds to wait before the next call.', schema: { type: 'integer', examples: [12] } },
  Authenticate: { description: 'How to identify yourself.', schema: { type: 'string' } },
  Disposition: {
    description: 'A name for the file.',
    schema: { type: 'string', examples: ['attachment; filename="payments.csv"'] },
  },
  AcceptEncoding: { description: 'Compressions of requests that are served.', schema: { type: 'string' } },
} as const satisfies Record<string, Header>

export type HeaderName = keyof typeof headers

/** The names of headers on the wire, by the names of their descriptions. */
export const headerFields: Readonly<Record<HeaderName, string>> = {
  RequestId: 'x-request-id',
  RateLimitPolicy: 'ratelimit-policy',
  RateLimit: 'ratelimit',
  RateLimitLimit: 'x-ratelimit-limit',
  RateLimitRemaining: 'x-ratelimit-remaining',
  RateLimitReset: 'x-ratelimit-reset',
  Demo: 'x-waybill-demo',
  ETag: 'etag',
  RetryAfter: 'retry-after',
  Authenticate: 'www-authenticate',
  Disposition: 'content-disposition',
  AcceptEncoding: 'accept-encoding',
}

/** The headers of every answer to a caller. */
export const everyAnswer: readonly HeaderName[] = [
  'RequestId',
  'RateLimitPolicy',
  'RateLimit',
  'RateLimitLimit',
  'RateLimitRemaining',
  'RateLimitReset',
  'Demo',
]

export const parameters = {
  Account: {
    name: 'x-account',
    in: 'header',
    description: 'The account for which a platform key calls (MISSING_ACCOUNT). Other keys leave it out.',
    schema: { type: 'string', examples: ['acme'] },
  },
  RequestId: {
    name: 'x-request-id',
    in: 'header',
    description: 'Your id of this call, for logs: 1 to 128 of `A-Z a-z 0-9 _ . : / + = @ -`. Another one is replaced.',
    schema: { type: 'string' },
  },
  IfNoneMatch: {
    name: 'if-none-match',
    in: 'header',
    description: 'The `etag` of an earlier answer: 304 without a body if nothing has changed.',
    schema: { type: 'string' },
  },
  IdempotencyKey: {
    name: 'idempotency-key',
    in: 'header',
    description:
      'Makes retries safe: 1 to 255 visible ASCII characters of your choice, one for each thing that you do (INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED).',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
  },
  LastEventId: {
    name: 'last-event-id',
    in: 'header',
    description: 'The last `id:` of the stream, which browsers send by themselves. Wins over `watchCursor`.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, Parameter>

export type ParameterName = keyof typeof parameters

/** Headers that single methods read, which no descriptor tells. */
export function headersOfMethod({ parent, name }: DescMethod): readonly ParameterName[] {
  if (parent.typeName === 'demo.v1.DemoService') return ['IdempotencyKey']
  return headersOfMethods[`${parent.typeName}.${name}`] ?? []
}

export const headersOfMethods: Readonly<Record<string, readonly ParameterName[]>> = {
  'payments.v1.RequestsService.CreatePaymentRequest': ['IdempotencyKey'],
  'payments.v1.PaymentSearchService.WatchPayments': ['LastEventId'],
}

/** The parameter that carries a ticket. A security scheme describes it. */
export const TICKET = 'ticket'

export const securitySchemes: Components['securitySchemes'] = {
  apiKey: {
    type: 'apiKey',
    in: 'header',
    name: 'x-api-key',
    description:
      'A key of `waybill keys create`. An operation names the scope that the key needs. A publishable key (`wbp_…`) may stand in web pages of its origins; operations say where it works.',
  },
  ticket: {
    type: 'apiKey',
    in: 'query',
    name: TICKET,
    description: 'A ticket of CreateWatchTicket, for the `EventSource` of browsers, which cannot send headers.',
  },
}
