import type { DescField, DescMessage } from '@bufbuild/protobuf'
import { findNearestName, suggestName } from '../../domain/nearest.ts'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { TranscodingError } from '../../transcoding/errors/transcoding-error.ts'
import { MAX_DEPTH, MAX_VALUES } from '../../transcoding/messages/json-text.ts'
import { suggestOwnName, suggestOwnValue } from './other-names.ts'

/**
 * Turns the error of a decoder into one with a reason.
 *
 * @param input - the request's message, in which the field of the error is looked up, so that it has its JSON name; undefined where the
 *   path names no method
 */
export function fromTranscodingError(error: TranscodingError, input?: DescMessage): WaybillError {
  const found = error.field === undefined ? undefined : input && findField(input, error.field)
  const field = found?.jsonPath ?? error.field ?? 'the body'
  const options = { cause: error }
  const suggestion = error.suggestion === undefined ? '' : `did you mean "${error.suggestion}"?`
  switch (error.kind) {
    case 'UNKNOWN_PARAMETER': {
      const own = suggestOwnName(field, error.known) ?? (suggestion || suggestParameter(field, error.known))
      return waybillError('UNKNOWN_PARAMETER', { field, suggestion: own }, options)
    }
    case 'NOT_MAPPABLE':
      return waybillError('UNKNOWN_PARAMETER', { field, suggestion: suggestion || problemOf(error) }, options)
    case 'BODY_FIELD_OVERRIDDEN':
      return waybillError('UNKNOWN_PARAMETER', { field, suggestion: 'send it in the body' }, options)
    case 'INVALID_VALUE':
      return invalidValue(error, found?.field, field)
    case 'DUPLICATE_PARAMETER':
      return waybillError('DUPLICATE_PARAMETER', { field, detail: 'in the query' }, options)
    case 'ONEOF_CONFLICT':
      return waybillError('ONEOF_CONFLICT', { field, detail: problemOf(error) }, options)
    case 'PATH_VARIABLE_OVERRIDDEN':
      return waybillError('DUPLICATE_PARAMETER', { field, detail: 'in the path and beside it' }, options)
    case 'MALFORMED_ESCAPE':
      return waybillError('MALFORMED_URL', { detail: problemOf(error) }, options)
    case 'INVALID_UTF8':
      return invalidUtf8(error, options)
    case 'UNKNOWN_JSON_FIELD':
      return unknownField(error.field ?? '', describeUnknownField(error), error)
    case 'TOO_DEEP':
      return waybillError('BODY_TOO_COMPLEX', { limit: `${MAX_DEPTH} levels` }, options)
    case 'TOO_MANY_VALUES':
      return waybillError('BODY_TOO_COMPLEX', { limit: `${MAX_VALUES} fields and values` }, options)
    case 'MALFORMED_JSON':
    case 'DUPLICATE_JSON_FIELD':
      return waybillError('MALFORMED_BODY', { detail: problemOf(error) }, options)
    case 'UNEXPECTED_BODY':
      return waybillError('UNEXPECTED_BODY', {}, options)
  }
}

function invalidUtf8(error: TranscodingError, options: { readonly cause: unknown }): WaybillError {
  const field = error.field ?? whereOf(error)
  return waybillError('INVALID_UTF8', { field }, error.field === undefined ? { ...options, violations: [] } : options)
}

/** UNKNOWN_FIELD with the field as its violation, which its template does not name. */
export function unknownField(field: string, detail: string, cause?: unknown): WaybillError {
  const { message } = waybillError('UNKNOWN_FIELD', { detail })
  return new WaybillError('UNKNOWN_FIELD', message, { field, detail }, { cause })
}

/** INVALID_LIMIT with the field as its violation. */
export function invalidLimit(value: string): WaybillError {
  const { message } = waybillError('INVALID_LIMIT', { value })
  return new WaybillError('INVALID_LIMIT', message, { field: 'limit', value }, {})
}

/** UNKNOWN_ENUM_VALUE, which suggests names of the enum. */
export function unknownEnumValue(
  { field, value, known }: { field: string; value: string; known: readonly string[] },
  cause?: unknown,
): WaybillError {
  const suggestion = suggestOwnValue(value, known) ?? suggestName(value, known)
  return waybillError('UNKNOWN_ENUM_VALUE', { field, value, suggestion }, { cause })
}

/** The names of an enum that callers may use: all but the zero value, which means that nothing was said. */
export function usableNames(desc: { readonly values: readonly { readonly number: number; readonly name: string }[] }) {
  return desc.values.filter((value) => value.number !== 0).map((value) => value.name)
}

function invalidValue(error: TranscodingError, desc: DescField | undefined, field: string): WaybillError {
  const value = error.value ?? ''
  if (desc?.enum !== undefined && !isWholeList(desc, field)) {
    if (value === '' && desc.fieldKind === 'list') {
      return waybillError('INVALID_FIELD', { field, detail: 'it is empty' }, { cause: error })
    }
    return unknownEnumValue({ field, value, known: usableNames(desc.enum) }, error)
  }
  if (desc?.jsonName === 'limit' && field === 'limit') return invalidLimit(value)
  return waybillError('INVALID_FIELD', { field, detail: problemOf(error) }, { cause: error })
}

/** Whether a path names a list itself and not one of its values. */
function isWholeList({ fieldKind }: DescField, path: string): boolean {
  return fieldKind === 'list' && !path.endsWith(']')
}

/** The message without its subject, the field or the body, which the templates name. */
function problemOf({ message, field }: TranscodingError): string {
  const subject = [JSON.stringify(field), 'the body'].find((each) => message.startsWith(`${each}: `))
  return subject === undefined ? message : message.slice(subject.length + 2)
}

function whereOf({ message }: TranscodingError): string {
  return message.includes('body') ? 'the body' : 'the URL'
}

function describeUnknownField({ field = '', known }: TranscodingError): string {
  const nearest = findNearestName(field, known)
  const suggestion = suggestOwnName(field, known) ?? (nearest && `did you mean "${nearest}"?`)
  return [`"${field}"`, suggestion].filter(Boolean).join('; ')
}

function suggestParameter(field: string, known: readonly string[]): string {
  return known.length === 0 ? 'remove it' : suggestName(field, known)
}

/** Follows a path such as `items[2].unit_price`, by proto or JSON names. */
function findField(input: DescMessage, path: string): { field: DescField; jsonPath: string } | undefined {
  let message: DescMessage | undefined = input
  let field: DescField | undefined
  const jsonNames: string[] = []
  for (const part of path.split('.')) {
    const [name = '', ...subscripts] = part.split('[')
    field = message?.fields.find((each) => each.name === name || each.jsonName === name)
    if (field === undefined) return undefined
    jsonNames.push([field.jsonName, ...subscripts].join('['))
    message = field.message
  }
  return field && { field, jsonPath: jsonNames.join('.') }
}
