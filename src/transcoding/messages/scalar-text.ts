import { ScalarType } from '@bufbuild/protobuf'
import { base64Decode } from '@bufbuild/protobuf/wire'

/** Reads the text of a path variable or query parameter as the value of one field, or of one element of a list. */
export interface TextReader {
  /** @returns the value as protobuf-es stores it; undefined if the text is not a value of the field */
  readonly read: (text: string) => unknown
  /** What is expected, for messages: "a whole number from 0 to 4294967295". */
  readonly expectation: string
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
