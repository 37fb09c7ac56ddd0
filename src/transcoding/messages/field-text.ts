import { create, type DescEnum, type DescField, type Message, ScalarType } from '@bufbuild/protobuf'
import { base64Decode } from '@bufbuild/protobuf/wire'
import { DurationSchema, FieldMaskSchema, isWrapperDesc, TimestampSchema } from '@bufbuild/protobuf/wkt'
import { quote, TranscodingError } from '../errors/transcoding-error.ts'
import type { MessageField } from './message-fields.ts'

/** Reads the text of a path variable or query parameter as the value of one field, or of one element of a list. */
export interface TextReader {
  /** @returns the value as protobuf-es stores it; undefined if the text is not a value of the field */
  readonly read: (text: string) => unknown
  /** What is expected, for messages: "a whole number from 0 to 4294967295". */
  readonly expectation: string
}

/**
 * Finds how a field is written as text: scalars, enums, lists of these, wrappers, Timestamp, Duration and FieldMask.
 *
 * @returns undefined for fields without a text form: other messages, lists of messages, maps
 */
export function findTextReader(field: DescField): TextReader | undefined {
  switch (field.fieldKind) {
    case 'scalar':
      return readerOfScalar(field.scalar, field.longAsString)
    case 'enum':
      return readerOfEnum(field.enum)
    case 'message':
      return isWrapperDesc(field.message) ? readerOfWrapper(field) : wellKnownReaders.get(field.message.typeName)
    case 'list':
      if (field.listKind === 'scalar') return readerOfScalar(field.scalar, field.longAsString)
      return field.listKind === 'enum' ? readerOfEnum(field.enum) : undefined
    case 'map':
      return undefined
  }
}

/** @throws TranscodingError INVALID_VALUE, naming the field as the caller wrote it */
export function readText(reader: TextReader, name: string, text: string): unknown {
  const value = reader.read(text)
  if (value !== undefined) return value
  const problem = `${quote(name)}: ${quote(text)} is not ${reader.expectation}`
  throw new TranscodingError('INVALID_VALUE', problem, { field: name, value: text })
}

function readerOfScalar(scalar: ScalarType, longAsString: boolean): TextReader {
  const reader = scalarReaders[scalar]
  return longAsString ? { ...reader, read: (text) => (reader.read(text) as bigint | undefined)?.toString() } : reader
}

/** Names in any case, or the number of a value that the enum declares. */
function readerOfEnum(desc: DescEnum): TextReader {
  const numbers = new Map<string, number>()
  for (const { name, jsonName, number } of desc.values) {
    numbers.set(String(number), number).set(jsonName.toUpperCase(), number).set(name.toUpperCase(), number)
  }
  const names = desc.values.map((value) => value.jsonName)
  return {
    read: (text) => numbers.get(text.toUpperCase()),
    expectation: describeEnum(names),
  }
}

/** Lists the values of an enum, if they are few. */
export function describeEnum(names: readonly string[]): string {
  const known = names.filter((name) => !name.endsWith('UNSPECIFIED'))
  return known.length > 12 ? 'a known name' : `one of ${known.join(', ')}`
}

function readerOfWrapper(field: MessageField): TextReader | undefined {
  const wrapped = field.message.fields[0]
  if (wrapped?.fieldKind !== 'scalar') return undefined
  const reader = readerOfScalar(wrapped.scalar, wrapped.longAsString)
  // protobuf-es stores the bare value, except within a oneof, where it stores the wrapper.
  if (field.oneof === undefined) return reader
  const read = (text: string) => {
    const value = reader.read(text)
    return value === undefined ? undefined : Object.assign(create(field.message), { value })
  }
  return { ...reader, read }
}

const wholeNumber = /^-?[0-9]+$/
const decimalNumber = /^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/
const base64 = /^[A-Za-z0-9+/_-]*(={0,2})$/
/** More than any 64-bit number has. Parsing a bigint takes time quadratic in its length. */
const MAX_WHOLE_NUMBER_LENGTH = 40
const MAX_FLOAT = 3.4028234663852886e38

const int32 = {
  read: wholeNumbersAsNumber(-(2n ** 31n), 2n ** 31n - 1n),
  expectation: 'a whole number from -2147483648 to 2147483647',
}
const uint32 = {
  read: wholeNumbersAsNumber(0n, 2n ** 32n - 1n),
  expectation: 'a whole number from 0 to 4294967295',
}
const int64 = {
  read: (text: string) => readWholeNumber(text, -(2n ** 63n), 2n ** 63n - 1n),
  expectation: 'a whole number of 64 bits',
}
const uint64 = {
  read: (text: string) => readWholeNumber(text, 0n, 2n ** 64n - 1n),
  expectation: 'a whole number of 64 bits, not negative',
}

/** The reader of each scalar type. Texts are not JSON: `1e3` is not an integer, and quotes are part of a string. */
export const scalarReaders: Readonly<Record<ScalarType, TextReader>> = {
  [ScalarType.DOUBLE]: { read: readDouble, expectation: 'a number, NaN, Infinity or -Infinity' },
  [ScalarType.FLOAT]: { read: readFloat, expectation: 'a number of single precision, NaN, Infinity or -Infinity' },
  [ScalarType.INT64]: int64,
  [ScalarType.SINT64]: int64,
  [ScalarType.SFIXED64]: int64,
  [ScalarType.UINT64]: uint64,
  [ScalarType.FIXED64]: uint64,
  [ScalarType.INT32]: int32,
  [ScalarType.SINT32]: int32,
  [ScalarType.SFIXED32]: int32,
  [ScalarType.UINT32]: uint32,
  [ScalarType.FIXED32]: uint32,
  [ScalarType.BOOL]: { read: readBool, expectation: 'true or false' },
  [ScalarType.STRING]: { read: (text) => text, expectation: 'a string' },
  [ScalarType.BYTES]: { read: readBytes, expectation: 'base64' },
}

function wholeNumbersAsNumber(min: bigint, max: bigint) {
  return (text: string) => {
    const value = readWholeNumber(text, min, max)
    return value === undefined ? undefined : Number(value)
  }
}

/** Reads decimal digits, leading zeros allowed, within bounds. */
function readWholeNumber(text: string, min: bigint, max: bigint): bigint | undefined {
  if (text.length > MAX_WHOLE_NUMBER_LENGTH || !wholeNumber.test(text)) return undefined
  const value = BigInt(text)
  return value < min || value > max ? undefined : value
}

/** Reads a decimal number, exponent allowed, or NaN, Infinity, -Infinity; undefined also where it overflows. */
function readDouble(text: string): number | undefined {
  if (text === 'NaN') return Number.NaN
  if (text === 'Infinity') return Number.POSITIVE_INFINITY
  if (text === '-Infinity') return Number.NEGATIVE_INFINITY
  if (!decimalNumber.test(text)) return undefined
  const value = Number(text)
  return Number.isFinite(value) ? value : undefined
}

/** As readDouble, in the range of single precision; not rounded within it. */
function readFloat(text: string): number | undefined {
  const value = readDouble(text)
  if (value === undefined || !Number.isFinite(value) || Math.abs(value) <= MAX_FLOAT) return value
  // A number that exceeds the largest float by less than half a step, such as 3.4028235e38, means the largest float.
  const rounded = Math.fround(value)
  return Number.isFinite(rounded) ? rounded : undefined
}

function readBool(text: string): boolean | undefined {
  if (text === 'true') return true
  return text === 'false' ? false : undefined
}

/** Reads base64 in either alphabet, padding optional. */
function readBytes(text: string): Uint8Array | undefined {
  const padding = base64.exec(text)?.[1]
  if (padding === undefined) return undefined
  const digits = text.length - padding.length
  if (digits % 4 === 1 || (padding !== '' && text.length % 4 !== 0)) return undefined
  return text === '' ? new Uint8Array(0) : base64Decode(text)
}

const rfc3339 = /^(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-](\d{2}):(\d{2}))$/
const durationText = /^(-?)(\d{1,12})(?:\.(\d{1,9}))?s$/
const fieldMaskPath = /^[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*$/

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z: the range of a Timestamp. */
export const MIN_TIMESTAMP_SEC = -62_135_596_800
export const MAX_TIMESTAMP_SEC = 253_402_300_799
/** About 10,000 years: the range of a Duration, in both directions. */
const MAX_DURATION_SEC = 315_576_000_000n

interface SecondsAndNanos {
  readonly seconds: bigint
  readonly nanos: number
}

/**
 * Reads an RFC 3339 time with an offset. Days that do not exist are refused: Date.parse reads 30 February as 2 March, and
 * 24:00 as the next day.
 *
 * @returns undefined if the text is not such a time, or is outside the years 1 to 9999
 */
function parseTimestampText(text: string): SecondsAndNanos | undefined {
  const match = rfc3339.exec(text)
  if (match === null) return undefined
  const [, date = '', time = '', fraction, , offsetHours = '00', offsetMinutes = '00'] = match
  if (!isCalendarDay(date) || !(time < '24') || Number(offsetHours) > 23 || Number(offsetMinutes) > 59) return undefined

  const localMs = Date.parse(`${date}T${time}Z`)
  const sign = match[4]?.startsWith('-') ? -1 : 1
  const seconds = localMs / 1000 - sign * (Number(offsetHours) * 3600 + Number(offsetMinutes) * 60)
  // Minutes and seconds above 59 give NaN, which fails both comparisons.
  if (!(seconds >= MIN_TIMESTAMP_SEC && seconds <= MAX_TIMESTAMP_SEC)) return undefined
  return { seconds: BigInt(seconds), nanos: parseNanos(fraction) }
}

/**
 * Reads a duration of seconds, `1.5s`.
 *
 * @returns undefined if the text is not a duration, or is longer than about 10,000 years
 */
function parseDurationText(text: string): SecondsAndNanos | undefined {
  const match = durationText.exec(text)
  if (match === null) return undefined
  const [, minus, whole = '', fraction] = match
  const seconds = BigInt(whole)
  const nanos = parseNanos(fraction)
  if (seconds > MAX_DURATION_SEC) return undefined
  return minus === '-' ? { seconds: -seconds, nanos: 0 - nanos } : { seconds, nanos }
}

/**
 * Reads the paths of a field mask, separated by commas, in the names of JSON or of proto.
 *
 * @returns proto names; undefined if one is not a path
 */
function parseFieldMaskText(text: string): string[] | undefined {
  if (text === '') return []
  const paths = text.split(',')
  if (!paths.every((path) => fieldMaskPath.test(path))) return undefined
  return paths.map((path) => path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
}

/** How messages are read that JSON writes as one string, wrappers excepted. */
export const wellKnownReaders: ReadonlyMap<string, TextReader> = new Map([
  [
    TimestampSchema.typeName,
    {
      read: (text) => ifRead(parseTimestampText(text), (time) => create(TimestampSchema, time)),
      expectation: 'an RFC 3339 time with an offset, such as 2025-01-31T12:00:00Z',
    },
  ],
  [
    DurationSchema.typeName,
    {
      read: (text) => ifRead(parseDurationText(text), (duration) => create(DurationSchema, duration)),
      expectation: 'a duration in seconds, such as 1.5s',
    },
  ],
  [
    FieldMaskSchema.typeName,
    {
      read: (text) => ifRead(parseFieldMaskText(text), (paths) => create(FieldMaskSchema, { paths })),
      expectation: 'a list of field paths separated by commas',
    },
  ],
])

function ifRead<T>(value: T | undefined, make: (value: T) => Message): Message | undefined {
  return value === undefined ? undefined : make(value)
}

function isCalendarDay(date: string): boolean {
  const ms = Date.parse(`${date}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(date)
}

function parseNanos(fraction: string | undefined): number {
  return fraction === undefined ? 0 : Number(fraction.padEnd(9, '0'))
}
