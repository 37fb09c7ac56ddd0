import type { Account } from '../domain/account.ts'
import type { Token } from '../domain/currency.ts'
import { explainAboveMaximum, formatAmount, parseDecimal, powerOfTen, rescale } from '../domain/decimal.ts'
import { suggestName } from '../domain/nearest.ts'
import type { PaymentQuestion, PreparedPayment, PreparedTransaction, Route, RoutesAnswer } from '../domain/route.ts'
import { explain, WaybillError, waybillError } from '../errors.ts'
import type { UnrankedRoute } from './assemble-route.ts'
import { parseQuestion } from './parse-question.ts'
import { DEFAULT_LIMIT, type SpendingLimit } from './payment.ts'
import { type PlannedCandidate, planCandidates } from './plan-candidates.ts'
import {
  type Inquiry,
  inquire,
  planAll,
  type QuoteDependencies,
  type QuoteOptions,
  quotePlanned,
} from './quote-routes.ts'

/**
 * Quotes one route anew and says which transactions take it.
 *
 * @throws WaybillError as FindRoutes does; UNKNOWN_ROUTE for an id that this request has none of, ROUTE_UNAVAILABLE with the reason where it is
 *   none now, ROUTE_NOT_QUOTED where a source of the quote failed, REQUEST_COVERED where nothing is to be paid, REQUEST_CANCELLED or
 *   REQUEST_EXPIRED where payments are no longer wanted, and QuoteChangedError where it takes more than `maxSourceAmount`
 */
export type PreparePayment = (
  account: Account,
  question: PaymentQuestion,
  options: QuoteOptions,
) => Promise<PreparedPayment>

/** QUOTE_CHANGED: the route takes more than it may, by the quote that comes with it. */
export class QuoteChangedError extends WaybillError {
  /** As it is quoted now. */
  readonly route: Route

  /** @param maxSourceAmount - the most that it might take, in units of its token */
  constructor(route: Route, maxSourceAmount: string) {
    const { id, sourceAmount, token } = route
    const { reason, message, metadata } = waybillError('QUOTE_CHANGED', {
      route: id,
      sourceAmount,
      maxSourceAmount,
      token,
    })
    super(reason, message, metadata, {})
    this.route = route
  }
}

/** Makes {@link PreparePayment}. */
export function createPreparePayment(dependencies: QuoteDependencies): PreparePayment {
  return async (account, rawQuestion, options) => {
    const question = parseQuestion(rawQuestion)
    const slippage = readSlippage(rawQuestion.slippage)
    const inquiry = await inquire(account, question, options.signal, dependencies)
    const named = findNamed(inquiry, rawQuestion.route, dependencies)
    const maxSourceAmount = readMaxSourceAmount(rawQuestion.maxSourceAmount, named.candidate.source)
    const limit = { slippage, ...(maxSourceAmount === undefined ? {} : { maxSourceAmount }) }
    const planned = planNamed(inquiry, named, limit, dependencies)
    const requestExpiresAt = inquiry.search?.payment.request.expiresAt
    const quoted = await quotePlanned([planned], { ...question, requestExpiresAt }, options, dependencies)
    const [found] = quoted.routes
    if (found === undefined) throw explainNoRoute(rawQuestion.route, quoted)
    return prepare(found, maxSourceAmount)
  }
}

/** @throws UNKNOWN_ROUTE, or what stands against any route of the request */
function findNamed(inquiry: Inquiry, id: string, dependencies: QuoteDependencies): PlannedCandidate {
  const { answer, search, refusal } = inquiry
  if (refusal !== undefined) throw refusal
  const [warning] = answer.warnings
  if (search === undefined && warning !== undefined) {
    const { message } = explain(warning.reason as 'REQUEST_ALREADY_PAID' | 'PAYMENT_PENDING', {})
    throw waybillError('REQUEST_COVERED', { detail: message })
  }
  const planned = planAll(inquiry, dependencies)
  const found = planned.find(({ provider }) => provider?.routeId === id.toUpperCase())
  if (found !== undefined) return found
  if (search === undefined) throw explainNoRoute(id, answer)
  const ids = planned.flatMap(({ provider }) => provider?.routeId ?? [])
  throw waybillError('UNKNOWN_ROUTE', { value: id, suggestion: suggestName(id, ids) })
}

/** Plans one candidate by one provider with a limit of the caller's. */
function planNamed(
  { search }: Inquiry,
  { candidate, provider }: PlannedCandidate,
  limit: SpendingLimit,
  { providers }: QuoteDependencies,
): PlannedCandidate {
  if (search === undefined) throw new TypeError('nothing was searched')
  const planned = planCandidates([candidate], { ...search.payment, limit, isToBeTaken: true }, providers)
  const found = planned.find((entry) => entry.provider?.routeId === provider?.routeId)
  if (found === undefined) throw new TypeError('a plan depends on its limit')
  return found
}

/** What failed may be there in a moment, so that the same call is worth making again; what the wallet lacks is not. */
function explainNoRoute(id: string, { unavailable, degraded }: Pick<RoutesAnswer, 'unavailable' | 'degraded'>) {
  const { reason = '', message = '', remedy = '' } = unavailable[0] ?? {}
  const terms = { route: id, why: `${reason}: ${message}`, remedy }
  return waybillError(degraded ? 'ROUTE_NOT_QUOTED' : 'ROUTE_UNAVAILABLE', terms)
}

/** @throws QuoteChangedError */
function prepare(found: UnrankedRoute, maxSourceAmount: bigint | undefined): PreparedPayment {
  const { quote, candidate } = found
  const { source } = candidate
  // Alone it would be the cheapest and the fastest, which says nothing.
  const route = { ...found.route, tags: [] }
  if (maxSourceAmount !== undefined && quote.sourceAmount > maxSourceAmount) {
    throw new QuoteChangedError(route, formatAmount(maxSourceAmount, source.decimals))
  }
  const transactions = quote.steps.map(
    (step, i): PreparedTransaction => ({
      kind: step.kind,
      chainId: route.chainId,
      gasLimit: found.gasLimits[i] ?? step.gasLimit,
      ...step.transaction(),
    }),
  )
  return { route, transactions, maxSourceAmount: formatAmount(quote.mostPulled, source.decimals) }
}

const HIGHEST_PERCENTAGE = 50n

/** A percentage of at most 50 as a fraction; half a percent unless given. */
function readSlippage(text: string | undefined): SpendingLimit['slippage'] {
  if (text === undefined) return DEFAULT_LIMIT.slippage
  const percent = parseDecimal(text)
  if (percent === undefined || percent.units < 0n || percent.units > HIGHEST_PERCENTAGE * powerOfTen(percent.places)) {
    throw waybillError('INVALID_PERCENTAGE', {
      field: 'slippage',
      value: text,
      detail: `it is no plain decimal number from 0 to ${HIGHEST_PERCENTAGE}`,
    })
  }
  return { units: percent.units, places: percent.places + 2 }
}

function readMaxSourceAmount(text: string | undefined, source: Token): bigint | undefined {
  if (text === undefined) return undefined
  const invalid = (detail: string) => waybillError('INVALID_AMOUNT', { field: 'maxSourceAmount', value: text, detail })
  const { decimals, symbol } = source
  const amount = parseDecimal(text)
  if (amount === undefined || amount.units <= 0n || amount.places > decimals) {
    throw invalid(`it is no plain decimal number above 0 with at most ${decimals} places, as ${symbol} has`)
  }
  const tooLarge = explainAboveMaximum(amount, decimals)
  if (tooLarge !== undefined) throw invalid(tooLarge)
  return rescale(amount, decimals).units
}
