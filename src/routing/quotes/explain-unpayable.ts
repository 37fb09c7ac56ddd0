import { ZERO_ADDRESS } from '../../domain/address.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'
import type { RouteWarning } from '../../domain/route.ts'
import type { Explanation } from '../../errors/waybill-error.ts'
import { findCandidates } from '../plans/candidates.ts'
import { DEFAULT_LIMIT, type Payment } from '../question/due-payment.ts'
import { planCandidates } from './plan-candidates.ts'
import { findDestination, type QuoteDependencies } from './quote-routes.ts'

/**
 * Explains why no wallet can ever pay a request, by the configuration alone: CHAIN_NOT_SUPPORTED, CURRENCY_NOT_SUPPORTED,
 * NO_PAYMENT_CONTRACT, NO_CONVERSION_PATH.
 *
 * @returns an empty list where some wallet can
 */
export type WarningsOf = (request: PaymentRequest) => readonly RouteWarning[]

/** Answers depend on network and currencies alone, so few are ever made. */
const MAX_REMEMBERED = 1_000

/** Makes {@link WarningsOf}. */
export function createWarningsOf(dependencies: Pick<QuoteDependencies, 'chains' | 'tokens' | 'providers'>): WarningsOf {
  const remembered = new Map<string, readonly RouteWarning[]>()
  return (request) => {
    const key = `${request.network} ${request.paymentCurrency} ${request.invoiceCurrency}`
    const known = remembered.get(key)
    if (known !== undefined) return known
    const explanation = explainUnpayable(request, dependencies)
    const warnings = explanation === undefined ? [] : [toWarning(explanation)]
    if (remembered.size >= MAX_REMEMBERED) remembered.clear()
    remembered.set(key, warnings)
    return warnings
  }
}

function toWarning({ reason, message, remedy }: Explanation): RouteWarning {
  return { reason, message: `${message}; ${remedy}` }
}

function explainUnpayable(
  request: PaymentRequest,
  { chains, tokens, providers }: Pick<QuoteDependencies, 'chains' | 'tokens' | 'providers'>,
): Explanation | undefined {
  const destination = findDestination(request, { chains, tokens })
  if ('reason' in destination) return destination
  // Whether the configuration rules a candidate out depends on neither wallet nor amount.
  const payment: Payment = { request, wallet: ZERO_ADDRESS, destination, amount: 1n, limit: DEFAULT_LIMIT }
  const planned = planCandidates(findCandidates(request, destination, tokens), payment, { providers })
  const isPossible = planned.some(({ provider, plan }) => provider !== undefined && !('reason' in plan))
  const [first] = planned
  return isPossible || first === undefined || !('reason' in first.plan) ? undefined : first.plan
}
