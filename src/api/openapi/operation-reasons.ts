import type { Reason } from '../../errors/reasons.ts'
import type { HttpBinding } from '../../transcoding/http-rule.ts'
import type { ServedMethod } from '../calls/served-method.ts'
import { headersOfMethod, parameters } from './common-parts.ts'
import { boundsOf } from './field-rules.ts'
import type { Comments } from './message-schemas.ts'
import { reasonsIn } from './read-comment.ts'

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
