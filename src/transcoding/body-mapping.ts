import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type Message,
  mergeFromJson,
  type Registry,
  ScalarType,
} from '@bufbuild/protobuf'
import { hasCustomJsonRepresentation, isWrapperDesc } from '@bufbuild/protobuf/wkt'
import { quote, type ReportMistake, TranscodingError, throwMistake } from './errors/transcoding-error.ts'
import { describeEnum, scalarReaders, wellKnownReaders } from './messages/field-text.ts'
import { type Json, MAX_DEPTH, parseJson } from './messages/json-text.ts'
import { fieldsOf } from './messages/message-fields.ts'

/** Writes a JSON body into a message. A body of no bytes changes nothing. By default the first mistake is thrown. */
type BodyMapper = (message: Message, body: Uint8Array | undefined, report?: ReportMistake) => void

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
    let isRight = true
    const check: ReportMistake = (error) => {
      // Of a mistake in the whole body nothing can be said of the rest.
      if (error.field === undefined) throw error
      isRight = false
      report(error)
    }
    if (field === undefined) checkMessage(input, json, '', check)
    else checkField(field, json, '', check)
    if (isRight) merge(input, message, field === undefined ? json : { [field.jsonName]: json }, registry)
  }
}

function refuseBody(_message: Message, body: Uint8Array | undefined): void {
  if (body === undefined || body.length === 0) return
  throw new TranscodingError('UNEXPECTED_BODY', 'this path takes no body')
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

/** A singular field, an element of a list or a value of a map. */
type Element =
  | { readonly fieldKind: 'scalar'; readonly scalar: ScalarType }
  | { readonly fieldKind: 'enum'; readonly enum: DescEnum }
  | { readonly fieldKind: 'message'; readonly message: DescMessage }

/**
 * Checks a JSON value against a message before protobuf-es decodes it. protobuf-es refuses most of this too, but does not say where. It also reads
 * 30 February as 2 March, `1sec` as one second and `0x10` as 16, rounds 64-bit numbers beyond 2^53, and keeps numbers that an enum does not declare.
 *
 * It reports TranscodingError UNKNOWN_JSON_FIELD, DUPLICATE_JSON_FIELD, ONEOF_CONFLICT, INVALID_VALUE.
 *
 * @param path - where the value stands in the body, such as `payments[2].fee`; empty for the body itself
 * @throws TranscodingError INVALID_VALUE for a body that is no object
 */
function checkMessage(desc: DescMessage, json: Json, path: string, check: ReportMistake): void {
  if (hasCustomJsonRepresentation(desc)) return checkWellKnown(desc, json, path, check)
  if (!isObject(json)) return check(invalid(path, json, 'an object'))
  const given = new Map<DescField, string>()
  for (const [key, value] of Object.entries(json)) {
    const field = fieldsOf(desc).get(key)
    const wrong = field === undefined ? unknownField(desc, key, path) : findRepeat(field, key, value, given, path)
    if (wrong !== undefined) check(wrong)
    else if (field !== undefined) checkField(field, value, pathTo(path, key), check)
  }
}

/** As checkMessage, for the value of one field. JSON null leaves any field unset. */
function checkField(field: DescField, json: Json, path: string, check: ReportMistake): void {
  if (json === null) return
  switch (field.fieldKind) {
    case 'list': {
      if (!Array.isArray(json)) return check(invalid(path, json, 'a list'))
      const element = kindOfElement(field, field.listKind)
      for (const [index, item] of json.entries()) checkSingular(element, item, `${path}[${index}]`, check)
      return
    }
    case 'map': {
      if (!isObject(json)) return check(invalid(path, json, 'an object'))
      const element = kindOfElement(field, field.mapKind)
      for (const [key, item] of Object.entries(json)) {
        checkMapKey(field.mapKey, key, path, check)
        checkSingular(element, item, pathTo(path, key), check)
      }
      return
    }
    case 'scalar':
    case 'enum':
    case 'message':
      checkSingular(field, json, path, check)
  }
}

/** The field of an element of a list or map. Their descriptors name its kind in another property than a field's. */
function kindOfElement(field: DescField, fieldKind: 'scalar' | 'enum' | 'message'): Element {
  return { ...field, fieldKind } as Element
}

function checkSingular(element: Element, json: Json, path: string, check: ReportMistake): void {
  switch (element.fieldKind) {
    case 'scalar':
      return checkScalar(element.scalar, json, path, check)
    case 'enum':
      return checkEnum(element.enum, json, path, check)
    case 'message':
      return checkMessage(element.message, json, path, check)
  }
}

function checkScalar(scalar: ScalarType, json: Json, path: string, check: ReportMistake): void {
  if (!isScalar(scalar, json)) check(invalid(path, json, scalarReaders[scalar].expectation))
}

function isScalar(scalar: ScalarType, json: Json): boolean {
  if (scalar === ScalarType.BOOL) return typeof json === 'boolean'
  // A lone surrogate cannot be encoded as UTF-8.
  if (typeof json === 'string') return json.isWellFormed() && scalarReaders[scalar].read(json) !== undefined
  if (typeof json !== 'number' || scalar === ScalarType.STRING || scalar === ScalarType.BYTES) return false
  const isFloat = scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT
  // A JSON number beyond 2^53 has lost its last digits: such numbers are written as strings.
  const isExact = isFloat ? Number.isFinite(json) : Number.isSafeInteger(json)
  return isExact && scalarReaders[scalar].read(String(json)) !== undefined
}

/** Names exactly as declared, or the number of a declared value. */
function checkEnum({ typeName, values }: DescEnum, json: Json, path: string, check: ReportMistake): void {
  if (json === null && typeName === 'google.protobuf.NullValue') return
  const isDeclared = values.some(({ number, name, jsonName }) => [number, name, jsonName].includes(json as string))
  if (!isDeclared) check(invalid(path, json, describeEnum(values.map(({ jsonName }) => jsonName))))
}

function checkMapKey(scalar: ScalarType, key: string, path: string, check: ReportMistake): void {
  const fits = scalar === ScalarType.BOOL ? key === 'true' || key === 'false' : isScalar(scalar, key)
  if (!fits) check(invalid(path, key, `a map key: ${scalarReaders[scalar].expectation}`))
}

/** What protobuf-es reads too generously. It refuses what is wrong in an Any or a Struct by itself. */
function checkWellKnown(desc: DescMessage, json: Json, path: string, check: ReportMistake): void {
  const wrapped = isWrapperDesc(desc) ? desc.fields[0] : undefined
  if (wrapped?.fieldKind === 'scalar') return checkScalar(wrapped.scalar, json, path, check)
  const reader = wellKnownReaders.get(desc.typeName)
  if (reader === undefined || (typeof json === 'string' && reader.read(json) !== undefined)) return
  check(invalid(path, json, reader.expectation))
}

/** Finds that a field, or another member of its oneof, was given before. */
function findRepeat(
  field: DescField,
  key: string,
  json: Json,
  given: Map<DescField, string>,
  path: string,
): TranscodingError | undefined {
  const where = pathTo(path, key)
  if (given.has(field)) {
    const problem = `${quote(where)} is given twice, as ${quote(given.get(field) ?? key)} and ${quote(key)}`
    return new TranscodingError('DUPLICATE_JSON_FIELD', problem, { field: where })
  }
  const other = json === null ? undefined : field.oneof?.fields.find((member) => given.has(member))
  if (other !== undefined) {
    const problem = `${quote(where)} and ${quote(pathTo(path, given.get(other) ?? other.jsonName))} exclude each other`
    return new TranscodingError('ONEOF_CONFLICT', `${problem}: give one of them`, { field: where })
  }
  if (json !== null || field.oneof === undefined) given.set(field, key)
  return undefined
}

function unknownField(desc: DescMessage, key: string, path: string): TranscodingError {
  const where = pathTo(path, key)
  const known = desc.fields.map(({ jsonName }) => pathTo(path, jsonName))
  return new TranscodingError('UNKNOWN_JSON_FIELD', `unknown field ${quote(where)}`, { field: where, known })
}

function invalid(path: string, json: Json, expectation: string): TranscodingError {
  const value = JSON.stringify(json)
  const where = path === '' ? 'the body' : quote(path)
  const shown = value.length > 100 ? `${value.slice(0, 100)}…` : value
  return new TranscodingError('INVALID_VALUE', `${where}: ${shown} is not ${expectation}`, {
    field: path === '' ? undefined : path,
    value: typeof json === 'string' ? json : value,
  })
}

function pathTo(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`
}

function isObject(json: Json): json is { [key: string]: Json } {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}
