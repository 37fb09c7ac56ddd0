import { type DescEnum, type DescField, type DescMessage, type Registry, ScalarType } from '@bufbuild/protobuf'
import { hasCustomJsonRepresentation, isWrapperDesc } from '@bufbuild/protobuf/wkt'
import { quote, TranscodingError } from '../transcoding-error.ts'
import { describeEnum } from './field-text.ts'
import type { Json } from './json-text.ts'
import { fieldsOf } from './message-fields.ts'
import { readBytes, readDouble, readFloat, readWholeNumber, scalarExpectations } from './scalar-text.ts'
import { durationExpectation, parseDurationText, parseTimestampText, timestampExpectation } from './well-known-text.ts'

/** A singular field, an element of a list or a value of a map. */
type Shape =
  | { readonly fieldKind: 'scalar'; readonly scalar: ScalarType }
  | { readonly fieldKind: 'enum'; readonly enum: DescEnum }
  | { readonly fieldKind: 'message'; readonly message: DescMessage }

/**
 * Checks a JSON value against a message before protobuf-es decodes it. protobuf-es refuses most of this too, but
 * does not say where. It also reads 30 February as 2 March, `1sec` as one second and `0x10` as 16, rounds 64-bit numbers beyond
 * 2^53, and keeps numbers that an enum does not declare.
 *
 * @param path - where the value stands in the body, such as `payments[2].fee`; empty for the body itself
 * @throws TranscodingError UNKNOWN_JSON_FIELD, DUPLICATE_JSON_FIELD, ONEOF_CONFLICT, INVALID_VALUE
 */
export function checkMessage(desc: DescMessage, json: Json, path: string, registry: Registry | undefined): void {
  if (hasCustomJsonRepresentation(desc)) return checkWellKnown(desc, json, path, registry)
  if (!isObject(json)) throw invalid(path, json, 'an object')
  const given = new Map<DescField, string>()
  for (const [key, value] of Object.entries(json)) {
    const field = fieldsOf(desc).get(key)
    if (field === undefined) {
      if (isExtension(desc, key, registry)) continue
      throw unknownField(desc, key, path)
    }
    refuseTwice(field, key, value, given, path)
    checkField(field, value, pathTo(path, key), registry)
  }
}

/** As checkMessage, for the value of one field. JSON null leaves any field unset. */
export function checkField(field: DescField, json: Json, path: string, registry: Registry | undefined): void {
  if (json === null) return
  switch (field.fieldKind) {
    case 'list': {
      if (!Array.isArray(json)) throw invalid(path, json, 'a list')
      const shape = shapeOfElement(field, field.listKind)
      for (const [index, item] of json.entries()) checkSingular(shape, item, `${path}[${index}]`, registry)
      return
    }
    case 'map': {
      if (!isObject(json)) throw invalid(path, json, 'an object')
      const shape = shapeOfElement(field, field.mapKind)
      for (const [key, item] of Object.entries(json)) {
        checkMapKey(field.mapKey, key, path)
        checkSingular(shape, item, pathTo(path, key), registry)
      }
      return
    }
    case 'scalar':
    case 'enum':
    case 'message':
      return checkSingular(field, json, path, registry)
  }
}

/** The shape of an element of a list or map. Their descriptors name its kind in another property than a field's. */
function shapeOfElement(field: DescField, fieldKind: 'scalar' | 'enum' | 'message'): Shape {
  return { ...field, fieldKind } as Shape
}

function checkSingular(shape: Shape, json: Json, path: string, registry: Registry | undefined): void {
  switch (shape.fieldKind) {
    case 'scalar':
      return checkScalar(shape.scalar, json, path)
    case 'enum':
      return checkEnum(shape.enum, json, path)
    case 'message':
      return checkMessage(shape.message, json, path, registry)
  }
}

function checkScalar(scalar: ScalarType, json: Json, path: string): void {
  if (!isScalar(scalar, json)) throw invalid(path, json, scalarExpectations[scalar])
}

function isScalar(scalar: ScalarType, json: Json): boolean {
  switch (scalar) {
    case ScalarType.STRING:
      // A lone surrogate cannot be encoded as UTF-8.
      return typeof json === 'string' && json.isWellFormed()
    case ScalarType.BOOL:
      return typeof json === 'boolean'
    case ScalarType.BYTES:
      return typeof json === 'string' && readBytes(json) !== undefined
    case ScalarType.DOUBLE:
      return typeof json === 'number'
        ? Number.isFinite(json)
        : typeof json === 'string' && readDouble(json) !== undefined
    case ScalarType.FLOAT:
      if (typeof json !== 'number' && typeof json !== 'string') return false
      return (typeof json === 'string' || Number.isFinite(json)) && readFloat(String(json)) !== undefined
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return isWholeNumber(json, -(2n ** 31n), 2n ** 31n - 1n)
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return isWholeNumber(json, 0n, 2n ** 32n - 1n)
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return isWholeNumber(json, -(2n ** 63n), 2n ** 63n - 1n)
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return isWholeNumber(json, 0n, 2n ** 64n - 1n)
  }
}

/** A JSON number beyond 2^53 has lost its last digits: such numbers are written as strings. */
function isWholeNumber(json: Json, min: bigint, max: bigint): boolean {
  if (typeof json === 'string') return readWholeNumber(json, min, max) !== undefined
  return typeof json === 'number' && Number.isSafeInteger(json) && json >= min && json <= max
}

/** Names exactly as declared, or the number of a declared value. */
function checkEnum(desc: DescEnum, json: Json, path: string): void {
  if (json === null && desc.typeName === 'google.protobuf.NullValue') return
  if (typeof json === 'number' && desc.values.some((value) => value.number === json)) return
  if (typeof json === 'string' && desc.values.some((value) => value.name === json || value.jsonName === json)) return
  const names = desc.values.map((value) => value.jsonName)
  throw invalid(path, json, describeEnum(names))
}

function checkMapKey(scalar: ScalarType, key: string, path: string): void {
  const fits = scalar === ScalarType.BOOL ? key === 'true' || key === 'false' : isScalar(scalar, key)
  if (!fits) throw invalid(path, key, `a map key: ${scalarExpectations[scalar]}`)
}

function checkWellKnown(desc: DescMessage, json: Json, path: string, registry: Registry | undefined): void {
  switch (desc.typeName) {
    case 'google.protobuf.Timestamp':
      if (typeof json === 'string' && parseTimestampText(json) !== undefined) return
      throw invalid(path, json, timestampExpectation)
    case 'google.protobuf.Duration':
      if (typeof json === 'string' && parseDurationText(json) !== undefined) return
      throw invalid(path, json, durationExpectation)
    case 'google.protobuf.FieldMask':
      if (typeof json === 'string' && !json.includes('_')) return
      throw invalid(path, json, 'field paths in lowerCamelCase separated by commas')
    case 'google.protobuf.Struct':
      if (isObject(json)) return
      throw invalid(path, json, 'an object')
    case 'google.protobuf.ListValue':
      if (Array.isArray(json)) return
      throw invalid(path, json, 'a list')
    case 'google.protobuf.Any':
      return checkAny(json, path, registry)
    default: {
      const wrapped = isWrapperDesc(desc) ? desc.fields[0] : undefined
      if (wrapped?.fieldKind === 'scalar') checkScalar(wrapped.scalar, json, path)
    }
  }
}

function checkAny(json: Json, path: string, registry: Registry | undefined): void {
  if (!isObject(json)) throw invalid(path, json, 'an object with "@type"')
  const { '@type': url, ...rest } = json
  if (url === undefined && Object.keys(rest).length === 0) return
  const desc = typeof url === 'string' ? registry?.getMessage(url.slice(url.lastIndexOf('/') + 1)) : undefined
  if (desc === undefined) throw invalid(pathTo(path, '@type'), url ?? null, 'the URL of a known type')
  if (!hasCustomJsonRepresentation(desc)) return checkMessage(desc, rest, path, registry)
  checkMessage(desc, rest['value'] ?? null, pathTo(path, 'value'), registry)
}

function refuseTwice(field: DescField, key: string, json: Json, given: Map<DescField, string>, path: string): void {
  const where = pathTo(path, key)
  if (given.has(field)) {
    const problem = `${quote(where)} is given twice, as ${quote(given.get(field) ?? key)} and ${quote(key)}`
    throw new TranscodingError('DUPLICATE_JSON_FIELD', problem, { field: where })
  }
  const other = json === null ? undefined : field.oneof?.fields.find((member) => given.has(member))
  if (other !== undefined) {
    const problem = `${quote(where)} and ${quote(pathTo(path, given.get(other) ?? other.jsonName))} exclude each other`
    throw new TranscodingError('ONEOF_CONFLICT', `${problem}: give one of them`, { field: where })
  }
  if (json !== null || field.oneof === undefined) given.set(field, key)
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
