import type { Address } from '../domain/address.ts'
import type { Token } from '../domain/currency.ts'
import { type Decimal, powerOfTen } from '../domain/decimal.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'

/** What a wallet is to pay: the question, with everything looked up. */
export interface Payment {
  readonly request: PaymentRequest
  readonly wallet: Address
  /** The request's payment currency, on its chain. */
  readonly destination: Token
  /** What is paid for, base units of the invoice currency: of `destination`, or 8 decimals for a fiat request. */
  readonly amount: bigint
  /** On top of the amount. */
  readonly platformFee?: PlatformFee
  readonly limit: SpendingLimit
  /** It is about to be taken, so that no quote may be remembered from before. */
  readonly isToBeTaken?: boolean
}

/** What may leave the wallet where the amount is only known when the transaction is mined: conversions and swaps. */
export interface SpendingLimit {
  /** How much more than quoted, as a fraction. */
  readonly slippage: Decimal
  /** Never more than this, base units of the source token. */
  readonly maxSourceAmount?: bigint
}

/** Half a percent. */
export const DEFAULT_LIMIT: SpendingLimit = { slippage: { units: 5n, places: 3 } }

/**
 * The most that a transaction may spend, in base units.
 *
 * @param quoted - what it would spend now
 */
export function mostToSpend(quoted: bigint, { slippage, maxSourceAmount }: SpendingLimit): bigint {
  const scale = powerOfTen(slippage.places)
  const most = quoted + (quoted * slippage.units + scale - 1n) / scale
  return maxSourceAmount === undefined || most < maxSourceAmount ? most : maxSourceAmount
}

export interface PlatformFee {
  /** 0 to 100. */
  readonly percentage: Decimal
  readonly receiver: Address
}

/**
 * The platform's fee in base units: floor(amount × percent / 100).
 *
 * @param amount - base units of what is charged
 */
export function platformFeeOf(amount: bigint, percentage: Decimal): bigint {
  return (amount * percentage.units) / (100n * powerOfTen(percentage.places))
}
