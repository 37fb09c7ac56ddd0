import { create, type DescEnum, type DescField, type DescMessage, type ScalarType } from '@bufbuild/protobuf'
import { isWrapperDesc } from '@bufbuild/protobuf/wkt'
import { quote, TranscodingError } from '../transcoding-error.ts'
import type { MessageField } from './message-fields.ts'
import { scalarExpectations, scalarReaders } from './scalar-text.ts'
import { durationExpectation, findWellKnownReader, timestampExpectation } from './well-known-text.ts'

/** Reads the text of a path variable or query parameter as the value of one field, or of one element of a list. */
export interface TextReader {
  /** @returns the value as protobuf-es stores it; undefined if the text is not a value of the field */
  readonly read: (text: string) => unknown
  /** What is expected, for messages: "true or false". */
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
      return isWrapperDesc(field.message) ? readerOfWrapper(field) : readerOfWellKnown(field.message)
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
  const readScalar = scalarReaders[scalar]
  const expectation = scalarExpectations[scalar]
  if (!longAsString) return { read: readScalar, expectation }
  return { read: (text) => readScalar(text)?.toString(), expectation }
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

const wellKnownExpectations: Readonly<Record<string, string>> = {
  'google.protobuf.Timestamp': timestampExpectation,
  'google.protobuf.Duration': durationExpectation,
  'google.protobuf.FieldMask': 'a list of field paths separated by commas',
}

function readerOfWellKnown(message: DescMessage): TextReader | undefined {
  const read = findWellKnownReader(message)
  return read && { read, expectation: wellKnownExpectations[message.typeName] ?? message.typeName }
}
