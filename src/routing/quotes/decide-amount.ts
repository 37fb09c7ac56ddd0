import { type TokenDirectory } from '../../chains/token-directory.ts'
import { FIAT_DECIMALS } from '../../domain/currency.ts'
import { compareDecimals, type Decimal, formatDecimal, MAX_DECIMAL_PLACES } from '../../domain/decimal.ts'
import type { PaymentRequest, RequestBalance } from '../../domain/payment-request.ts'
import type { RouteWarning } from '../../domain/route.ts'
import { isFiatRequest } from '../plans/candidates.ts'
import { checkAmount } from '../question/parse-question.ts'
import { warn } from './assemble-route.ts'

/** A stored request and its balance. */
export interface StoredRequest {
  readonly request: PaymentRequest
  readonly balance: RequestBalance
}

/** What is to be paid now. */
interface AmountDue {
  /** Units of the request's invoice currency; 0 when payments cover the request. */
  readonly amount: Decimal
  readonly warnings: readonly RouteWarning[]
}

/**
 * Decides how much is to be paid: nothing when payments cover the request, even ones that are not final; else the amount that the caller asked
 * for; else the outstanding balance.
 *
 * @throws WaybillError INVALID_AMOUNT when the amount has more decimals than its currency, or is too large for a contract
 */
export function decideAmount(
  asked: Decimal | undefined,
  { request, balance }: StoredRequest,
  tokens: TokenDirectory,
): AmountDue {
  const currency = { id: request.invoiceCurrency, decimals: invoiceDecimals(request, tokens) }
  if (asked !== undefined) checkAmount(asked, currency)
  const outstanding = balance.outstandingAmount
  if (outstanding.units === 0n) return { amount: outstanding, warnings: [coverWarning(balance)] }
  // Requests stored before there was a maximum may be above it; a caller can still ask for a part of them.
  if (asked === undefined) checkAmount(outstanding, currency)
  if (asked === undefined || compareDecimals(asked, outstanding) <= 0) {
    return { amount: asked ?? outstanding, warnings: [] }
  }
  const parameters = {
    amount: formatDecimal(asked),
    outstanding: formatDecimal(outstanding),
    currency: request.invoiceCurrency,
  }
  return { amount: asked, warnings: [warn('AMOUNT_ABOVE_OUTSTANDING', parameters)] }
}

function coverWarning({ status }: RequestBalance): RouteWarning {
  return status === 'PENDING' ? warn('PAYMENT_PENDING', {}) : warn('REQUEST_ALREADY_PAID', {})
}

/** Decimals of a request's invoice currency; the maximum where its token is not configured. */
export function invoiceDecimals(request: PaymentRequest, tokens: TokenDirectory): number {
  if (isFiatRequest(request)) return FIAT_DECIMALS
  return tokens.byId(request.invoiceCurrency)?.decimals ?? MAX_DECIMAL_PLACES
}
