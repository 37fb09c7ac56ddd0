import type { Address } from '../../domain/address.ts'
import type { Token } from '../../domain/currency.ts'
import { type Decimal, explainAboveMaximum, formatDecimal, parseDecimal, powerOfTen } from '../../domain/decimal.ts'
import type { Hex } from '../../domain/hex.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'
import {
  explainAmount,
  requireAddress,
  requireAmount,
  requirePaymentReference,
  requireReceiver,
} from '../../domain/require-input.ts'
import type { RoutesQuestion } from '../../domain/route.ts'
import { readAll } from '../../errors/gather-errors.ts'
import { waybillError } from '../../errors/waybill-error.ts'

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
  /** Whether no wallet is known yet: quotes that a provider counts are for those who pay. */
  readonly isEstimate?: boolean | undefined
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

interface PlatformFee {
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

/** A question of which each value is well-formed by itself. */
export interface ParsedQuestion {
  readonly paymentReference: Hex
  readonly wallet: Address
  /** Above 0. Whether it fits its currency's decimals is checked later, by `checkAmount`. */
  readonly amount: Decimal | undefined
  readonly platformFee: PlatformFee | undefined
  /** Whether no wallet is known yet. */
  readonly isEstimate?: boolean
}

const HUNDRED = 100n

/**
 * Parses the caller's question.
 *
 * @throws WaybillError MISSING_FIELD, INVALID_PAYMENT_REFERENCE, INVALID_ADDRESS, INVALID_AMOUNT, INVALID_PERCENTAGE or INCOMPLETE_FEE
 */
export function parseQuestion(question: RoutesQuestion): ParsedQuestion {
  return readAll({
    paymentReference: () => requirePaymentReference('paymentReference', given('paymentReference', question)),
    wallet: () => requireAddress('wallet', given('wallet', question)),
    amount: () => (question.amount === undefined ? undefined : requireAmount('amount', question.amount, {})),
    platformFee: () => readPlatformFee(question),
  })
}

function given(field: 'paymentReference' | 'wallet', question: RoutesQuestion): string {
  if (question[field] === '') throw waybillError('MISSING_FIELD', { field })
  return question[field]
}

/** @throws WaybillError INCOMPLETE_FEE, MISSING_FIELD, INVALID_PERCENTAGE, INVALID_ADDRESS */
export function readPlatformFee({ feePercentage, feeAddress }: Pick<RoutesQuestion, 'feePercentage' | 'feeAddress'>) {
  if (feePercentage === undefined && feeAddress === undefined) return undefined
  if (feeAddress === undefined) throw waybillError('INCOMPLETE_FEE', { field: 'feePercentage', other: 'feeAddress' })
  if (feePercentage === undefined) throw waybillError('INCOMPLETE_FEE', { field: 'feeAddress', other: 'feePercentage' })
  return readAll({ percentage: () => readPercentage(feePercentage), receiver: () => readFeeAddress(feeAddress) })
}

function readFeeAddress(text: string): Address {
  if (text === '') throw waybillError('MISSING_FIELD', { field: 'feeAddress' })
  return requireReceiver('feeAddress', text)
}

function readPercentage(text: string): Decimal {
  const percentage = parseDecimal(text)
  const invalid = (detail: string) =>
    waybillError('INVALID_PERCENTAGE', { field: 'feePercentage', value: text, detail })
  if (percentage === undefined) throw invalid('it is not a plain decimal number of at most 18 places')
  if (percentage.units < 0n) throw invalid('it is below 0')
  if (percentage.units > HUNDRED * powerOfTen(percentage.places)) throw invalid('it is above 100')
  return percentage
}

/** @throws WaybillError INVALID_AMOUNT when the amount has more decimals than its currency, or is too large for a contract */
export function checkAmount(amount: Decimal, currency: { readonly id: string; readonly decimals: number }): void {
  const detail = explainAmount(amount, { currency })
  if (detail !== undefined) throw invalidAmount(formatDecimal(amount), detail)
}

/**
 * @param total - amount and platform fee in base units of a currency with `decimals`
 * @throws WaybillError INVALID_AMOUNT when the total is too large for a contract, though the amount alone is not
 */
export function checkTotal(amount: Decimal, total: bigint, decimals: number): void {
  const tooLarge = explainAboveMaximum({ units: total, places: decimals }, decimals)
  if (tooLarge !== undefined) throw invalidAmount(formatDecimal(amount), `with the platform fee ${tooLarge}`)
}

function invalidAmount(value: string, detail: string) {
  return waybillError('INVALID_AMOUNT', { field: 'amount', value, detail })
}
