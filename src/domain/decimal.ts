/**
 * Exact decimal numbers: the one type in which amounts, prices and rates are computed, and the one text form that they have in numeric
 * columns, in lines of files and on the wire.
 */

/** The most places after the point that a decimal string may have. */
export const MAX_DECIMAL_PLACES = 18

/** The most digits before the point: 2^256 has 78. */
const MAX_INTEGER_DIGITS = 78

const DECIMAL_PATTERN = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?$/

/** The number `units` / 10^`places`. Of an amount of a token, base units and the token's decimals. */
export interface Decimal {
  readonly units: bigint
  readonly places: number
}

/**
 * A decimal in canonical text: no exponent, no sign but `-`, no leading or trailing zeros, at most 18 places. Stored payments keep their
 * amounts as this text from row or line to answer, because a page of payments computes with none of them and converting each costs more
 * than all other work on a payment's fields. Read it with {@link readStoredDecimal} before you compute.
 */
export type DecimalString = `${number}`

export const ZERO: Decimal = { units: 0n, places: 0 }

/**
 * Reads a decimal that a caller wrote. Trailing zeros are allowed and dropped.
 *
 * @returns undefined for anything else: an exponent, a plus sign, a blank, `-0`, `.5`, `5.`, `01`, more than 18 places or 78 digits
 */
export function parseDecimal(text: string): Decimal | undefined {
  if (text.length > MAX_INTEGER_DIGITS + 64) return undefined
  const match = DECIMAL_PATTERN.exec(text)
  if (match === null) return undefined
  const [, sign = '', whole = '', fraction = ''] = match
  const significant = fraction.replace(/0+$/, '')
  if (whole.length > MAX_INTEGER_DIGITS || significant.length > MAX_DECIMAL_PLACES) return undefined
  const units = BigInt(whole + significant)
  if (sign === '-' && units === 0n) return undefined
  return { units: sign === '-' ? -units : units, places: significant.length }
}

const CANONICAL_AMOUNT = /^(?:0|[1-9]\d{0,76})(?:\.\d{0,17}[1-9])?$/

/**
 * Whether a text is a decimal string in canonical form, not negative and below 2^256. Imports use it: nearly all their amounts are, and
 * need no bigint. It is false for some of the largest.
 */
export function isCanonicalAmount(text: string): text is DecimalString {
  return CANONICAL_AMOUNT.test(text)
}

const STORED_NUMERIC = /^(-?)([0-9]+)(?:\.([0-9]+))?$/

/**
 * Reads a stored decimal: a `numeric` as PostgreSQL writes it, with the zeros of its scale, or a {@link DecimalString}. Its length is not
 * limited, because a sum has more digits than its parts. Places after the 18th are cut off.
 *
 * @throws RangeError when the text is not a number
 */
export function readStoredDecimal(numeric: string): Decimal {
  const match = STORED_NUMERIC.exec(numeric)
  if (match === null) throw new RangeError(`not a stored amount: ${numeric}`)
  const [, sign = '', whole = '', fraction = ''] = match
  const places = fraction.slice(0, MAX_DECIMAL_PLACES).replace(/0+$/, '')
  const units = BigInt(whole + places)
  return { units: sign === '-' ? -units : units, places: places.length }
}

/** Drops the zeros that the scale of a `numeric` leaves after the point: `10.500` is `10.5`. */
export function trimNumeric(numeric: string): DecimalString {
  const trimmed = numeric.endsWith('0') && numeric.includes('.') ? numeric.replace(/\.?0+$/, '') : numeric
  return trimmed as DecimalString
}

/** Writes a number without leading or trailing zeros: `{ units: 1500n, places: 2 }` is `15`. */
export function formatDecimal({ units, places }: Decimal): DecimalString {
  const negative = units < 0n
  const digits = (negative ? -units : units).toString().padStart(places + 1, '0')
  const whole = digits.slice(0, digits.length - places)
  const fraction = digits.slice(digits.length - places).replace(/0+$/, '')
  const text = fraction === '' ? whole : `${whole}.${fraction}`
  return (negative ? `-${text}` : text) as DecimalString
}

const powersOfTen = Array.from({ length: 80 }, (_, places) => 10n ** BigInt(places))

/** 10^`places` as bigint. */
export function powerOfTen(places: number): bigint {
  return powersOfTen[places] ?? 10n ** BigInt(places)
}

/**
 * Divides and rounds half to even, as money is rounded.
 *
 * @param denominator - not 0
 */
export function divideHalfEven(numerator: bigint, denominator: bigint): bigint {
  if (denominator < 0n) return divideHalfEven(-numerator, -denominator)
  const quotient = numerator / denominator
  const remainder = numerator % denominator
  const twice = (remainder < 0n ? -remainder : remainder) * 2n
  const away = numerator < 0n ? -1n : 1n
  if (twice > denominator) return quotient + away
  if (twice < denominator) return quotient
  return quotient % 2n === 0n ? quotient : quotient + away
}

/** The same number with `toPlaces` places; digits that do not fit are rounded half to even. */
export function rescale({ units, places }: Decimal, toPlaces: number): Decimal {
  if (toPlaces >= places) return { units: units * powerOfTen(toPlaces - places), places: toPlaces }
  return { units: divideHalfEven(units, powerOfTen(places - toPlaces)), places: toPlaces }
}

/** Compares as sort functions do: below 0 when `a` is smaller, above 0 when it is larger. */
export function compareDecimals(a: Decimal, b: Decimal): number {
  const places = Math.max(a.places, b.places)
  const difference = rescale(a, places).units - rescale(b, places).units
  return difference < 0n ? -1 : difference > 0n ? 1 : 0
}

/** The exact sum. */
export function addDecimals(a: Decimal, b: Decimal): Decimal {
  const places = Math.max(a.places, b.places)
  return { units: rescale(a, places).units + rescale(b, places).units, places }
}

/** The exact sum of all; 0 of none. */
export function sumDecimals(values: Iterable<Decimal>): Decimal {
  let sum = ZERO
  for (const value of values) sum = addDecimals(sum, value)
  return sum
}

/** The exact difference `a` − `b`. */
export function subtractDecimals(a: Decimal, b: Decimal): Decimal {
  return addDecimals(a, { units: -b.units, places: b.places })
}

/** The product, rounded half to even to `places`. */
export function multiplyDecimals(a: Decimal, b: Decimal, places: number): Decimal {
  return rescale({ units: a.units * b.units, places: a.places + b.places }, places)
}

/** The quotient `a` / `b`, rounded half to even to `places`; `b` is not 0. */
export function divideDecimals(a: Decimal, b: Decimal, places: number): Decimal {
  const numerator = a.units * powerOfTen(places + b.places)
  return { units: divideHalfEven(numerator, b.units * powerOfTen(a.places)), places }
}

/** The most base units of an amount in any currency: contracts hold amounts in 256 bits. */
const MAX_BASE_UNITS = 2n ** 256n - 1n

/**
 * Explains why an amount is too large for a contract, for the `detail` of INVALID_AMOUNT.
 *
 * @param amount - in human units
 * @param decimals - of its currency
 * @returns undefined when the amount is at most 2^256 - 1 base units
 */
export function explainAboveMaximum(amount: Decimal, decimals: number): string | undefined {
  const maximum: Decimal = { units: MAX_BASE_UNITS, places: decimals }
  if (compareDecimals(amount, maximum) <= 0) return undefined
  return `it is above 2^256 - 1 base units, which are ${formatDecimal(maximum)}`
}

/**
 * The double nearest to the number, for the few fields that are JSON numbers.
 *
 * @returns always finite (beyond the range of doubles, the largest one) and never -0
 */
export function decimalToNumber(value: Decimal): number {
  const number = Number(formatDecimal(value))
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, number))
}

/** Writes base units of a token in human units: `formatAmount(1500000n, 6)` is `1.5`. */
export function formatAmount(baseUnits: bigint, decimals: number): DecimalString {
  return formatDecimal({ units: baseUnits, places: decimals })
}

/**
 * Reads a decimal string in human units as base units of a token.
 *
 * @returns undefined when it is not a decimal string or has more significant places than `decimals`
 */
export function parseAmount(text: string, decimals: number): bigint | undefined {
  const decimal = parseDecimal(text)
  if (decimal === undefined || decimal.places > decimals) return undefined
  return rescale(decimal, decimals).units
}
