/** Exact arithmetic of decimal strings, which are the amounts of the service. */

/**
 * The exact sum: `['0.1', '0.20']` → `0.3`.
 *
 * @param amounts - decimal strings without exponent; a `-` in front is allowed
 */
export function addDecimals(amounts: readonly string[]): string {
  const places = placesOf(amounts)
  return toDecimal(
    amounts.reduce((sum, amount) => sum + toUnits(amount, places), 0n),
    places,
  )
}

/** `5` less `1.5` is `3.5`. */
export function subtractDecimals(from: string, amount: string): string {
  const places = placesOf([from, amount])
  return toDecimal(toUnits(from, places) - toUnits(amount, places), places)
}

/** Whether an amount is above zero. */
export function isAboveZero(amount: string): boolean {
  return /^0*[1-9]|^0*\.0*[1-9]/.test(amount)
}

/**
 * A part of a whole in percent, cut, for the length of a bar and to compare with a share: never for a number that somebody reads, unless it is
 * marked as rounded.
 *
 * @param digits - places after the point
 * @returns 0 where the whole is 0
 */
export function shareOf(part: string, whole: string, digits = 2): number {
  const places = placesOf([part, whole])
  const all = toUnits(whole, places)
  return all === 0n ? 0 : Number((toUnits(part, places) * 10n ** BigInt(digits + 2)) / all) / 10 ** digits
}

function placesOf(amounts: readonly string[]): number {
  return Math.max(0, ...amounts.map((amount) => (amount.split('.')[1] ?? '').length))
}

function toUnits(amount: string, places: number): bigint {
  const [whole = '0', fraction = ''] = amount.split('.')
  return BigInt(whole + fraction.padEnd(places, '0'))
}

function toDecimal(units: bigint, places: number): string {
  const digits = (units < 0n ? -units : units).toString().padStart(places + 1, '0')
  const cut = digits.length - places
  const fraction = digits.slice(cut).replace(/0+$/, '')
  const sign = units < 0n ? '-' : ''
  return sign + digits.slice(0, cut) + (fraction === '' ? '' : `.${fraction}`)
}
