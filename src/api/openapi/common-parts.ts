/** What is the same for all operations: headers, parameters in headers, and how callers identify themselves. */
import type { DescMethod } from '@bufbuild/protobuf'
import { RATE_LIMIT_HEADERS } from '../http/http-answer.ts'
import type { Components, Header, Parameter } from './openapi-document.ts'

/** Headers of answers, by the names that they have in the document as well. */
export const headers = {
  'x-request-id': {
    description: 'Id of this call: the one that was sent, else a new one. Name it when you report a problem.',
    required: true,
    schema: { type: 'string' },
  },
  'ratelimit-policy': {
    description: 'Limit of the key: `q` calls in `w` seconds. Absent for a key without limit.',
    schema: { type: 'string', examples: ['"key";q=300;w=60'] },
  },
  ratelimit: {
    description: 'What is left of it: `r` calls for `t` more seconds.',
    schema: { type: 'string', examples: ['"key";r=291;t=42'] },
  },
  'x-ratelimit-limit': { description: 'Calls a minute.', schema: { type: 'integer', examples: [300] } },
  'x-ratelimit-remaining': {
    description: 'Calls that are left in this minute.',
    schema: { type: 'integer', examples: [291] },
  },
  'x-ratelimit-reset': {
    description: 'Seconds until the minute ends.',
    schema: { type: 'integer', examples: [42] },
  },
  'x-waybill-demo': { description: 'Present in the demo only.', schema: { type: 'string', const: 'true' } },
  etag: {
    description: 'Changes with the answer, except for `confirmations` and `watchCursor`. Send it as `if-none-match`.',
    schema: { type: 'string', examples: ['W/"2jmj7l5rSw0yVb_vlWAYkK_YBwk"'] },
  },
  'retry-after': {
    description: 'Seconds to wait before the next call.',
    schema: { type: 'integer', examples: [12] },
  },
  'www-authenticate': { description: 'How to identify yourself.', schema: { type: 'string' } },
  'content-disposition': {
    description: 'A name for the file.',
    schema: { type: 'string', examples: ['attachment; filename="payments.csv"'] },
  },
  'accept-encoding': { description: 'Compressions of requests that are served.', schema: { type: 'string' } },
} as const satisfies Record<string, Header>

export type HeaderName = keyof typeof headers

/** The headers of every answer to a caller. */
export const everyAnswer: readonly HeaderName[] = ['x-request-id', ...RATE_LIMIT_HEADERS, 'x-waybill-demo']

const inHeaders = {
  'x-account': {
    description: 'The account for which a platform key calls (MISSING_ACCOUNT). Other keys leave it out.',
    schema: { type: 'string', examples: ['acme'] },
  },
  'x-request-id': {
    description: 'Your id of this call, for logs: 1 to 128 of `A-Z a-z 0-9 _ . : / + = @ -`. Another one is replaced.',
    schema: { type: 'string' },
  },
  'if-none-match': {
    description:
      'The `etag` of an earlier answer: 304 without a body if nothing but `confirmations` and `watchCursor` has changed.',
    schema: { type: 'string' },
  },
  'idempotency-key': {
    description:
      'Makes retries safe: 1 to 255 visible ASCII characters of your choice, one for each thing that you do (INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSED).',
    schema: { type: 'string', minLength: 1, maxLength: 255, pattern: '^[!-~]+$' },
  },
  'last-event-id': {
    description: 'The last `id:` of the stream, which browsers send by themselves. Wins over `watchCursor`.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, Header>

export type ParameterName = keyof typeof inHeaders

/** Parameters in headers, by their names. */
export const parameters = Object.fromEntries(
  Object.entries(inHeaders).map(([name, each]) => [name, { name, in: 'header', ...each }]),
) as Readonly<Record<ParameterName, Parameter & { readonly description: string }>>

/** Headers that single methods read, which no descriptor tells. */
export function headersOfMethod({ parent, name }: DescMethod): readonly ParameterName[] {
  if (parent.typeName === 'demo.v1.DemoService') return ['idempotency-key']
  return headersOfMethods[`${parent.typeName}.${name}`] ?? []
}

export const headersOfMethods: Readonly<Record<string, readonly ParameterName[]>> = {
  'payments.v1.RequestsService.CreatePaymentRequest': ['idempotency-key'],
  'payments.v1.PaymentSearchService.WatchPayments': ['last-event-id'],
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
