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

/** A singular field, an element of a list or a value of a map. */
type Element =
  | { readonly fieldKind: 'scalar'; readonly scalar: ScalarType }
  | { readonly fieldKind: 'enum'; readonly enum: DescEnum }
  | { readonly fieldKind: 'message'; readonly message: DescMessage }

/** How a JSON value is checked. */
interface JsonCheck {
  /** Finds the types in google.protobuf.Any and extensions. */
  readonly registry: Registry | undefined
  readonly report: ReportMistake
}

/**
 * Checks a JSON value against a message before protobuf-es decodes it, and removes the fields that are wrong. protobuf-es refuses most of
 * this too, but does not say where. It also reads 30 February as 2 March, `1sec` as one second and `0x10` as 16, rounds 64-bit numbers
 * beyond 2^53, and keeps numbers that an enum does not declare.
 *
 * It reports TranscodingError UNKNOWN_JSON_FIELD, DUPLICATE_JSON_FIELD, ONEOF_CONFLICT, INVALID_VALUE.
 *
 * @param path - where the value stands in the body, such as `payments[2].fee`; empty for the body itself
 * @returns whether nothing was wrong
 * @throws TranscodingError INVALID_VALUE for a body that is no object
 */
function checkMessage(desc: DescMessage, json: Json, path: string, check: JsonCheck): boolean {
  if (hasCustomJsonRepresentation(desc)) return checkWellKnown(desc, json, path, check)
  if (!isObject(json)) return refuse(invalid(path, json, 'an object'), check)
  const given = new Map<DescField, string>()
  let isRight = true
  for (const key of Object.keys(json)) {
    if (checkEntry(desc, { json, key, path }, given, check)) continue
    delete json[key]
    isRight = false
  }
  return isRight
}

interface Entry {
  readonly json: { [key: string]: Json }
  readonly key: string
  /** Of the object. */
  readonly path: string
}

function checkEntry(
  desc: DescMessage,
  { json, key, path }: Entry,
  given: Map<DescField, string>,
  check: JsonCheck,
): boolean {
  const value = json[key] ?? null
  const field = fieldsOf(desc).get(key)
  if (field === undefined) {
    return isExtension(desc, key, check.registry) || refuse(unknownField(desc, key, path), check)
  }
  const twice = findRepeat(field, key, value, given, path)
  return twice === undefined ? checkField(field, value, pathTo(path, key), check) : refuse(twice, check)
}

/** As checkMessage, for the value of one field. JSON null leaves any field unset. */
function checkField(field: DescField, json: Json, path: string, check: JsonCheck): boolean {
  if (json === null) return true
  switch (field.fieldKind) {
    case 'list': {
      if (!Array.isArray(json)) return refuse(invalid(path, json, 'a list'), check)
      const element = kindOfElement(field, field.listKind)
      let isRight = true
      for (const [index, item] of json.entries()) {
        if (!checkSingular(element, item, `${path}[${index}]`, check)) isRight = false
      }
      return isRight
    }
    case 'map': {
      if (!isObject(json)) return refuse(invalid(path, json, 'an object'), check)
      const element = kindOfElement(field, field.mapKind)
      let isRight = true
      for (const [key, item] of Object.entries(json)) {
        const isEntry = checkMapKey(field.mapKey, key, path, check)
        if (!isEntry || !checkSingular(element, item, pathTo(path, key), check)) isRight = false
      }
      return isRight
    }
    case 'scalar':
    case 'enum':
    case 'message':
      return checkSingular(field, json, path, check)
  }
}

/** Reports a mistake in a field; one in the whole body is thrown, since nothing can be said of the rest. @returns false */
function refuse(error: TranscodingError, { report }: JsonCheck): false {
  if (error.field === undefined) throw error
  report(error)
  return false
}

/** The field of an element of a list or map. Their descriptors name its kind in another property than a field's. */
function kindOfElement(field: DescField, fieldKind: 'scalar' | 'enum' | 'message'): Element {
  return { ...field, fieldKind } as Element
}

function checkSingular(element: Element, json: Json, path: string, check: JsonCheck): boolean {
  switch (element.fieldKind) {
    case 'scalar':
      return checkScalar(element.scalar, json, path, check)
    case 'enum':
      return checkEnum(element.enum, json, path, check)
    case 'message':
      return checkMessage(element.message, json, path, check)
  }
}

function checkScalar(scalar: ScalarType, json: Json, path: string, check: JsonCheck): boolean {
  return isScalar(scalar, json) || refuse(invalid(path, json, scalarReaders[scalar].expectation), check)
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
function checkEnum(desc: DescEnum, json: Json, path: string, check: JsonCheck): boolean {
  if (json === null && desc.typeName === 'google.protobuf.NullValue') return true
  if (typeof json === 'number' && desc.values.some((value) => value.number === json)) return true
  if (typeof json === 'string' && desc.values.some((value) => value.name === json || value.jsonName === json)) {
    return true
  }
  const names = desc.values.map((value) => value.jsonName)
  return refuse(invalid(path, json, describeEnum(names)), check)
}

function checkMapKey(scalar: ScalarType, key: string, path: string, check: JsonCheck): boolean {
  const fits = scalar === ScalarType.BOOL ? key === 'true' || key === 'false' : isScalar(scalar, key)
  return fits || refuse(invalid(path, key, `a map key: ${scalarReaders[scalar].expectation}`), check)
}

function checkWellKnown(desc: DescMessage, json: Json, path: string, check: JsonCheck): boolean {
  if (desc.typeName === 'google.protobuf.Any') return checkAny(json, path, check)
  const wrapped = isWrapperDesc(desc) ? desc.fields[0] : undefined
  if (wrapped?.fieldKind === 'scalar') return checkScalar(wrapped.scalar, json, path, check)
  const expectation = brokenExpectation(desc, json)
  return expectation === undefined || refuse(invalid(path, json, expectation), check)
}

/** What a value of a well-known type should be; undefined where it is. */
function brokenExpectation({ typeName }: DescMessage, json: Json): string | undefined {
  switch (typeName) {
    case 'google.protobuf.Timestamp':
    case 'google.protobuf.Duration': {
      const reader = wellKnownReaders.get(typeName)
      return typeof json === 'string' && reader?.read(json) !== undefined ? undefined : reader?.expectation
    }
    case 'google.protobuf.FieldMask':
      return typeof json === 'string' && !json.includes('_')
        ? undefined
        : 'field paths in lowerCamelCase separated by commas'
    case 'google.protobuf.Struct':
      return isObject(json) ? undefined : 'an object'
    case 'google.protobuf.ListValue':
      return Array.isArray(json) ? undefined : 'a list'
    default:
      return undefined
  }
}

function checkAny(json: Json, path: string, check: JsonCheck): boolean {
  if (!isObject(json)) return refuse(invalid(path, json, 'an object with "@type"'), check)
  const { '@type': url, ...rest } = json
  if (url === undefined && Object.keys(rest).length === 0) return true
  const desc = typeof url === 'string' ? check.registry?.getMessage(url.slice(url.lastIndexOf('/') + 1)) : undefined
  if (desc === undefined) {
    return refuse(invalid(pathTo(path, '@type'), url ?? null, 'the URL of a known type'), check)
  }
  if (!hasCustomJsonRepresentation(desc)) return checkMessage(desc, rest, path, check)
  return checkMessage(desc, rest['value'] ?? null, pathTo(path, 'value'), check)
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

function isExtension(desc: DescMessage, key: string, registry: Registry | undefined): boolean {
  if (!key.startsWith('[') || !key.endsWith(']')) return false
  return registry?.getExtension(key.slice(1, -1))?.extendee.typeName === desc.typeName
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
