import type { DescMessage } from '@bufbuild/protobuf'
import { Code } from '@connectrpc/connect'
import { codeToString } from '@connectrpc/connect/protocol-connect'
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from '../../../gen/google/rpc/error_details_pb.js'
import { RouteSchema } from '../../../gen/payments/v1/route_pb.js'
import { type Reason, reasons } from '../../errors/reasons.ts'
import type { HttpBinding } from '../../transcoding/http-rule.ts'
import { codeName, wireFormOf } from '../calls/error-mapping.ts'
import type { ServedMethod } from '../calls/served-method.ts'
import { everyAnswer, type HeaderName, headersOfMethod, parameters } from './common-parts.ts'
import { type Comments, inlineAnswerSchema, type MessageSchemas } from './message-schemas.ts'
import { type ApiResponse, type JsonSchema, type ReasonOfTable, type Reference, refTo } from './openapi-document.ts'
import { boundsOf, isError, reasonsIn } from './read-definitions.ts'

/** Describes headers by name. */
export function headersOf(names: readonly HeaderName[]): Readonly<Record<string, Reference>> {
  return Object.fromEntries(names.map((name) => [name, refTo('headers', name)]))
}

/** Groups reasons by the status that they have over plain HTTP. */
export function byStatus(names: Iterable<Reason>): ReadonlyMap<number, readonly Reason[]> {
  const sorted = [...new Set(names)].toSorted()
  return new Map([...Map.groupBy(sorted, (name) => wireFormOf(name, 'rest').httpStatus)].toSorted(([a], [b]) => a - b))
}

/** Collects the answers that are errors, each once: several operations share them word for word. */
export function createErrorResponses() {
  const names = new Map<string, string>()
  const responses: Record<string, ApiResponse> = {}
  return {
    all: responses,
    /** @param reasons - of errors, all of the status */
    refer(status: number, reasons: readonly Reason[]): Reference {
      const before = [...names.values()].filter((each) => each.startsWith(`Error${status}`)).length
      const name = names.get(reasons.join()) ?? `Error${status}${before === 0 ? '' : `x${before + 1}`}`
      names.set(reasons.join(), name)
      responses[name] ??= errorResponse(status, reasons)
      return refTo('responses', name)
    },
  }
}

function errorResponse(status: number, names: readonly Reason[]): ApiResponse {
  const lines = names.map((name) => `- \`${name}\`: ${sentence(name)}`)
  return {
    description: `${titles[status] ?? 'Error'}\n\n${lines.join('\n')}`,
    headers: headersOf([...everyAnswer, ...(headersOfStatus[status] ?? [])]),
    content: { 'application/json': { schema: refTo('schemas', 'Error') } },
    'x-reasons': names,
  }
}

function sentence(name: Reason): string {
  const { message, remedy } = reasons[name]
  return remedy === '' ? message : `${message}; ${remedy}`
}

const headersOfStatus: Readonly<Record<number, readonly HeaderName[]>> = {
  401: ['www-authenticate'],
  415: ['accept-encoding'],
  429: ['retry-after'],
  503: ['retry-after'],
}

const titles: Readonly<Record<number, string>> = {
  400: 'The request is not valid, or not possible in this state.',
  401: 'The key is missing or not valid.',
  403: 'The key may not do this.',
  404: 'Not found.',
  406: 'No format in `Accept` is served.',
  408: 'The request came too slowly.',
  409: 'It conflicts with what is stored.',
  413: 'The body is too large.',
  415: 'The body has a format or compression that is not served.',
  429: 'Too many calls.',
  431: 'The headers are too large.',
  500: 'A failure of the service.',
  503: 'The service cannot answer now.',
  504: 'The answer took too long.',
}

/** The schema of errors. Their details are typed messages, each with its `@type`. */
export function errorSchemas(schemas: MessageSchemas): Readonly<Record<string, JsonSchema>> {
  const detail = (desc: DescMessage, description: string): JsonSchema => {
    const type: JsonSchema = { type: 'string', const: `type.googleapis.com/${desc.typeName}` }
    return { ...inlineAnswerSchema(schemas, desc, { '@type': type }), description }
  }
  return {
    Error: {
      type: 'object',
      description: 'An error. Match it by the `reason` of its first detail: messages may be reworded.',
      properties: {
        code: {
          type: 'string',
          description: 'The code of google.rpc.Code, which gRPC and Connect give, too.',
          enum: codes,
          examples: ['invalid_argument'],
        },
        message: { type: 'string', description: 'What was wrong, with the value, and what to do.' },
        details: {
          type: 'array',
          description: 'First the reason, then the fields at fault, when to retry, and what the error sends along.',
          items: refTo('schemas', 'ErrorDetail'),
          minItems: 1,
        },
      },
      required: ['code', 'message', 'details'],
    },
    ErrorDetail: {
      description: 'A detail of an error. More kinds may come: ignore those that you do not know.',
      anyOf: ['ErrorInfo', 'BadRequest', 'RetryInfo', 'NewQuote'].map((name) => refTo('schemas', name)),
    },
    ErrorInfo: detail(
      ErrorInfoSchema,
      'The reason: one of `x-reasons` of this document. `domain` is `waybill`. `metadata` holds the values of the message.',
    ),
    BadRequest: detail(BadRequestSchema, 'Every field at fault, each with its own reason.'),
    RetryInfo: detail(RetryInfoSchema, 'How long to wait before the next call.'),
    NewQuote: detail(RouteSchema, 'The new quote, with QUOTE_CHANGED.'),
  }
}

const codes = Object.values(Code)
  .filter((code): code is Code => typeof code === 'number')
  .map((code) => codeToString(code))

/** The table of reasons, for programs. */
export function tableOfReasons(): Readonly<Record<string, ReasonOfTable>> {
  const names = (Object.keys(reasons) as Reason[]).toSorted()
  return Object.fromEntries(names.map((name) => [name, rowOf(name)]))
}

function rowOf(name: Reason): ReasonOfTable {
  const { in: appearances, message, remedy } = reasons[name]
  if (!isError(name)) return { in: appearances, message, remedy }
  const { httpStatus, code } = wireFormOf(name, 'rest')
  return { in: appearances, httpStatus, code: codeName(code), message, remedy }
}

/** Errors of every call, whatever it asks. */
const ofEveryCall: readonly Reason[] = [
  'BODY_TOO_COMPLEX',
  'BODY_TOO_LARGE',
  'DATABASE_TIMEOUT',
  'DATABASE_UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'HEADERS_TOO_LARGE',
  'HOST_NOT_ALLOWED',
  'INTERNAL',
  'INVALID_FIELD',
  'INVALID_HOST',
  'INVALID_UTF8',
  'MALFORMED_REQUEST',
  'MALFORMED_URL',
  'NOT_ACCEPTABLE',
  'OVERLOADED',
  'RATE_LIMITED',
  'REQUEST_TOO_SLOW',
  'ROUTE_NOT_FOUND',
  'SHUTTING_DOWN',
  'TOO_MANY_CONNECTIONS',
  'UNKNOWN_PARAMETER',
  'UNSUPPORTED_CONTENT_ENCODING',
]

const ofCallsWithKey: readonly Reason[] = [
  'ACCOUNT_NOT_ALLOWED',
  'INVALID_API_KEY',
  'MISSING_ACCOUNT',
  'MISSING_API_KEY',
  'MISSING_SCOPE',
  'UNKNOWN_ACCOUNT',
]

const ofBodies: readonly Reason[] = [
  'MALFORMED_BODY',
  'TOO_MANY_OPEN_BODIES',
  'UNKNOWN_FIELD',
  'UNSUPPORTED_CONTENT_TYPE',
]

/** With which the last message of a stream may end it. */
export const endsOfStreams: readonly Reason[] = [
  'DATABASE_TIMEOUT',
  'DATABASE_UNAVAILABLE',
  'INTERNAL',
  'INVALID_API_KEY',
  'READER_TOO_SLOW',
  'SHUTTING_DOWN',
  'STREAM_EXPIRED',
]

/**
 * The reasons of all errors with which a call by plain HTTP may be answered: those that the comments of the method, its service and its
 * request name, and those that follow from the form of the request.
 */
export function reasonsOf(method: ServedMethod, { body }: HttpBinding, comments: Comments): ReadonlySet<Reason> {
  const { desc, isForPages = false } = method
  const { input } = desc
  const bounds = input.fields.map(boundsOf)
  const isWithKey = method.scope !== 'open'
  const isStream = desc.methodKind === 'server_streaming'
  const ofForm: Partial<Record<Reason, boolean>> = {
    ORIGIN_NOT_ALLOWED: isWithKey && isForPages,
    NOT_FOR_PUBLISHABLE_KEYS: isWithKey && !isForPages,
    TOO_MANY_PAGE_STREAMS: isForPages && isStream,
    INVALID_TICKET: method.takesTicket === true,
    TOO_MANY_AT_ONCE: method.slot !== undefined,
    TOO_MANY_STREAMS: isStream,
    UNEXPECTED_BODY: body === '',
    MISSING_FIELD: bounds.some(({ isRequired }) => isRequired),
    VALUE_TOO_LONG: bounds.some(({ value }) => value.maxLength !== undefined),
    TOO_MANY_VALUES: bounds.some(({ list }) => list.maxItems !== undefined),
    UNKNOWN_ENUM_VALUE: input.fields.some((field) => field.enum !== undefined),
    INVALID_LIMIT: input.fields.some(({ jsonName }) => jsonName === 'limit'),
    DUPLICATE_PARAMETER: input.fields.length > 0,
    ONEOF_CONFLICT: input.fields.some(({ oneof }) => oneof !== undefined),
  }
  const named = [
    `${desc.parent.typeName}.${desc.name}`,
    desc.parent.typeName,
    input.typeName,
    ...input.fields.map((field) => `${input.typeName}.${field.name}`),
  ].flatMap((name) => reasonsIn(comments[name] ?? ''))
  const ofHeaders = headersOfMethod(desc).flatMap((name) => reasonsIn(parameters[name].description))
  return new Set([
    ...ofEveryCall,
    ...(isWithKey ? ofCallsWithKey : []),
    ...(body === '' ? [] : ofBodies),
    ...(Object.keys(ofForm) as Reason[]).filter((reason) => ofForm[reason]),
    ...named,
    ...ofHeaders,
  ])
}
