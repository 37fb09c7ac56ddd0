import { nativePaymentUri } from '../contracts/payment-calls.ts'
import type { Account } from '../domain/account.ts'
import { ZERO_ADDRESS } from '../domain/address.ts'
import { rememberByKey } from '../domain/collections.ts'
import { isErc20 } from '../domain/currency.ts'
import type { PaymentRequest } from '../domain/payment-request.ts'
import type {
  OptionsAnswer,
  RouteSort,
  RoutesAnswer,
  RoutesEvent,
  RoutesQuestion,
  RouteWarning,
} from '../domain/route.ts'
import { readAll } from '../errors/gather-errors.ts'
import type { Explanation } from '../errors/waybill-error.ts'
import { findContract } from './plans/configured-contract.ts'
import { chargedFor, proxyPayment } from './plans/fee-proxy.ts'
import { findCandidates, isFiatRequest } from './plans/provider.ts'
import { DEFAULT_LIMIT, type ParsedQuestion, type Payment, parseQuestion } from './question/parse-question.ts'
import { toWarning, warn } from './quotes/assemble-route.ts'
import { type Assessed, type AssessOptions, keyOf } from './quotes/assess-candidates.ts'
import { planCandidates } from './quotes/plan-candidates.ts'
import { type Preferences, parsePreferences } from './quotes/preferences.ts'
import {
  findDestination,
  inquire,
  planAll,
  type QuoteDependencies,
  type QuoteOptions,
  quotePlanned,
} from './quotes/quote-routes.ts'
import { type RankedTerms, rankRoutes } from './quotes/rank.ts'

/** Parses what a caller asks. @throws WaybillError for input that is not valid */
export function readRoutesQuestion(
  question: RoutesQuestion,
  directories: Parameters<typeof parsePreferences>[1],
): { readonly question: ParsedQuestion; readonly preferences: Preferences } {
  return readAll({
    question: () => parseQuestion(question),
    preferences: () => parsePreferences(question, directories),
  })
}

/**
 * Makes the function that finds the routes by which a wallet can pay a request now, best first, and explains why each other candidate is not a route.
 *
 * It throws WaybillError for input that is not valid (INVALID_…, MISSING_FIELD, INCOMPLETE_FEE, UNKNOWN_…), and REQUEST_NOT_FOUND; the signal's
 * reason when it fires. Chains that fail never throw: the answer is then `degraded`.
 */
export function createFindRoutes(dependencies: QuoteDependencies) {
  return async (account: Account, question: RoutesQuestion, options: QuoteOptions): Promise<RoutesAnswer> =>
    (await find(account, question, options, dependencies)).answer
}

/** An address without a key: the last 20 bytes of keccak256 of `waybill: a wallet that nobody has`. It has approved nothing. */
const NOBODY = '0x5c9adcd72cd7bcb0667f38e3ec65fa0d6d7b2726'

/**
 * Makes the function that finds the ways to pay a request now, for a wallet that holds enough. Candidates that no
 * provider serves, or was asked for, are left out.
 *
 * It throws as {@link createFindRoutes} does.
 */
export function createFindOptions(dependencies: QuoteDependencies) {
  return async (account: Account, paymentReference: string, options: QuoteOptions): Promise<OptionsAnswer> => {
    const question = { paymentReference, wallet: NOBODY }
    const { answer, payment } = await find(account, question, options, dependencies, { holdsEnough: true })
    const routes = answer.routes.map((route) => ({
      ...route,
      readiness: { ...route.readiness, hasEnoughGas: undefined },
    }))
    const unavailable = answer.unavailable.filter(
      ({ token, provider, reason }) =>
        reason !== 'CROSSCHAIN_NOT_ASKED' && (token === undefined || provider !== undefined),
    )
    return { ...answer, routes, unavailable, paymentUri: payment && uriOf(payment, dependencies) }
  }
}

function uriOf(payment: Payment, { chains }: QuoteDependencies): string | undefined {
  const { request, destination } = payment
  if (isErc20(destination) || isFiatRequest(request)) return undefined
  const found = findContract(chains, destination, 'ETHEREUM_FEE_PROXY')
  if ('reason' in found) return undefined
  return nativePaymentUri(found.contract, found.chain.chainId, proxyPayment(payment, chargedFor(payment)))
}

/** As {@link createFindRoutes}, but each route comes as soon as it is known. */
export function createStreamRoutes(dependencies: QuoteDependencies) {
  return async function* (
    account: Account,
    question: RoutesQuestion,
    options: QuoteOptions,
  ): AsyncGenerator<RoutesEvent> {
    const { promise: started, resolve } = Promise.withResolvers<ReadableStreamDefaultController<RoutesEvent>>()
    const events = new ReadableStream<RoutesEvent>({ start: resolve })
    const controller = await started
    const onAssessed = tellEvents(question.sort, (event) => controller.enqueue(event))
    const finding = find(account, question, options, dependencies, { onAssessed }).finally(() => controller.close())
    // It is awaited after the events; until then a rejection must not count as unhandled.
    finding.catch(() => {})
    yield* events
    yield { kind: 'ANSWER', answer: (await finding).answer }
  }
}

async function find(
  account: Account,
  rawQuestion: RoutesQuestion,
  options: QuoteOptions,
  dependencies: QuoteDependencies,
  how: Pick<AssessOptions, 'holdsEnough' | 'onAssessed'> = {},
): Promise<{ readonly answer: RoutesAnswer; readonly payment?: Payment }> {
  const { question, preferences } = readRoutesQuestion(rawQuestion, dependencies)
  const isEstimate = how.holdsEnough === true
  const inquiry = await inquire(account, { ...question, isEstimate }, options.signal, dependencies)
  const answer = { ...inquiry.answer, warnings: [...inquiry.answer.warnings, ...preferences.unmet] }
  if (inquiry.search === undefined) return { answer }
  const { wallet } = question
  const { payment } = inquiry.search
  const { expiresAt: requestExpiresAt } = payment.request
  const quoting = { wallet, preferences, requestExpiresAt, ...how }
  const planned = planAll(inquiry, dependencies, preferences)
  const { listed, ...quoted } = await quotePlanned(planned, quoting, options, dependencies)
  const warnings = [...answer.warnings, ...(listed === undefined ? [] : [warn('PAYER_SCREENED', listed)])]
  return { answer: { ...answer, ...quoted, warnings, routes: rankRoutes(quoted.routes, preferences.sort) }, payment }
}

/** Tells results as events; at most one for each candidate. */
function tellEvents(sort: RouteSort | undefined, tell: (event: RoutesEvent) => void): (result: Assessed) => void {
  const routes: RankedTerms[] = []
  const reported = new Set<string>()
  return (result) => {
    if ('route' in result) {
      routes.push(result.route)
      const ranked = rankRoutes(routes, sort)
      const place = ranked.findIndex(({ id }) => id === result.route.route.id)
      const route = ranked[place]
      if (route !== undefined) tell({ kind: 'ROUTE', route, rank: place + 1 })
      return
    }
    const key = keyOf(result.unavailable)
    if (!reported.has(key)) tell({ kind: 'UNAVAILABLE', unavailable: result.unavailable })
    reported.add(key)
  }
}

/** Answers depend on network and currencies alone, so few are ever made. */
const MAX_REMEMBERED = 1_000

type Configured = Pick<QuoteDependencies, 'chains' | 'tokens' | 'providers'>

/**
 * Makes the function that explains why no wallet can ever pay a request, by the configuration alone: CHAIN_NOT_SUPPORTED, CURRENCY_NOT_SUPPORTED,
 * NO_PAYMENT_CONTRACT, NO_CONVERSION_PATH.
 *
 * @returns a function that gives an empty list where some wallet can
 */
export function createWarningsOf(dependencies: Configured) {
  const warningsOf = rememberByKey(MAX_REMEMBERED, (_, request: PaymentRequest): readonly RouteWarning[] => {
    const explanation = explainUnpayable(request, dependencies)
    return explanation === undefined ? [] : [toWarning(explanation)]
  })
  return (request: PaymentRequest) =>
    warningsOf(`${request.network} ${request.paymentCurrency} ${request.invoiceCurrency}`, request)
}

function explainUnpayable(request: PaymentRequest, { chains, tokens, providers }: Configured): Explanation | undefined {
  const destination = findDestination(request, { chains, tokens })
  if ('reason' in destination) return destination
  // Whether the configuration rules a candidate out depends on neither wallet nor amount.
  const payment: Payment = { request, wallet: ZERO_ADDRESS, destination, amount: 1n, limit: DEFAULT_LIMIT }
  const planned = planCandidates(findCandidates(request, destination, tokens), payment, { providers })
  const isPossible = planned.some(({ provider, plan }) => provider !== undefined && !('reason' in plan))
  const [first] = planned
  return isPossible || first === undefined || !('reason' in first.plan) ? undefined : first.plan
}
