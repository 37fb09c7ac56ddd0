import { create, type DescEnum, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf'
import { anyPack, hasCustomJsonRepresentation, isWrapperDesc, StringValueSchema } from '@bufbuild/protobuf/wkt'
import * as fc from 'fast-check'

/**
 * Generates messages of a type in protobuf-es's layout, every kind of field among them, so that a serialiser can be
 * compared with toJson. Values that have no JSON (times out of range, NaN in a Struct) are left out.
 */
export function arbitraryMessage(
  desc: DescMessage,
  options: ArbitraryMessageOptions = {},
  depth = 2,
): fc.Arbitrary<Message> {
  return arbitraryNested(desc, depth, options.readable === true)
}

export interface ArbitraryMessageOptions {
  /** Leave out values that can be written but not read: numbers that an enum does not declare, lone surrogates. */
  readonly readable?: boolean
}

/**
 * Whether a JSON text may hold a key with an escape. Tests that compare with JSON.parse leave such texts out: Node 24 reads
 * `{"":1,"\"":1}` as `{"":1,"\\":1}` once it has parsed the latter. Requests are not affected: the wrong key always holds a
 * backslash, so it is never the name of a field.
 */
export function hasEscapedKey(text: string): boolean {
  return /\\(?:[^"\\]|\\.)*":/.test(text)
}

function arbitraryNested(desc: DescMessage, depth: number, readable: boolean): fc.Arbitrary<Message> {
  const wellKnown = arbitraryWellKnown(desc, readable)
  if (wellKnown !== undefined) return wellKnown
  const fields = desc.fields.filter((field) => depth > 0 || !holdsMessage(field))
  const values = fields.map((field) => fc.option(arbitraryField(field, depth, readable), { freq: 2, nil: undefined }))
  return fc.tuple(...values).map((generated) => {
    const message = create(desc)
    for (const [index, value] of generated.entries()) {
      const field = fields[index]
      if (field === undefined || (value === undefined && !isRequired(field))) continue
      const stored = value ?? 0
      const at = field.oneof === undefined ? field.localName : field.oneof.localName
      Object.assign(message, { [at]: field.oneof === undefined ? stored : { case: field.localName, value: stored } })
    }
    return message
  })
}

function isRequired(field: DescField): boolean {
  return field.name === 'needed'
}

function holdsMessage(field: DescField): boolean {
  return field.message !== undefined && !hasCustomJsonRepresentation(field.message)
}

function arbitraryField(field: DescField, depth: number, readable: boolean): fc.Arbitrary<unknown> {
  switch (field.fieldKind) {
    case 'scalar':
      return arbitraryScalar(field.scalar, field.longAsString, readable)
    case 'enum':
      return arbitraryEnum(field.enum, readable)
    case 'message': {
      const wrapped = field.oneof === undefined && isWrapperDesc(field.message) ? field.message.fields[0] : undefined
      return wrapped?.fieldKind === 'scalar'
        ? arbitraryScalar(wrapped.scalar, false, readable)
        : arbitraryStored(field, field.message, depth, readable)
    }
    case 'list':
      return fc.array(arbitraryElement(field, depth, readable), { maxLength: 3 })
    case 'map':
      return fc
        .array(fc.tuple(arbitraryKey(field.mapKey, readable), arbitraryElement(field, depth, readable)), {
          maxLength: 3,
        })
        .map((entries) => Object.fromEntries(entries))
  }
}

function arbitraryElement(
  field: Extract<DescField, { fieldKind: 'list' | 'map' }>,
  depth: number,
  readable: boolean,
): fc.Arbitrary<unknown> {
  if (field.message !== undefined) return arbitraryStored(field, field.message, depth, readable)
  if (field.enum !== undefined) return arbitraryEnum(field.enum, readable)
  return arbitraryScalar(field.scalar ?? ScalarType.STRING, field.fieldKind === 'list' && field.longAsString, readable)
}

/** A Struct is stored as the object it stands for. */
function arbitraryStored(
  field: DescField,
  message: DescMessage,
  depth: number,
  readable: boolean,
): fc.Arbitrary<unknown> {
  const isStruct = message.typeName === 'google.protobuf.Struct' && field.parent.typeName !== 'google.protobuf.Value'
  return isStruct
    ? fc.dictionary(fc.string(), arbitraryJson, { maxKeys: 3 })
    : arbitraryNested(message, depth - 1, readable)
}

const arbitraryJson = fc.jsonValue({ maxDepth: 2 })

function arbitraryKey(scalar: ScalarType, readable: boolean): fc.Arbitrary<string> {
  if (scalar === ScalarType.STRING)
    return fc.oneof(arbitraryText(readable), fc.constantFrom('__proto__', 'constructor', ''))
  return scalar === ScalarType.BOOL ? fc.constantFrom('true', 'false') : fc.nat().map(String)
}

const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\u2028', '\u007f', '\ud800', 'Zürich 世界'),
)

function arbitraryText(readable: boolean): fc.Arbitrary<string> {
  return readable ? anyText.filter((text) => text.isWellFormed()) : anyText
}

function arbitraryEnum(desc: DescEnum, readable: boolean): fc.Arbitrary<number> {
  const known = fc.constantFrom(...desc.values.map((value) => value.number))
  return desc.open && !readable ? fc.oneof(known, fc.integer()) : known
}

function arbitraryScalar(scalar: ScalarType, longAsString: boolean, readable: boolean): fc.Arbitrary<unknown> {
  switch (scalar) {
    case ScalarType.STRING:
      return arbitraryText(readable)
    case ScalarType.BOOL:
      return fc.boolean()
    case ScalarType.BYTES:
      return fc.uint8Array({ maxLength: 20 })
    case ScalarType.DOUBLE:
      return fc.oneof(
        fc.double(),
        fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 1e21, 5e-324),
      )
    case ScalarType.FLOAT:
      return fc.float()
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return fc.integer()
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return fc.nat({ max: 2 ** 31 - 1 })
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64: {
      const long = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })
      return longAsString ? long.map(String) : long
    }
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
  }
}

const arbitraryNanos = fc.oneof(
  fc.constantFrom(0, 1, 999_999_999, 120_000_000, 120_456_000),
  fc.nat({ max: 999_999_999 }),
)

function arbitraryWellKnown(desc: DescMessage, readable: boolean): fc.Arbitrary<Message> | undefined {
  const of = <T>(init: fc.Arbitrary<T>) => init.map((properties) => Object.assign(create(desc), properties))
  switch (desc.typeName) {
    case 'google.protobuf.Timestamp': {
      const edges = fc.constantFrom(-62_135_596_800n, 253_402_300_799n, 0n, -1n)
      const seconds = fc.oneof(edges, fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n }))
      return of(fc.record({ seconds, nanos: arbitraryNanos }))
    }
    case 'google.protobuf.Duration': {
      const seconds = fc.bigInt({ min: 0n, max: 315_576_000_000n })
      const sign = fc.constantFrom(1, -1)
      return of(
        fc.tuple(seconds, arbitraryNanos, sign).map(([s, n, by]) => ({ seconds: s * BigInt(by), nanos: n * by })),
      )
    }
    case 'google.protobuf.FieldMask':
      return of(fc.record({ paths: fc.array(fc.constantFrom('foo', 'foo_bar', 'a.b_c', 'x.y.z')) }))
    case 'google.protobuf.Any':
      return arbitraryText(readable).map((value) => anyPack(StringValueSchema, create(StringValueSchema, { value })))
    case 'google.protobuf.Value':
      return of(arbitraryJson.map((json) => ({ kind: kindOf(json) })))
    case 'google.protobuf.ListValue': {
      const value = desc.fields[0]?.message
      if (value === undefined) throw new Error('ListValue has values')
      return of(fc.record({ values: fc.array(arbitraryNested(value, 1, readable), { maxLength: 3 }) }))
    }
    default: {
      const wrapped = isWrapperDesc(desc) ? desc.fields[0] : undefined
      return wrapped?.fieldKind === 'scalar'
        ? of(fc.record({ value: arbitraryScalar(wrapped.scalar, false, readable) }))
        : undefined
    }
  }
}

/** Leaves of JSON as a Value holds them; lists and objects are left to Struct and ListValue. */
function kindOf(json: unknown) {
  if (typeof json === 'string') return { case: 'stringValue', value: json }
  if (typeof json === 'number') return { case: 'numberValue', value: json }
  if (typeof json === 'boolean') return { case: 'boolValue', value: json }
  return { case: 'nullValue', value: 0 }
}
