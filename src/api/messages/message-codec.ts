import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromBinary,
  type Message,
  type Registry,
  ScalarType,
} from '@bufbuild/protobuf'
import { BinaryReader, WireType } from '@bufbuild/protobuf/wire'
import { WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { compileBodyMapping } from '../../transcoding/body-mapping.ts'
import { decodeReporting, TranscodingError } from '../../transcoding/errors/transcoding-error.ts'
import { compileBinarySerializer } from '../../transcoding/messages/binary-serializer.ts'
import { compileJsonSerializer } from '../../transcoding/messages/json-serializer.ts'
import { MAX_DEPTH, MAX_VALUES } from '../../transcoding/messages/json-text.ts'

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
     * whichever way it comes. Unknown fields and enum numbers of binary messages are refused after decoding; see unknown-numbers.ts.
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
    checkBinary(desc, bytes, { maxValues: MAX_VALUES, maxDepth: MAX_DEPTH })
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

/**
 * Checks a binary message before protobuf-es decodes it, without making any object: two bytes can encode a message that takes microseconds
 * and hundreds of bytes to make. protobuf-es ignores wire types, so it would read a number in the place of a text as the text's length.
 *
 * @throws WaybillError BODY_TOO_COMPLEX
 * @throws TranscodingError INVALID_VALUE for a wire type that is not the field's, as for a JSON value of another type
 * @throws Error of the reader for bytes that are cut off or not in protobuf's format
 */
export function checkBinary(desc: DescMessage, bytes: Uint8Array, limits: BinaryLimits): void {
  const scan: Scan = { reader: new BinaryReader(bytes), limits, values: 0, path: [] }
  checkMessage(desc, scan, bytes.length)
}

interface Scan {
  readonly reader: BinaryReader
  readonly limits: BinaryLimits
  values: number
  /** The fields that hold the message at hand. */
  readonly path: DescField[]
}

function checkMessage(desc: DescMessage, scan: Scan, end: number): void {
  const { reader, limits, path } = scan
  if (path.length >= limits.maxDepth) throw waybillError('BODY_TOO_COMPLEX', { limit: `${limits.maxDepth} levels` })
  const byNumber = fieldsOf(desc)
  while (reader.pos < end) {
    const [number, wireType] = reader.tag()
    countValues(scan, 1)
    const known = byNumber.get(number)
    if (known === undefined) reader.skip(wireType, number)
    else checkField(known, wireType, scan, end)
  }
  if (reader.pos > end) throw new RangeError('a field extends beyond its message')
}

function checkField({ field, wireType, isPackable }: KnownField, sent: WireType, scan: Scan, end: number): void {
  const { reader, path } = scan
  if (sent !== wireType && !(isPackable && sent === WireType.LengthDelimited)) throw wrongWireType(field, sent, path)
  if (sent !== WireType.LengthDelimited) {
    reader.skip(sent, field.number)
    return
  }
  const length = reader.uint32()
  const fieldEnd = reader.pos + length
  if (fieldEnd > end) throw new RangeError('a field extends beyond its message')
  const { message } = field
  if (message !== undefined) {
    path.push(field)
    checkMessage(message, scan, fieldEnd)
    path.pop()
  }
  // Each item has at least a byte.
  else if (isPackable) countValues(scan, length)
  reader.pos = fieldEnd
}

function countValues(scan: Scan, count: number): void {
  const { maxValues } = scan.limits
  scan.values += count
  if (scan.values > maxValues) throw waybillError('BODY_TOO_COMPLEX', { limit: `${maxValues} fields and values` })
}

function wrongWireType({ jsonName }: DescField, sent: WireType, path: readonly DescField[]): Error {
  const field = [...path.map((each) => each.jsonName), jsonName].join('.')
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
