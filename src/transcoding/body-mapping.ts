import { type DescField, type DescMessage, type Message, mergeFromJson, type Registry } from '@bufbuild/protobuf'
import { quote, type ReportMistake, TranscodingError, throwMistake } from './errors/transcoding-error.ts'
import { checkField, checkMessage } from './messages/json-check.ts'
import { type Json, MAX_DEPTH, parseJson } from './messages/json-text.ts'

/** Writes a JSON body into a message. A body of no bytes changes nothing. By default the first mistake is thrown. */
export type BodyMapper = (message: Message, body: Uint8Array | undefined, report?: ReportMistake) => void

/**
 * Compiles the mapping of the body for one binding: `*` maps it to the whole request, a name to that field, and an empty
 * name refuses any body, since a filter in a body that is not read must not be ignored. The mapper throws TranscodingError
 * MALFORMED_JSON, INVALID_UTF8, TOO_DEEP, TOO_MANY_VALUES, DUPLICATE_JSON_FIELD, UNEXPECTED_BODY, and reports UNKNOWN_JSON_FIELD,
 * DUPLICATE_JSON_FIELD, INVALID_VALUE, ONEOF_CONFLICT.
 *
 * @param name - a proto name of the request
 * @param registry - finds the types in google.protobuf.Any and extensions
 * @throws Error if the request has no such field
 */
export function compileBodyMapping(input: DescMessage, name: string, registry: Registry | undefined): BodyMapper {
  if (name === '') return refuseBody
  const field = name === '*' ? undefined : input.fields.find((each) => each.name === name)
  if (field === undefined && name !== '*') throw new Error(`body names ${name}, which is no field of ${input.typeName}`)

  return (message, body, report = throwMistake) => {
    if (body === undefined || body.length === 0) return
    const json = parseJson(body)
    const check = { registry, report }
    const isRight = field === undefined ? checkMessage(input, json, '', check) : checkField(field, json, '', check)
    if (field !== undefined && !isRight) return
    merge(input, message, field === undefined ? json : wrap(field, json), registry)
  }
}

function refuseBody(_message: Message, body: Uint8Array | undefined): void {
  if (body === undefined || body.length === 0) return
  throw new TranscodingError('UNEXPECTED_BODY', 'this path takes no body')
}

function wrap(field: DescField, json: Json): Json {
  return Object.fromEntries([[field.jsonName, json]])
}

/** What protobuf-es still refuses after the check is an invalid value, too. */
function merge(input: DescMessage, message: Message, json: Json, registry: Registry | undefined): void {
  try {
    // One level more than the text may have, since a body that is mapped to a field is wrapped.
    mergeFromJson(input, message, json, { recursionLimit: MAX_DEPTH + 1, ...(registry && { registry }) })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new TranscodingError('INVALID_VALUE', `the body does not fit: ${quote(why)}`, { cause })
  }
}
