/**
 * Exact decimal numbers. Inside, money is a bigint of base units beside a number of decimals; outside it is a decimal
 * string: no exponent, no sign but `-`, no leading or trailing zeros, at most 18 places.
 */

/** The most places behind the point that a decimal string may have. */
export const MAX_DECIMAL_PLACES = 18

/** The most digits before the point: 2^256 in base units of 0 decimals has 78. */
const MAX_INTEGER_DIGITS = 78

const DECIMAL_PATTERN = /^(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?$/

/** A number `units` / 10^`places`. */
export interface Decimal {
  readonly units: bigint
  readonly places: number
}

/**
 * Reads a decimal string; trailing zeros are allowed and dropped.
 *
 * @returns undefined for anything else: an exponent, a plus, a blank, `-0`, `.5`, `5.`, `01`, more than 18 places
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

const STORED_NUMERIC = /^(-?)([0-9]+)(?:\.([0-9]+))?$/

/**
 * Reads an amount as PostgreSQL writes it, with the zeros of its scale. Unlike what comes in it has no bound: sums of amounts have more digits
 * than any of them, and quotients more than 18 places, which are cut.
 *
 * @throws RangeError for what is no number
 */
export function readStoredDecimal(numeric: string): Decimal {
  const match = STORED_NUMERIC.exec(numeric)
  if (match === null) throw new RangeError(`not a stored amount: ${numeric}`)
  const [, sign = '', whole = '', fraction = ''] = match
  const places = withoutEndingZeros(fraction.slice(0, MAX_DECIMAL_PLACES))
  const units = BigInt(whole + places)
  return { units: sign === '-' ? -units : units, places: places.length }
}

/** Writes a number without leading or trailing zeros: `{ units: 1500n, places: 2 }` is `15`. */
export function formatDecimal({ units, places }: Decimal): string {
  const negative = units < 0n
  const digits = (negative ? -units : units).toString().padStart(places + 1, '0')
  const whole = digits.slice(0, digits.length - places)
  const fraction = withoutEndingZeros(digits.slice(digits.length - places))
  const text = fraction === '' ? whole : `${whole}.${fraction}`
  return negative ? `-${text}` : text
}

function withoutEndingZeros(digits: string): string {
  let end = digits.length
  while (digits[end - 1] === '0') end -= 1
  return digits.slice(0, end)
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

/** The same number with another count of places; fewer places round half to even. */
export function rescale({ units, places }: Decimal, toPlaces: number): Decimal {
  if (toPlaces >= places) return { units: units * powerOfTen(toPlaces - places), places: toPlaces }
  return { units: divideHalfEven(units, powerOfTen(places - toPlaces)), places: toPlaces }
}

/** Below 0, 0, or above 0 as `a` is smaller than, equal to, or larger than `b`. */
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

/** The most base units that an amount of any currency may have: contracts hold amounts in 256 bits. */
const MAX_BASE_UNITS = 2n ** 256n - 1n

/**
 * Says what is wrong with an amount that is too large for a contract, for the `detail` of INVALID_AMOUNT.
 *
 * @param amount - human units
 * @param decimals - those of its currency
 * @returns undefined when it is at most {@link MAX_BASE_UNITS}
 */
export function explainAboveMaximum(amount: Decimal, decimals: number): string | undefined {
  const maximum: Decimal = { units: MAX_BASE_UNITS, places: decimals }
  if (compareDecimals(amount, maximum) <= 0) return undefined
  return `it is above 2^256 - 1 base units, which are ${formatDecimal(maximum)}`
}

/**
 * The double nearest to the number, for the few fields whose contract says number.
 *
 * @returns finite always, since beyond the range of doubles it is the last of them; -0 never
 */
export function decimalToNumber(value: Decimal): number {
  const number = Number(formatDecimal(value))
  return Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, number))
}

/** Base units of a token as the decimal string of human units: `formatAmount(1500000n, 6)` is `1.5`. */
export function formatAmount(baseUnits: bigint, decimals: number): string {
  return formatDecimal({ units: baseUnits, places: decimals })
}

/**
 * A decimal string in human units as base units of a token.
 *
 * @returns undefined when it is no decimal string or has more significant places than `decimals`
 */
export function parseAmount(text: string, decimals: number): bigint | undefined {
  const decimal = parseDecimal(text)
  if (decimal === undefined || decimal.places > decimals) return undefined
  return rescale(decimal, decimals).units
}
