import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  isMessage,
  type JsonObject,
  type Message,
  type MessageInitShape,
  type Registry,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf'
import { FeatureSet_FieldPresence, hasCustomJsonRepresentation, type Timestamp } from '@bufbuild/protobuf/wkt'
import { MAX_TIMESTAMP_SEC, MIN_TIMESTAMP_SEC } from './field-text.ts'

/** Writes a message as JSON text. Takes a message, or an object from which `create` would make one. */
export type JsonSerializer = (message: object) => string

/**
 * Compiles a serialiser that writes what `JSON.stringify(toJson(desc, message, { alwaysEmitImplicit: true }))` of protobuf-es writes, but makes
 * no message and no object for JSON.stringify: a page of 50 payments takes a fifth of the time. It throws where toJson throws. A message that
 * holds fields of a rare kind, at any depth, is left to protobuf-es: maps of other values than texts, bytes, well-known types except Timestamp, and
 * fields of other syntaxes than proto3.
 *
 * For each message type a function is generated that appends text, `s += ',"id":' + h0(m.id)`. The generated text holds only names of
 * the descriptor, quoted as JSON.
 *
 * @param registry - finds the types in google.protobuf.Any and extensions
 */
export function compileJsonSerializer(desc: DescMessage, registry?: Registry): JsonSerializer {
  if (isPlain(desc, new Set()))
    return writerOf(
      desc,
      newCompilation(() => false),
    )
  return (message) => JSON.stringify(jsonOf(desc, message, registry))
}

/** Compiles a serialiser of one field of a message, for `response_body`. An unset message is written as an empty one, as grpc-gateway does; other unset fields as null. */
export function compileFieldSerializer(output: DescMessage, field: DescField, registry?: Registry): JsonSerializer {
  const isEmptyWritten = field.fieldKind === 'message' && !hasCustomJsonRepresentation(field.message)
  const unset = isEmptyWritten ? jsonOf(field.message, {}, registry) : null
  return (message) => JSON.stringify((jsonOf(output, message, registry) as JsonObject)[field.jsonName] ?? unset)
}

function jsonOf(desc: DescMessage, given: object, registry: Registry | undefined) {
  const message = isMessage(given, desc) ? given : create(desc, given as MessageInitShape<DescMessage>)
  return toJson(desc, message, { alwaysEmitImplicit: true, ...(registry && { registry }) })
}

/** A message as JSON text. */
export interface StableJson {
  readonly text: string
  /** Equal for messages that differ only in volatile fields. */
  readonly stable: string
}

/**
 * Compiles a serialiser that writes a message and finds the part of the text that is stable, in one pass: a second pass would double the
 * time. Volatile fields are written between marks that JSON text never holds.
 *
 * @param isVolatile - whether a field may change although the resource does not
 * @returns undefined where the message has a field of a rare kind
 */
export function compileStableJsonSerializer(
  desc: DescMessage,
  isVolatile: (field: DescField) => boolean,
): ((message: object) => StableJson) | undefined {
  if (!isPlain(desc, new Set())) return undefined
  const write = writerOf(desc, newCompilation(isVolatile))
  return (message) => {
    const parts = write(message).split(MARK)
    return { text: parts.join(''), stable: parts.filter((_, at) => at % 2 === 0).join('') }
  }
}

/** A character that JSON escapes within strings. */
const MARK = '\0'
const MARKED = JSON.stringify(MARK)

function isPlain(desc: DescMessage, seen: Set<DescMessage>): boolean {
  if (isTimestamp(desc) || seen.has(desc)) return true
  seen.add(desc)
  if (desc.file.proto.syntax !== 'proto3' || hasCustomJsonRepresentation(desc)) return false
  return desc.fields.every((field) => {
    if (field.fieldKind === 'map' && !isTextMap(field)) return false
    if (field.enum?.typeName === 'google.protobuf.NullValue' || field.scalar === ScalarType.BYTES) return false
    return field.message === undefined || isPlain(field.message, seen)
  })
}

function isTextMap(field: DescField): boolean {
  return field.fieldKind === 'map' && field.mapKey === ScalarType.STRING && field.scalar === ScalarType.STRING
}

function isTimestamp({ typeName }: DescMessage): boolean {
  return typeName === 'google.protobuf.Timestamp'
}

type Write = (value: unknown) => string

/** The writers of one serialiser, one for each message type. */
interface Compilation {
  readonly writers: Map<DescMessage, Write>
  readonly writeTimestamp: (timestamp: Timestamp) => string
  readonly isMarked: (field: DescField) => boolean
}

function newCompilation(isMarked: (field: DescField) => boolean): Compilation {
  return { writers: new Map(), writeTimestamp: createTimestampWriter(), isMarked }
}

function writerOf(desc: DescMessage, compilation: Compilation): Write {
  const { writers, writeTimestamp } = compilation
  const known = writers.get(desc)
  if (known !== undefined) return known
  // A message may hold itself: its own fields look the writer up when they are written.
  writers.set(desc, (value) => writerOf(desc, compilation)(value))
  const writer = isTimestamp(desc)
    ? (value: unknown) => `"${writeTimestamp(timeOf(value))}"`
    : compileMessage(desc, compilation)
  writers.set(desc, writer)
  return writer
}

function writerOfField(field: DescField, compilation: Compilation): Write {
  if (field.message !== undefined) return writerOf(field.message, compilation)
  return field.enum === undefined ? scalarWriter(field) : enumWriter(field.enum)
}

function compileMessage(desc: DescMessage, compilation: Compilation): Write {
  const { isMarked } = compilation
  const fields = desc.fields.toSorted((a, b) => a.number - b.number)
  const firstAlwaysWritten = fields.findIndex((field) => !hasPresence(field))
  // After a field that is always written, a comma always stands; before it, only if another field was written.
  const statements = fields.map((field, at) => {
    const isBehindAnother = firstAlwaysWritten >= 0 && at > firstAlwaysWritten
    const statement = statementOf(field, `h${at}`, isBehindAnother)
    if (!isMarked(field)) return statement
    // The next field would take the mark for a field, and write a comma.
    if (!isBehindAnother) throw new TypeError(`${String(field)} is volatile, and no field before it is always written`)
    return `s += ${MARKED}; ${statement}; s += ${MARKED}`
  })
  const body = `'use strict'; return (m) => { check(m); let v, s = '{'; ${statements.join('; ')}; return s + '}' }`
  // oxlint-disable-next-line typescript/no-implied-eval -- only names of descriptors, never a caller's text
  const factory = new Function('check', 'list', 'map', 'text', ...fields.map((_, at) => `h${at}`), body) as (
    ...values: readonly unknown[]
  ) => Write
  const writes = fields.map((field) => writerOfField(field, compilation))
  return factory(checkTypeOf(desc), writeList, writeTextMap, escape, ...writes)
}

/** The statement that appends a field to the text `s`, if it is to be written. */
function statementOf(field: DescField, write: string, isBehindAnother: boolean): string {
  const property = `m[${JSON.stringify(field.localName)}]`
  const name = `${JSON.stringify(field.jsonName)}:`
  const before = isBehindAnother ? `,${name}` : name
  const comma = isBehindAnother ? '' : "if (s !== '{') s += ','; "
  const add = isText(field)
    ? `s += ${JSON.stringify(`${before}"`)} + text(v) + '"'`
    : `s += ${JSON.stringify(before)} + ${write}(v)`
  if (field.fieldKind === 'map') return `${comma}s += ${JSON.stringify(before)} + map(${property})`
  if (field.oneof !== undefined) {
    const selected = `m[${JSON.stringify(field.oneof.localName)}]`
    return `if (${selected}?.case === ${JSON.stringify(field.localName)}) { v = ${selected}.value; ${comma}${add} }`
  }
  if (hasPresence(field)) return `if ((v = ${property}) != null) { ${comma}${add} }`
  if (field.fieldKind === 'list') return `${comma}s += ${JSON.stringify(before)} + list(${property}, ${write})`
  return `${comma}if ((v = ${property}) == null) s += ${JSON.stringify(before + unsetText(field))}; else ${add}`
}

function isText({ fieldKind, scalar }: DescField): boolean {
  return fieldKind === 'scalar' && scalar === ScalarType.STRING
}

function hasPresence(field: DescField): boolean {
  return field.fieldKind !== 'list' && field.fieldKind !== 'map' && field.presence !== FeatureSet_FieldPresence.IMPLICIT
}

function checkTypeOf({ typeName }: DescMessage): (message: Partial<Message>) => void {
  return ({ $typeName = typeName }) => {
    if ($typeName !== typeName) throw new TypeError(`${$typeName} is no ${typeName}`)
  }
}

function writeList(list: readonly unknown[] | undefined, write: Write): string {
  if (list === undefined || list.length === 0) return '[]'
  let text = '['
  for (let index = 0; index < list.length; index++) text += index === 0 ? write(list[index]) : `,${write(list[index])}`
  return `${text}]`
}

function writeTextMap(map: Readonly<Record<string, string>> = {}): string {
  const entries = Object.entries(map).map(([key, value]) => `${toJsonString(key)}:${toJsonString(value)}`)
  return `{${entries.join(',')}}`
}

/** Completes a time without seconds or nanos, as `create` does. */
function timeOf(value: unknown): Timestamp {
  const { seconds = 0n, nanos = 0 } = value as Partial<Timestamp>
  return { $typeName: 'google.protobuf.Timestamp', seconds, nanos }
}

const longs = new Set<ScalarType | undefined>([
  ScalarType.INT64,
  ScalarType.SINT64,
  ScalarType.SFIXED64,
  ScalarType.UINT64,
  ScalarType.FIXED64,
])

function unsetText({ scalar, enum: ofEnum }: DescField): string {
  if (ofEnum !== undefined) return enumWriter(ofEnum)(0)
  if (scalar === ScalarType.STRING) return '""'
  if (scalar === ScalarType.BOOL) return 'false'
  return longs.has(scalar) ? '"0"' : '0'
}

function enumWriter(desc: DescEnum): Write {
  const names = new Map<unknown, string>(desc.values.map(({ number, jsonName }) => [number, JSON.stringify(jsonName)]))
  return (value) => {
    const name = names.get(value)
    if (name !== undefined) return name
    if (typeof value !== 'number') throw wrongType(desc, value)
    return String(value)
  }
}

function scalarWriter(field: DescField): Write {
  if (field.scalar === ScalarType.STRING) {
    return (value) => {
      if (typeof value !== 'string') throw wrongType(field, value)
      return toJsonString(value)
    }
  }
  if (field.scalar === ScalarType.BOOL) {
    return (value) => {
      if (typeof value !== 'boolean') throw wrongType(field, value)
      return value ? 'true' : 'false'
    }
  }
  if (longs.has(field.scalar)) {
    return (value) => {
      if (typeof value === 'bigint' || Number.isInteger(value)) return `"${value as bigint}"`
      if (typeof value === 'string') return toJsonString(value)
      throw wrongType(field, value)
    }
  }
  return (value) => {
    if (typeof value !== 'number') throw wrongType(field, value)
    return Number.isFinite(value) ? String(value) : `"${value}"`
  }
}

/** In UTF-16 units. Up to this length a loop is faster than a regular expression. */
const MAX_LOOPED_LENGTH = 32

// oxlint-disable-next-line no-control-regex -- the characters that JSON must escape
const NEEDS_ESCAPE = /["\\\u0000-\u001f\ud800-\udfff]/

/** As JSON.stringify writes a string. */
function toJsonString(text: string): string {
  return `"${escape(text)}"`
}

/** Escapes a text to stand between quotes. */
function escape(text: unknown): string {
  if (typeof text !== 'string') throw new TypeError(`cannot encode to JSON: ${typeof text} is no string`)
  if (text.length > MAX_LOOPED_LENGTH) return NEEDS_ESCAPE.test(text) ? JSON.stringify(text).slice(1, -1) : text
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x20 || code === 0x22 || code === 0x5c || (code >= 0xd800 && code <= 0xdfff))
      return JSON.stringify(text).slice(1, -1)
  }
  return text
}

function wrongType(desc: DescField | DescEnum, value: unknown): Error {
  return new Error(`cannot encode ${String(desc)} to JSON: ${typeof value} is of the wrong type`)
}

const secondsPerDay = 86_400
const twoDigits: readonly string[] = Array.from({ length: 60 }, (_, number) => String(number).padStart(2, '0'))

/** The minutes of a day: `T00:00:`, `T00:01:`, … */
const minuteTexts: readonly string[] = Array.from({ length: 24 * 60 }, (_, minute) => {
  return `T${twoDigits[Math.floor(minute / 60)]}:${twoDigits[minute % 60]}:`
})

/**
 * Creates a writer of google.protobuf.Timestamp in ProtoJSON: `2025-01-31T12:00:00Z`, with 3, 6 or 9 digits for a fraction of a
 * second. It keeps the text of the last day, since the times of one answer are close together: 60 ns a time, where toISOString
 * takes 450.
 *
 * @returns a writer that throws for times outside the years 1 to 9999 and for nanoseconds out of range
 */
function createTimestampWriter(): (timestamp: Timestamp) => string {
  let lastDay = Number.NaN
  let lastDate = ''

  return ({ seconds, nanos }) => {
    const sec = Number(seconds)
    if (!(sec >= MIN_TIMESTAMP_SEC && sec <= MAX_TIMESTAMP_SEC && nanos >= 0 && nanos <= 999_999_999)) {
      throw new Error(`cannot encode google.protobuf.Timestamp to JSON: ${seconds} s and ${nanos} ns are out of range`)
    }
    const day = Math.floor(sec / secondsPerDay)
    if (day !== lastDay) {
      lastDate = new Date(day * secondsPerDay * 1000).toISOString().slice(0, 10)
      lastDay = day
    }
    const secOfDay = sec - day * secondsPerDay
    const minute = Math.floor(secOfDay / 60)
    const minuteText = minuteTexts[minute] ?? ''
    const secondText = twoDigits[secOfDay - minute * 60] ?? ''
    if (nanos === 0) return `${lastDate}${minuteText}${secondText}Z`
    return `${lastDate}${minuteText}${secondText}${fractionOf(nanos)}Z`
  }
}

function fractionOf(nanos: number): string {
  if (nanos % 1_000_000 === 0) return `.${String(nanos / 1_000_000).padStart(3, '0')}`
  const digits = String(nanos).padStart(9, '0')
  return digits.endsWith('000') ? `.${digits.slice(0, 6)}` : `.${digits}`
}
