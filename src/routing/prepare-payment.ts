import { requireConfigured, requireTokenOn } from '../chains/resolve-names.ts'
import type { TokenDirectory } from '../chains/token-directory.ts'
import { toQuantity } from '../contracts/words.ts'
import type { Account } from '../domain/account.ts'
import { type Address, formatAddress } from '../domain/address.ts'
import { symbolOfCurrency, type Token } from '../domain/currency.ts'
import { formatAmount, parseDecimal, powerOfTen, rescale } from '../domain/decimal.ts'
import { suggestName } from '../domain/nearest.ts'
import { requireAmount } from '../domain/require-input.ts'
import type { PaymentQuestion, PreparedPayment, PreparedTransaction, Route, RoutesAnswer } from '../domain/route.ts'
import { readAll } from '../errors/gather-errors.ts'
import { explain, WaybillError, waybillError } from '../errors/waybill-error.ts'
import type { Step } from './gas/steps.ts'
import { DEFAULT_LIMIT, type Payment, parseQuestion, type SpendingLimit } from './question/parse-question.ts'
import type { UnrankedRoute } from './quotes/assemble-route.ts'
import { type MeasuredRoute, measureRoute } from './quotes/measure-route.ts'
import { type PlannedCandidate, planCandidates } from './quotes/plan-candidates.ts'
import type { Directories } from './quotes/preferences.ts'
import {
  type Inquiry,
  inquire,
  planAll,
  type QuoteDependencies,
  type Quoted,
  type QuoteOptions,
  quotePlanned,
  timeLeft,
} from './quotes/quote-routes.ts'
import { sortRoutes } from './quotes/rank.ts'
import { DIRECT_ROUTE_ID } from './quotes/route-id.ts'

/** QUOTE_CHANGED: the route now takes more than the caller allows. It carries the new quote. */
export class QuoteChangedError extends WaybillError {
  /** The route as quoted now. */
  readonly route: Route

  /** @param maxSourceAmount - the most that the caller allows, in units of the route's token */
  constructor(route: Route, maxSourceAmount: string) {
    const { id, sourceAmount, token } = route
    const terms = { route: id, sourceAmount, maxSourceAmount, token }
    const { reason, message, metadata } = waybillError('QUOTE_CHANGED', terms)
    super(reason, message, metadata, {})
    this.route = route
  }
}

/** Parses what a caller asks. @throws WaybillError for input that is not valid, whatever the route */
export function readPaymentQuestion(question: PaymentQuestion, directories: Parameters<typeof readChoice>[1]) {
  return readAll({
    question: () => parseQuestion(question),
    slippage: () => readSlippage(question.slippage),
    choice: () => readChoice(question, directories),
    maxSourceAmount: () => question.maxSourceAmount && requireAmount('maxSourceAmount', question.maxSourceAmount, {}),
  })
}

/**
 * Makes the function that quotes one route afresh and returns the transactions that take it.
 *
 * It throws WaybillError as `findRoutes` does; UNKNOWN_ROUTE for an id that no route of this request has, ROUTE_UNAVAILABLE with the reason where
 * it is no route now, ROUTE_NOT_QUOTED where a source of the quote failed, ROUTE_WOULD_FAIL where one of its transactions would revert,
 * REQUEST_COVERED where nothing is left to pay, REQUEST_CANCELLED or REQUEST_EXPIRED where payments are no longer wanted, and
 * QuoteChangedError where it takes more than `maxSourceAmount`.
 */
export function createPreparePayment(dependencies: QuoteDependencies) {
  return async (account: Account, rawQuestion: PaymentQuestion, options: QuoteOptions): Promise<PreparedPayment> => {
    const { question, slippage, choice } = readPaymentQuestion(rawQuestion, dependencies)
    const inquiry = await inquire(account, question, options.signal, dependencies)
    const { candidate, ids, payment } = findChosen(inquiry, choice, dependencies)
    const { source } = candidate
    const maxSourceAmount = readMaxSourceAmount(rawQuestion.maxSourceAmount, source)
    const limit = { slippage, maxSourceAmount }
    const all = planCandidates([candidate], { ...payment, limit, isFinalQuote: true }, dependencies)
    // An entry without a provider has no id; its plan says why.
    const planned = all.filter(({ provider }) => provider === undefined || ids.has(provider.routeId))
    const quoting = { ...question, requestExpiresAt: payment.request.expiresAt }
    const quoted = await quotePlanned(planned, quoting, options, dependencies)
    const sorted = sortQuoted(quoted, nameOf(choice))
    const [best] = sorted
    const most = maxSourceAmount ?? best.quoted.quote.sourceAmount
    const affordable =
      maxSourceAmount === undefined ? sorted : sorted.filter(({ quoted: { quote } }) => quote.sourceAmount <= most)
    if (affordable.length === 0)
      throw new QuoteChangedError(withoutTags(best.route), formatAmount(most, source.decimals))
    const measured = await measureFirst(affordable, question.wallet, options, dependencies)
    const pay = payMessage(payment, inquiry.answer, measured.found.quoted)
    const prepared = prepare(measured, question.wallet, { pay, tokens: dependencies.tokens })
    return { ...prepared, warnings: [...inquiry.answer.warnings, ...prepared.warnings] }
  }
}

/**
 * Finds what the caller chose: one candidate, by one of the routes with these ids.
 *
 * @throws WaybillError UNKNOWN_ROUTE, ROUTE_UNAVAILABLE, or why the request cannot be paid at all
 */
function findChosen(inquiry: Inquiry, choice: RouteChoice, dependencies: QuoteDependencies) {
  const { answer, search, refusal } = inquiry
  if (refusal !== undefined) throw refusal
  const [warning] = answer.warnings
  if (search === undefined && warning !== undefined) {
    const { message } = explain(warning.reason as 'REQUEST_ALREADY_PAID' | 'PAYMENT_PENDING', {})
    throw waybillError('REQUEST_COVERED', { detail: message })
  }
  const planned = planAll(inquiry, dependencies)
  const found = planned.filter((entry) => isChosen(entry, choice))
  const [first] = found
  if (search === undefined) throw explainNoRoute(nameOf(choice), answer)
  if (first !== undefined) {
    const ids = new Set(found.flatMap(({ provider }) => provider?.routeId ?? []))
    return { candidate: first.candidate, ids, payment: search.payment }
  }
  const ids = planned.flatMap(({ provider }) => provider?.routeId ?? [])
  const value = nameOf(choice)
  throw waybillError('UNKNOWN_ROUTE', { value, suggestion: suggestName(value, ids) })
}

function isChosen({ candidate, provider }: PlannedCandidate, choice: RouteChoice): boolean {
  return choice.kind === 'ID' ? provider?.routeId === choice.id.toUpperCase() : candidate.source.id === choice.token.id
}

/** The routes, best first. @throws WaybillError PAYER_SCREENED for a wallet that an oracle lists, and why there is no route */
export function sortQuoted(quoted: Quoted, name: string) {
  if (quoted.listed !== undefined) throw waybillError('PAYER_SCREENED', quoted.listed)
  const [best, ...others] = sortRoutes(quoted.routes)
  if (best === undefined) throw explainNoRoute(name, quoted)
  return [best, ...others] as const
}

/** After a failed source the same call is worth making again (ROUTE_NOT_QUOTED); a lack in the wallet stays (ROUTE_UNAVAILABLE). */
function explainNoRoute(id: string, { unavailable, degraded }: Pick<RoutesAnswer, 'unavailable' | 'degraded'>) {
  const { reason = '', message = '', remedy = '', metadata } = unavailable[0] ?? {}
  const atFault = reason === 'INSUFFICIENT_BALANCE' ? { field: 'wallet' } : {}
  const terms = { ...metadata, route: id, why: `${reason}: ${message}`, remedy, ...atFault }
  return waybillError(degraded ? 'ROUTE_NOT_QUOTED' : 'ROUTE_UNAVAILABLE', terms)
}

/** A route outside a list has no tags: it would always be the cheapest and the fastest. */
function withoutTags(route: UnrankedRoute['route']): Route {
  return { ...route, tags: [] }
}

/** Measures the first route; the next where that would revert. @throws WaybillError ROUTE_WOULD_FAIL where all would */
export async function measureFirst(
  routes: readonly UnrankedRoute[],
  wallet: Address,
  { signal, deadlineAtMs }: QuoteOptions,
  { scanner, clock, chainTimeoutMs }: QuoteDependencies,
): Promise<MeasuredRoute> {
  let failure: WaybillError | undefined
  for (const route of routes) {
    try {
      const timeoutMs = timeLeft(chainTimeoutMs, deadlineAtMs, clock())
      return await measureRoute(route, { scanner, wallet, nowMs: clock(), signal, timeoutMs })
    } catch (error) {
      if (!(error instanceof WaybillError)) throw error
      failure ??= error
    }
  }
  throw failure ?? new TypeError('there is no route to measure')
}

/** @param texts - `pay` says what the payment itself does */
export function prepare(
  { found, limits, warnings }: MeasuredRoute,
  wallet: Address,
  texts: StepTexts,
): PreparedPayment {
  const { quote, candidate, state } = found.quoted
  const transactions = quote.steps.map((step, place): PreparedTransaction => {
    const { to, data, value } = step.transaction()
    const gas = limits[place]
    return {
      from: formatAddress(wallet),
      to: formatAddress(to),
      data,
      value: toQuantity(value),
      gas: gas === undefined ? undefined : toQuantity(gas),
      chainId: toQuantity(state.chain.chainId),
    }
  })
  return {
    route: withoutTags(found.route),
    transactions,
    steps: quote.steps.map((step) => ({ kind: step.kind, message: stepMessage(step, found.quoted, texts) })),
    maxSourceAmount: formatAmount(quote.maxPulled, candidate.source.decimals),
    warnings,
  }
}

const HIGHEST_PERCENTAGE = 50n

/** Reads a percentage of at most 50 as a fraction; half a percent by default. */
function readSlippage(text: string | undefined): SpendingLimit['slippage'] {
  if (text === undefined) return DEFAULT_LIMIT.slippage
  const percent = parseDecimal(text)
  if (percent === undefined || percent.units < 0n || percent.units > HIGHEST_PERCENTAGE * powerOfTen(percent.places)) {
    throw waybillError('INVALID_PERCENTAGE', {
      field: 'slippage',
      value: text,
      detail: `it is not a plain decimal number from 0 to ${HIGHEST_PERCENTAGE}`,
    })
  }
  return { units: percent.units, places: percent.places + 2 }
}

function readMaxSourceAmount(text: string | undefined, source: Token): bigint | undefined {
  if (text === undefined) return undefined
  const { decimals, symbol } = source
  const amount = requireAmount('maxSourceAmount', text, { currency: { id: symbol, decimals } })
  return rescale(amount, decimals).units
}

/** The route that a caller wants to take. */
type RouteChoice =
  | { readonly kind: 'ID'; readonly id: string }
  /** The best route with that token or coin. */
  | { readonly kind: 'TOKEN'; readonly token: Token }

/**
 * Parses the caller's choice: `route`, or `chain` and `token` together, or none of them for the direct route.
 *
 * @throws WaybillError INCOMPLETE_ROUTE, MISSING_FIELD for an empty value, UNKNOWN_NETWORK,
 *   NETWORK_NOT_CONFIGURED or CURRENCY_NOT_ON_NETWORK
 */
function readChoice(question: PaymentQuestion, directories: Directories): RouteChoice {
  const { route, chain, token } = question
  for (const field of ['route', 'chain', 'token'] as const) {
    if (question[field] === '') throw waybillError('MISSING_FIELD', { field })
  }
  for (const field of ['chain', 'token'] as const) {
    if (route === undefined || question[field] === undefined) continue
    throw waybillError('INCOMPLETE_ROUTE', { field, detail: 'beside route' })
  }
  if (chain === undefined && token === undefined) return { kind: 'ID', id: route ?? DIRECT_ROUTE_ID }
  if (token === undefined) throw waybillError('INCOMPLETE_ROUTE', { field: 'chain', detail: 'without token' })
  if (chain === undefined) throw waybillError('INCOMPLETE_ROUTE', { field: 'token', detail: 'without chain' })
  const { chains, tokens } = directories
  return { kind: 'TOKEN', token: requireTokenOn(tokens, 'token', requireConfigured(chains, 'chain', chain), token) }
}

/** The choice as messages name it. */
function nameOf(choice: RouteChoice): string {
  return choice.kind === 'ID' ? choice.id : `with ${choice.token.symbol} on ${choice.token.chain}`
}

interface StepTexts {
  /** What the payment itself does. */
  readonly pay: string
  readonly tokens: TokenDirectory
}

/** One sentence that tells the payer what a transaction does, to be read before signing. */
function stepMessage({ kind, effect }: Step, quoted: UnrankedRoute['quoted'], { pay, tokens }: StepTexts): string {
  const { source, destination } = quoted.candidate
  switch (kind) {
    case 'APPROVE_RESET':
    case 'APPROVE': {
      if (effect?.kind !== 'ALLOWANCE') return 'Let the payment contract take what is paid.'
      const token = tokens.byAddress(source.chain, effect.token) ?? source
      const amount = `${formatAmount(effect.amount, token.decimals)} ${token.symbol}`
      return kind === 'APPROVE'
        ? `Let the contract ${formatAddress(effect.spender)} take up to ${amount} from the wallet.`
        : `Take back what the contract ${formatAddress(effect.spender)} may take: ${token.symbol} demands it before the amount changes.`
    }
    case 'SWAP':
      return `Swap at most ${mostOf(quoted)} into ${destination.symbol}, which stays in the wallet.`
    case 'PAY':
      return pay
  }
}

function payMessage({ request }: Payment, due: RoutesAnswer, quoted: UnrankedRoute['quoted']): string {
  const { source, destination } = quoted.candidate
  const paid = `Pay ${due.amount} ${symbolOfCurrency(due.currency)} to ${formatAddress(request.payee)}`
  const isConverted = due.currency !== destination.id
  if (!isConverted && source.id === destination.id) return `${paid}.`
  return `${paid}${isConverted ? ` in ${destination.symbol}` : ''}, with at most ${mostOf(quoted)}.`
}

function mostOf({ quote, candidate: { source } }: UnrankedRoute['quoted']): string {
  return `${formatAmount(quote.maxPulled, source.decimals)} ${source.symbol}`
}
