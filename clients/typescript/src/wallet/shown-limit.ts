const DECIMAL = /^(\d+)(?:\.(\d*))?$/
const DEFAULT_SLIPPAGE = '0.5'

interface Decimal {
  readonly units: bigint
  readonly places: number
}

function parseDecimal(text: string): Decimal | undefined {
  const [, whole, part = ''] = DECIMAL.exec(text) ?? []
  return whole === undefined ? undefined : { units: BigInt(whole + part), places: part.length }
}

/**
 * The most that may leave a wallet after the payer was shown an amount: that amount and `slippage` percent of it, rounded down to the places
 * of the amount, since the token may have no more.
 *
 * @returns undefined where one of both is no decimal number: the service says what is wrong with it
 */
export function limitOf(shownAmount: string, slippage = DEFAULT_SLIPPAGE): string | undefined {
  const [shown, percent] = [parseDecimal(shownAmount), parseDecimal(slippage)]
  if (shown === undefined || percent === undefined) return undefined
  const whole = 100n * 10n ** BigInt(percent.places)
  const units = (shown.units * (whole + percent.units)) / whole
  if (shown.places === 0) return String(units)
  const digits = String(units).padStart(shown.places + 1, '0')
  return `${digits.slice(0, -shown.places)}.${digits.slice(-shown.places)}`
}
