import { create, type DescEnum, type DescField, type ScalarType } from '@bufbuild/protobuf'
import { isWrapperDesc } from '@bufbuild/protobuf/wkt'
import { quote, TranscodingError } from '../errors/transcoding-error.ts'
import type { MessageField } from './message-fields.ts'
import { scalarReaders, type TextReader } from './scalar-text.ts'
import { wellKnownReaders } from './well-known-text.ts'

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
