import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type Message,
  type Registry,
  ScalarType,
} from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { type GatheredErrors, gatherErrors } from '../../errors/gather-errors.ts'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { compileBodyMapping } from '../../transcoding/body-mapping.ts'
import { decodeReporting, TranscodingError } from '../../transcoding/errors/transcoding-error.ts'
import { compileBinarySerializer } from '../../transcoding/messages/binary-serializer.ts'
import { compileJsonSerializer } from '../../transcoding/messages/json-serializer.ts'
import { MAX_DEPTH, MAX_VALUES } from '../../transcoding/messages/json-text.ts'
import { unknownEnumValue, unknownField, usableNames } from './request-errors.ts'

/** The two encodings of a message. */
export type MessageFormat = 'binary' | 'json'

export type MessageCodec = ReturnType<typeof compileCodec>

/**
 * Compiles what decodes the requests of a method and encodes its answers, for unary calls and streams of every RPC protocol.
 *
 * @param registry - finds the types in google.protobuf.Any
 */
export function compileCodec({ input, output }: DescMethod, registry: Registry) {
  const mapBody = compileBodyMapping(input, '*', registry)
  const toJson = compileJsonSerializer(output, registry)
  const toBinary = compileBinarySerializer(output)
  return {
    /**
     * Decodes a request. JSON is decoded as strictly as in REST, and both formats have the same limits, so that a mistake has the same reason
     * whichever way it comes.
     *
     * @throws TranscodingError, WaybillError
     */
    decode: (bytes: Uint8Array, format: MessageFormat): Message => {
      if (format === 'binary') return decodeBinary(input, bytes)
      if (bytes.length === 0) throw waybillError('MALFORMED_BODY', { detail: 'it is empty' })
      const message = create(input)
      return decodeReporting(message, (report) => mapBody(message, bytes, report))
    },
    /** @param answer - a message, or what `create` takes to make it */
    encode: (answer: object, format: MessageFormat) => (format === 'json' ? toJson(answer) : toBinary(answer)),
  }
}

function decodeBinary(desc: DescMessage, bytes: Uint8Array): Message {
  try {
    checkBinary(desc, bytes)
    return fromBinary(desc, bytes)
  } catch (cause) {
    if (cause instanceof WaybillError || cause instanceof TranscodingError) throw cause
    // The decoder of strings is the only one whose errors have a code.
    if (cause instanceof Error && (cause as { code?: unknown }).code === 'ERR_ENCODING_INVALID_ENCODED_DATA') {
      throw waybillError('INVALID_UTF8', { field: 'a text in the message' }, { cause, violations: [] })
    }
    throw waybillError('MALFORMED_BODY', { detail: `it is not a ${desc.typeName} in protobuf's format` }, { cause })
  }
}

/** How much a binary message may hold. */
interface BinaryLimits {
  /** Fields at all depths, and the items of packed lists. */
  readonly maxValues: number
  /** Messages within messages; the outermost is the first. */
  readonly maxDepth: number
}

const DEFAULT_LIMITS: BinaryLimits = { maxValues: MAX_VALUES, maxDepth: MAX_DEPTH }

/**
 * Checks a binary message before protobuf-es decodes it, without making any object: two bytes can encode a message that takes microseconds
 * and hundreds of bytes to make. protobuf-es ignores wire types, so it would read a number in the place of a text as the text's length, and it
 * keeps unknown fields and enum numbers silently, so a filter that is not understood would be ignored.
 *
 * @throws WaybillError BODY_TOO_COMPLEX, UNKNOWN_FIELD, UNKNOWN_ENUM_VALUE
 * @throws TranscodingError INVALID_VALUE for a wire type that is not the field's, as for a JSON value of another type
 * @throws Error of the reader for bytes that are cut off or not in protobuf's format
 */
export function checkBinary(desc: DescMessage, bytes: Uint8Array, limits: BinaryLimits = DEFAULT_LIMITS): void {
  const scan: Scan = { reader: new BinaryReader(bytes), limits, values: 0, path: [], errors: gatherErrors() }
  checkMessage(desc, scan, bytes.length)
  scan.errors.raise()
}

interface Scan {
  readonly reader: BinaryReader
  readonly limits: BinaryLimits
  values: number
  /** The fields that hold the message at hand, by JSON names: `items[2]`. */
  readonly path: string[]
  readonly errors: GatheredErrors
}

function checkMessage(desc: DescMessage, scan: Scan, end: number): void {
  const { reader, limits, path, errors } = scan
  if (path.length >= limits.maxDepth) throw waybillError('BODY_TOO_COMPLEX', { limit: `${limits.maxDepth} levels` })
  const byNumber = fieldsOf(desc)
  /** How many items a list of messages or enums has had so far, or that a field is unknown. */
  const seen = new Map<number, number>()
  while (reader.pos < end) {
    const [number, wireType] = reader.tag()
    countValues(scan, 1)
    const known = byNumber.get(number)
    if (known !== undefined) {
      checkField(known, wireType, scan, { end, seen })
      continue
    }
    reader.skip(wireType, number)
    if (seen.has(number)) continue
    seen.set(number, 1)
    errors.note(unknownField([...path, number].join('.'), `number ${number} of ${desc.typeName}`))
  }
  if (reader.pos > end) throw new RangeError('a field extends beyond its message')
}

interface Owner {
  readonly end: number
  readonly seen: Map<number, number>
}

function checkField({ field, wireType, isPackable }: KnownField, sent: WireType, scan: Scan, owner: Owner): void {
  const { reader, path } = scan
  if (sent !== wireType && !(isPackable && sent === WireType.LengthDelimited)) throw wrongWireType(field, sent, path)
  if (sent !== WireType.LengthDelimited) {
    if (field.enum === undefined) reader.skip(sent, field.number)
    else checkEnum(field, field.enum, scan, owner)
    return
  }
  const length = reader.uint32()
  const end = reader.pos + length
  if (end > owner.end) throw new RangeError('a field extends beyond its message')
  if (field.message !== undefined) {
    path.push(placeOf(field, owner))
    checkMessage(field.message, scan, end)
    path.pop()
  } else if (isPackable) {
    // Each item has at least a byte.
    countValues(scan, length)
    while (field.enum !== undefined && reader.pos < end) checkEnum(field, field.enum, scan, owner)
  }
  reader.pos = end
}

function checkEnum(field: DescField, desc: DescEnum, { reader, path, errors }: Scan, owner: Owner): void {
  const number = reader.int32()
  const place = placeOf(field, owner)
  if (desc.value[number] !== undefined) return
  const names = { field: [...path, place].join('.'), value: String(number), known: usableNames(desc) }
  errors.note(unknownEnumValue(names))
}

/** The name of a field, for a list with the place of its next item. */
function placeOf({ fieldKind, jsonName, number }: DescField, { seen }: Owner): string {
  if (fieldKind !== 'list') return jsonName
  const at = seen.get(number) ?? 0
  seen.set(number, at + 1)
  return `${jsonName}[${at}]`
}

function countValues(scan: Scan, count: number): void {
  const { maxValues } = scan.limits
  scan.values += count
  if (scan.values > maxValues) throw waybillError('BODY_TOO_COMPLEX', { limit: `${maxValues} fields and values` })
}

function wrongWireType({ jsonName }: DescField, sent: WireType, path: readonly string[]): Error {
  const field = [...path, jsonName].join('.')
  const value = `a value of wire type ${sent}`
  return new TranscodingError('INVALID_VALUE', `"${field}": ${value} is not of the field's type`, { field, value })
}

interface KnownField {
  readonly field: DescField
  readonly wireType: WireType
  /** Whether its items may also stand in one length-delimited field. */
  readonly isPackable: boolean
}

const known = new WeakMap<DescMessage, ReadonlyMap<number, KnownField>>()

function fieldsOf(desc: DescMessage): ReadonlyMap<number, KnownField> {
  let fields = known.get(desc)
  if (fields === undefined) {
    fields = new Map(desc.fields.map((field) => [field.number, describe(field)]))
    known.set(desc, fields)
  }
  return fields
}

function describe(field: DescField): KnownField {
  if (field.fieldKind === 'map' && field.mapKind !== 'scalar') throw new TypeError(`${String(field)} cannot be checked`)
  const wireType = wireTypeOf(field)
  const isPackable = field.fieldKind === 'list' && field.message === undefined && wireType !== WireType.LengthDelimited
  return { field, wireType, isPackable }
}

function wireTypeOf(field: DescField): WireType {
  if (field.fieldKind === 'map') return WireType.LengthDelimited
  if (field.message !== undefined) {
    return field.delimitedEncoding ? WireType.StartGroup : WireType.LengthDelimited
  }
  return (field.scalar && wireTypes[field.scalar]) ?? WireType.Varint
}

/** Those of the scalars that are no varints. */
const wireTypes: Partial<Record<ScalarType, WireType>> = {
  [ScalarType.STRING]: WireType.LengthDelimited,
  [ScalarType.BYTES]: WireType.LengthDelimited,
  [ScalarType.DOUBLE]: WireType.Bit64,
  [ScalarType.FIXED64]: WireType.Bit64,
  [ScalarType.SFIXED64]: WireType.Bit64,
  [ScalarType.FLOAT]: WireType.Bit32,
  [ScalarType.FIXED32]: WireType.Bit32,
  [ScalarType.SFIXED32]: WireType.Bit32,
}
