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
  /** How much more than quoted a swap may take, in hundredths of a percent. */
  readonly slippageBps: number
}

/** What a swap may take beyond its quote where nothing else is asked for. */
export const DEFAULT_SLIPPAGE_BPS = 50

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
