import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { type Decimal, powerOfTen } from '../../domain/decimal.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'

/** What a wallet is to pay: the caller's question with everything looked up that needs no chain. */
export interface Payment {
  readonly request: PaymentRequest
  readonly wallet: Address
  /** The request's payment currency, on its chain. */
  readonly destination: Token
  /** In base units of the invoice currency: those of `destination`, or 8 decimals for a fiat request. */
  readonly amount: bigint
  /** On top of the amount. */
  readonly platformFee?: PlatformFee | undefined
  readonly limit: SpendingLimit
  /** Whether the quote is the one to be paid by: then no remembered quote may be used. */
  readonly isFinalQuote?: boolean
}

/** Bounds what leaves the wallet by conversions and swaps, whose amount is known only when they are mined. */
export interface SpendingLimit {
  /** How much more than quoted, as a fraction. */
  readonly slippage: Decimal
  /** Never more than this, base units of the source token. */
  readonly maxSourceAmount?: bigint | undefined
}

/** Half a percent. */
export const DEFAULT_LIMIT: SpendingLimit = { slippage: { units: 5n, places: 3 } }

/**
 * The most that a transaction may spend, in base units.
 *
 * @param quoted - what it would spend now
 */
export function maxToSpend(quoted: bigint, { slippage, maxSourceAmount }: SpendingLimit): bigint {
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
