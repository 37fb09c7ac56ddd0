import {
  create,
  type DescField,
  type DescMessage,
  isMessage,
  type Message,
  type MessageInitShape,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf'
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt'

/** Writes a message in protobuf's binary format. Takes a message, or an object from which `create` would make one. */
export type BinarySerializer = (message: object) => Uint8Array

/**
 * Compiles a serialiser that writes the same bytes as protobuf-es, into one buffer instead of many small arrays. A message that
 * holds fields of a rare kind, at any depth, is left to protobuf-es: maps of other values than texts, groups, wrappers, Struct, fixed and zigzag numbers,
 * fields of other syntaxes than proto3.
 */
export function compileBinarySerializer(desc: DescMessage): BinarySerializer {
  const writeSlowly = (message: object) => {
    return toBinary(desc, isMessage(message) ? message : create(desc, message as MessageInitShape<DescMessage>))
  }
  if (!isPlain(desc, new Set())) return writeSlowly
  const write = writerOf(desc)
  return (message) => {
    const out = output
    // A serialiser that is called while another one writes, by a getter for instance, would overwrite its bytes.
    if (out.isTaken) return writeSlowly(message)
    out.isTaken = true
    out.at = 0
    try {
      write(out, message)
      return Uint8Array.prototype.slice.call(out.bytes, 0, out.at)
    } finally {
      out.isTaken = false
      if (out.bytes.length > MAX_KEPT_SIZE) out.bytes = Buffer.allocUnsafeSlow(FIRST_SIZE)
    }
  }
}

const FIRST_SIZE = 64 * 1024
const MAX_KEPT_SIZE = 1024 * 1024

/** The buffer into which messages are written, one at a time. */
interface Output {
  bytes: Buffer
  at: number
  isTaken: boolean
}

const output: Output = { bytes: Buffer.allocUnsafeSlow(FIRST_SIZE), at: 0, isTaken: false }

type Properties = Readonly<Record<string, unknown>>
type Write = (out: Output, value: unknown) => void

function isPlain(desc: DescMessage, seen: Set<DescMessage>): boolean {
  if (seen.has(desc)) return true
  seen.add(desc)
  if (desc.file.proto.syntax !== 'proto3' || isStoredOtherwise(desc)) return false
  return desc.fields.every((field) => {
    if (field.fieldKind === 'map') return field.mapKey === ScalarType.STRING && field.scalar === ScalarType.STRING
    if ('longAsString' in field && field.longAsString) return false
    if (field.scalar !== undefined && scalarWriters[field.scalar] === undefined) return false
    if (field.fieldKind === 'list' && field.listKind !== 'message' && !field.packed && !isText(field)) return false
    return field.message === undefined || isPlain(field.message, seen)
  })
}

function isText({ scalar }: DescField): boolean {
  return scalar === ScalarType.STRING || scalar === ScalarType.BYTES
}

/** Wrappers and Struct are stored in messages as bare values. */
function isStoredOtherwise({ typeName }: DescMessage): boolean {
  return /^google\.protobuf\.(?:\w+Value|Struct)$/.test(typeName)
}

const writers = new WeakMap<DescMessage, Write>()

function writerOf(desc: DescMessage): Write {
  const known = writers.get(desc)
  if (known !== undefined) return known
  const fields: Write[] = []
  const write: Write = (out, value) => {
    const { $typeName = desc.typeName, $unknown } = value as Partial<Message>
    if ($typeName !== desc.typeName) throw new TypeError(`${$typeName} is no ${desc.typeName}`)
    for (let index = 0; index < fields.length; index++) fields[index]?.(out, value)
    if ($unknown === undefined) return
    for (const { no, wireType, data } of $unknown) {
      writeVarint(out, no * 8 + wireType)
      writeRaw(out, data)
    }
  }
  // Stored before its fields are compiled, since a message may hold itself.
  writers.set(desc, write)
  fields.push(...desc.fields.toSorted((a, b) => a.number - b.number).map(compileField))
  return write
}

function compileField(field: DescField): Write {
  if (field.fieldKind === 'map') return compileTextMap(field)
  const { localName, number } = field
  const isPacked = field.fieldKind === 'list' && field.listKind !== 'message' && !isText(field)
  const writeValue = valueWriter(field)
  const tag = number * 8 + (isPacked ? LENGTH_DELIMITED : wireTypeOf(field))
  const writeTagged = withTag(tag, writeValue)
  if (field.fieldKind === 'list') {
    const writePacked = delimited((out, value) => writeEach(out, value, writeValue))
    const writeList = isPacked
      ? withTag(tag, writePacked)
      : (out: Output, value: unknown) => writeEach(out, value, writeTagged)
    return (out, message) => {
      const list = (message as Properties)[localName] as readonly unknown[] | undefined
      if (list !== undefined && list.length > 0) writeList(out, list)
    }
  }
  if (field.oneof !== undefined) {
    const oneofName = field.oneof.localName
    return (out, message) => {
      const selected = (message as Properties)[oneofName] as
        | { readonly case?: string; readonly value?: unknown }
        | undefined
      if (selected?.case === localName) writeTagged(out, selected.value)
    }
  }
  const isImplicit = field.presence === FeatureSet_FieldPresence.IMPLICIT
  return (out, message) => {
    const value = (message as Properties)[localName]
    if (value === undefined || value === null || (isImplicit && isZero(value))) return
    writeTagged(out, value)
  }
}

/** A map is a list of messages with a key, 1, and a value, 2. */
function compileTextMap({ localName, number }: DescField): Write {
  const [key, value] = [1, 2].map((part) => withTag(part * 8 + LENGTH_DELIMITED, writeString))
  const writeEntry = withTag(
    number * 8 + LENGTH_DELIMITED,
    delimited((out, entry) => {
      const [name, text] = entry as [string, string]
      key?.(out, name)
      value?.(out, text)
    }),
  )
  return (out, message) => {
    const map = (message as Properties)[localName]
    if (map !== undefined) writeEach(out, Object.entries(map as object), writeEntry)
  }
}

function withTag(tag: number, write: Write): Write {
  return (out, value) => {
    writeVarint(out, tag)
    write(out, value)
  }
}

function writeEach(out: Output, list: unknown, write: Write): void {
  for (const value of list as readonly unknown[]) write(out, value)
}

/** Minus zero is written, as protobuf-es does. */
function isZero(value: unknown): boolean {
  if (value instanceof Uint8Array) return value.length === 0
  return value === '' || value === false || value === 0n || Object.is(value, 0)
}

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2

function wireTypeOf(field: DescField): number {
  if (field.message !== undefined || isText(field)) return LENGTH_DELIMITED
  return field.scalar === ScalarType.DOUBLE ? FIXED64 : VARINT
}

function valueWriter({ message, scalar }: DescField): Write {
  if (message !== undefined) return delimited(writerOf(message))
  const write = scalar === undefined ? writeInt32 : scalarWriters[scalar]
  if (write === undefined) throw new TypeError('this scalar type is left to protobuf-es')
  return write
}

function checkInteger(value: unknown, min: number, max: number): number {
  const number = value as number
  if (!Number.isInteger(number) || number < min || number > max) throw new RangeError(`${number} does not fit`)
  return number
}

const writeInt32: Write = (out, value) => {
  const number = checkInteger(value, -0x80000000, 0x7fffffff)
  if (number < 0) writeBigVarint(out, BigInt(number), true)
  else writeVarint(out, number)
}

function reserve(out: Output, count: number): void {
  if (out.at + count <= out.bytes.length) return
  const larger = Buffer.allocUnsafeSlow(Math.max(2 * out.bytes.length, out.at + count))
  larger.set(out.bytes.subarray(0, out.at))
  out.bytes = larger
}

/** @param value - a whole number from 0 to 2^53 */
function writeVarint(out: Output, value: number): void {
  reserve(out, 8)
  let rest = value
  while (rest > 0x7f) {
    out.bytes[out.at++] = (rest % 0x80) + 0x80
    rest = Math.floor(rest / 0x80)
  }
  out.bytes[out.at++] = rest
}

function writeBigVarint(out: Output, value: bigint, isSigned: boolean): void {
  if (value !== (isSigned ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value))) {
    throw new RangeError(`${value} does not fit`)
  }
  if (value >= 0n && value <= BigInt(Number.MAX_SAFE_INTEGER)) return writeVarint(out, Number(value))
  reserve(out, 10)
  let rest = BigInt.asUintN(64, value)
  while (rest > 0x7fn) {
    out.bytes[out.at++] = Number(rest & 0x7fn) + 0x80
    rest >>= 7n
  }
  out.bytes[out.at++] = Number(rest)
}

const writeDouble: Write = (out, value) => {
  if (typeof value !== 'number') throw new TypeError(`${typeof value} is no number`)
  reserve(out, 8)
  out.at = out.bytes.writeDoubleLE(value, out.at)
}

function writeRaw(out: Output, bytes: Uint8Array): void {
  reserve(out, bytes.length)
  out.bytes.set(bytes, out.at)
  out.at += bytes.length
}

/** Up to this length, in UTF-16 units, a loop is faster than a native call. */
const MAX_LOOPED_LENGTH = 48

const writeString: Write = (out, value) => {
  if (typeof value !== 'string') throw new TypeError(`${typeof value} is no string`)
  const { length } = value
  if (length > MAX_LOOPED_LENGTH) return writeLongString(out, value)
  reserve(out, length + 1)
  const { bytes, at: start } = out
  let at = start
  bytes[at++] = length
  for (let index = 0; index < length; index++) {
    const code = value.charCodeAt(index)
    if (code > 0x7f) return writeLongString(out, value)
    bytes[at++] = code
  }
  out.at = at
}

const writeLongString = delimited((out, value) => {
  const text = value as string
  reserve(out, 3 * text.length)
  out.at += out.bytes.write(text, out.at, 'utf8')
})

/**
 * Writes a value with its length before it. Reserves as many bytes for the length as the last value needed; if that is wrong, the value
 * is moved.
 */
function delimited(write: Write): Write {
  let lengthSize = 1
  return (out, value) => {
    const start = out.at
    const guessed = lengthSize
    reserve(out, guessed)
    out.at = start + guessed
    write(out, value)
    const length = out.at - start - guessed
    const needed = sizeOfVarint(length)
    if (needed !== guessed) {
      lengthSize = needed
      reserve(out, needed)
      out.bytes.copyWithin(start + needed, start + guessed, out.at)
    }
    out.at = start
    writeVarint(out, length)
    out.at = start + needed + length
  }
}

/** The other scalar types are left to protobuf-es. */
const scalarWriters: Partial<Record<ScalarType, Write>> = {
  [ScalarType.STRING]: writeString,
  [ScalarType.BYTES]: delimited((out, value) => writeRaw(out, value as Uint8Array)),
  [ScalarType.BOOL]: (out, value) => writeVarint(out, value === true ? 1 : 0),
  [ScalarType.DOUBLE]: writeDouble,
  [ScalarType.INT64]: (out, value) => writeBigVarint(out, value as bigint, true),
  [ScalarType.UINT64]: (out, value) => writeBigVarint(out, value as bigint, false),
  [ScalarType.INT32]: writeInt32,
  [ScalarType.UINT32]: (out, value) => writeVarint(out, checkInteger(value, 0, 0xffffffff)),
}

function sizeOfVarint(value: number): number {
  let size = 1
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) size += 1
  return size
}
