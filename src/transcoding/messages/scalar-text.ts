import { ScalarType } from '@bufbuild/protobuf'
import { base64Decode } from '@bufbuild/protobuf/wire'

/**
 * Reads the text of a path variable or query parameter as a scalar.
 *
 * @returns undefined if the text is not a value of the type
 */
export type ScalarReader = (text: string) => string | number | bigint | boolean | Uint8Array | undefined

const wholeNumber = /^-?[0-9]+$/
const decimalNumber = /^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/
const base64 = /^[A-Za-z0-9+/_-]*(={0,2})$/
/** More than any 64-bit number has. Parsing a bigint takes time quadratic in its length. */
const MAX_WHOLE_NUMBER_LENGTH = 40
const MAX_FLOAT = 3.4028234663852886e38

/** The reader of each scalar type. Texts are not JSON: `1e3` is not an integer, and quotes are part of a string. */
export const scalarReaders: Readonly<Record<ScalarType, ScalarReader>> = {
  [ScalarType.DOUBLE]: readDouble,
  [ScalarType.FLOAT]: readFloat,
  [ScalarType.INT64]: (text) => readWholeNumber(text, -(2n ** 63n), 2n ** 63n - 1n),
  [ScalarType.SINT64]: (text) => readWholeNumber(text, -(2n ** 63n), 2n ** 63n - 1n),
  [ScalarType.SFIXED64]: (text) => readWholeNumber(text, -(2n ** 63n), 2n ** 63n - 1n),
  [ScalarType.UINT64]: (text) => readWholeNumber(text, 0n, 2n ** 64n - 1n),
  [ScalarType.FIXED64]: (text) => readWholeNumber(text, 0n, 2n ** 64n - 1n),
  [ScalarType.INT32]: readInt32,
  [ScalarType.SINT32]: readInt32,
  [ScalarType.SFIXED32]: readInt32,
  [ScalarType.UINT32]: readUint32,
  [ScalarType.FIXED32]: readUint32,
  [ScalarType.BOOL]: readBool,
  [ScalarType.STRING]: (text) => text,
  [ScalarType.BYTES]: readBytes,
}

/** The values of a scalar type, for messages: "a whole number from 0 to 4294967295". */
export const scalarExpectations: Readonly<Record<ScalarType, string>> = {
  [ScalarType.DOUBLE]: 'a number, NaN, Infinity or -Infinity',
  [ScalarType.FLOAT]: 'a number of single precision, NaN, Infinity or -Infinity',
  [ScalarType.INT64]: 'a whole number of 64 bits',
  [ScalarType.SINT64]: 'a whole number of 64 bits',
  [ScalarType.SFIXED64]: 'a whole number of 64 bits',
  [ScalarType.UINT64]: 'a whole number of 64 bits, not negative',
  [ScalarType.FIXED64]: 'a whole number of 64 bits, not negative',
  [ScalarType.INT32]: 'a whole number from -2147483648 to 2147483647',
  [ScalarType.SINT32]: 'a whole number from -2147483648 to 2147483647',
  [ScalarType.SFIXED32]: 'a whole number from -2147483648 to 2147483647',
  [ScalarType.UINT32]: 'a whole number from 0 to 4294967295',
  [ScalarType.FIXED32]: 'a whole number from 0 to 4294967295',
  [ScalarType.BOOL]: 'true or false',
  [ScalarType.STRING]: 'a string',
  [ScalarType.BYTES]: 'base64',
}

function readInt32(text: string): number | undefined {
  const value = readWholeNumber(text, -(2n ** 31n), 2n ** 31n - 1n)
  return value === undefined ? undefined : Number(value)
}

function readUint32(text: string): number | undefined {
  const value = readWholeNumber(text, 0n, 2n ** 32n - 1n)
  return value === undefined ? undefined : Number(value)
}

/** Reads decimal digits, leading zeros allowed, within bounds. */
export function readWholeNumber(text: string, min: bigint, max: bigint): bigint | undefined {
  if (text.length > MAX_WHOLE_NUMBER_LENGTH || !wholeNumber.test(text)) return undefined
  const value = BigInt(text)
  return value < min || value > max ? undefined : value
}

/** Reads a decimal number, exponent allowed, or NaN, Infinity, -Infinity; undefined also where it overflows. */
export function readDouble(text: string): number | undefined {
  if (text === 'NaN') return Number.NaN
  if (text === 'Infinity') return Number.POSITIVE_INFINITY
  if (text === '-Infinity') return Number.NEGATIVE_INFINITY
  if (!decimalNumber.test(text)) return undefined
  const value = Number(text)
  return Number.isFinite(value) ? value : undefined
}

/** As readDouble, in the range of single precision; not rounded within it. */
export function readFloat(text: string): number | undefined {
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
export function readBytes(text: string): Uint8Array | undefined {
  const padding = base64.exec(text)?.[1]
  if (padding === undefined) return undefined
  const digits = text.length - padding.length
  if (digits % 4 === 1 || (padding !== '' && text.length % 4 !== 0)) return undefined
  return text === '' ? new Uint8Array(0) : base64Decode(text)
}
