import { create, type DescEnum, type DescField, type DescMessage, type Message, ScalarType } from '@bufbuild/protobuf'
import { anyPack, hasCustomJsonRepresentation, isWrapperDesc, StringValueSchema } from '@bufbuild/protobuf/wkt'
import * as fc from 'fast-check'

/**
 * Generates messages of a type in protobuf-es's layout, every kind of field among them, so that a serialiser can be held
 * against toJson. Values that have no JSON (times out of range, NaN in a Struct) are left out.
 */
export function arbitraryMessage(desc: DescMessage, depth = 2): fc.Arbitrary<Message> {
  const wellKnown = arbitraryWellKnown(desc)
  if (wellKnown !== undefined) return wellKnown
  const fields = desc.fields.filter((field) => depth > 0 || !holdsMessage(field))
  const values = fields.map((field) => fc.option(arbitraryField(field, depth), { freq: 2, nil: undefined }))
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

function arbitraryField(field: DescField, depth: number): fc.Arbitrary<unknown> {
  switch (field.fieldKind) {
    case 'scalar':
      return arbitraryScalar(field.scalar, field.longAsString)
    case 'enum':
      return arbitraryEnum(field.enum)
    case 'message': {
      const wrapped = field.oneof === undefined && isWrapperDesc(field.message) ? field.message.fields[0] : undefined
      return wrapped?.fieldKind === 'scalar'
        ? arbitraryScalar(wrapped.scalar, false)
        : arbitraryStored(field, field.message, depth)
    }
    case 'list':
      return fc.array(arbitraryElement(field, depth), { maxLength: 3 })
    case 'map':
      return fc
        .array(fc.tuple(arbitraryKey(field.mapKey), arbitraryElement(field, depth)), { maxLength: 3 })
        .map((entries) => Object.fromEntries(entries))
  }
}

function arbitraryElement(
  field: Extract<DescField, { fieldKind: 'list' | 'map' }>,
  depth: number,
): fc.Arbitrary<unknown> {
  if (field.message !== undefined) return arbitraryStored(field, field.message, depth)
  if (field.enum !== undefined) return arbitraryEnum(field.enum)
  return arbitraryScalar(field.scalar ?? ScalarType.STRING, field.fieldKind === 'list' && field.longAsString)
}

/** A Struct is stored as the object it stands for. */
function arbitraryStored(field: DescField, message: DescMessage, depth: number): fc.Arbitrary<unknown> {
  const isStruct = message.typeName === 'google.protobuf.Struct' && field.parent.typeName !== 'google.protobuf.Value'
  return isStruct ? fc.dictionary(fc.string(), arbitraryJson, { maxKeys: 3 }) : arbitraryMessage(message, depth - 1)
}

const arbitraryJson = fc.jsonValue({ maxDepth: 2 })

function arbitraryKey(scalar: ScalarType): fc.Arbitrary<string> {
  if (scalar === ScalarType.STRING) return fc.oneof(arbitraryText, fc.constantFrom('__proto__', 'constructor', ''))
  return scalar === ScalarType.BOOL ? fc.constantFrom('true', 'false') : fc.nat().map(String)
}

const arbitraryText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom('"', '\\', '\u2028', '\u007f', '\ud800', 'Zürich 世界'),
)

function arbitraryEnum(desc: DescEnum): fc.Arbitrary<number> {
  const known = fc.constantFrom(...desc.values.map((value) => value.number))
  return desc.open ? fc.oneof(known, fc.integer()) : known
}

function arbitraryScalar(scalar: ScalarType, longAsString: boolean): fc.Arbitrary<unknown> {
  switch (scalar) {
    case ScalarType.STRING:
      return arbitraryText
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

function arbitraryWellKnown(desc: DescMessage): fc.Arbitrary<Message> | undefined {
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
      return arbitraryText.map((value) => anyPack(StringValueSchema, create(StringValueSchema, { value })))
    case 'google.protobuf.Value':
      return of(arbitraryJson.map((json) => ({ kind: kindOf(json) })))
    case 'google.protobuf.ListValue': {
      const value = desc.fields[0]?.message
      if (value === undefined) throw new Error('ListValue has values')
      return of(fc.record({ values: fc.array(arbitraryMessage(value), { maxLength: 3 }) }))
    }
    default: {
      const wrapped = isWrapperDesc(desc) ? desc.fields[0] : undefined
      return wrapped?.fieldKind === 'scalar'
        ? of(fc.record({ value: arbitraryScalar(wrapped.scalar, false) }))
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
