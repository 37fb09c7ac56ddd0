import type { TokenDirectory } from '../../chains/token-directory.ts'
import { currencyHash } from '../../contracts/currency-hash.ts'
import type { Address } from '../../domain/address.ts'
import { FIAT_DECIMALS, parseFiatCode, type Token } from '../../domain/currency.ts'
import type { Hex } from '../../domain/hex.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'
import type { PathRate, RatedPath } from '../read/path-rates.ts'
import type { SeenEvent } from './read-transaction.ts'

/** Why an event is neither a payment nor a refund of a request, in the order of the checks. */
export const unmatchedReasons = [
  'UNKNOWN_TOPIC',
  'RECEIPT_TOO_LARGE',
  'WRONG_CHAIN',
  'WRONG_PAYEE',
  'WRONG_TOKEN',
  'NOT_A_CONVERSION',
  'NOTHING_RECEIVED',
  'SELF_PAYMENT',
  'NOT_FROM_PAYEE',
  'STALE_RATE',
  'RATE_OFF',
] as const
export type UnmatchedReason = (typeof unmatchedReasons)[number]

/** A request as the matcher needs it. */
export interface MatchableRequest extends PaymentRequest {
  readonly topic: Hex
  readonly refundTopic?: Hex | undefined
}

/** An invoice currency as conversion events name it and count it. */
interface InvoiceUnit {
  readonly address: Address
  readonly decimals: number
}

/** What an event is to one account. Amounts in base units. */
export type Match =
  | {
      readonly kind: 'PAYMENT'
      readonly request: MatchableRequest
      readonly token: Token
      readonly amount: bigint
      /** What counts towards the request, in base units of the invoice currency. */
      readonly invoiceAmount: bigint
      readonly invoiceDecimals: number
    }
  | { readonly kind: 'REFUND'; readonly request: MatchableRequest; readonly token: Token; readonly amount: bigint }
  | {
      readonly kind: 'UNMATCHED'
      readonly reason: UnmatchedReason
      /** What else an operator needs to know; stored with the event. */
      readonly detail?: Readonly<Record<string, string>>
    }

export type PaymentMatch = Extract<Match, { kind: 'PAYMENT' }>

/** What matching needs to know beside the event. */
interface MatchContext {
  /** Canonical name of the event's chain. */
  readonly chain: string
  readonly tokens: TokenDirectory
  /** Whether an address paid the request before this event. */
  hasPaid(request: MatchableRequest, address: Address): boolean
  /** Whether a payment of the request before this event has an unknown payer. */
  hasUnknownPayer(request: MatchableRequest): boolean
  /** Whether an address was a refund wallet of the account at the time of the event. */
  isWallet(address: Address): boolean
  /** Whether an address is a listed contract that passes on other people's money. */
  isIntermediary(address: Address): boolean
  /** What an operator accepted this event as. */
  readonly accepted?: AcceptedAs | undefined
}

/** What an operator can accept an unmatched event as. */
export type AcceptedAs = 'PAYMENT' | 'REFUND'

/**
 * The reasons that an operator can overrule. The others say that the money is not the request's (another chain, token or payee), or that none
 * was moved. WRONG_PAYEE can be overruled only under the request's own reference.
 */
export const acceptableReasons: Readonly<Record<AcceptedAs, readonly UnmatchedReason[]>> = {
  PAYMENT: ['STALE_RATE', 'RATE_OFF'],
  REFUND: ['NOT_FROM_PAYEE', 'WRONG_PAYEE'],
}

/**
 * Decides what an event is to one account. References are public and the proxies take any token and payee, so a payment counts only if chain,
 * payee and token are the request's; of a conversion the invoice currency too.
 *
 * @param requests - the account's requests whose payment topic or refund topic is the event's
 * @see CHAIN, "Which event is a payment of which request" and "Status, outstanding, refunds"
 */
export function matchEvent(event: SeenEvent, requests: readonly MatchableRequest[], context: MatchContext): Match {
  const verdicts = requests.flatMap((request) => judgeRequest(event, request, context))
  const counted = verdicts.find(({ kind }) => kind === 'PAYMENT') ?? verdicts.find(({ kind }) => kind === 'REFUND')
  return counted ?? { kind: 'UNMATCHED', reason: furthestReason(verdicts) }
}

/**
 * Decides which payment an event is, apart from the rate of its conversion. Does not depend on other payments.
 *
 * @param requests - as for {@link matchEvent}
 */
export function matchPayment(
  event: SeenEvent,
  requests: readonly MatchableRequest[],
  context: Pick<MatchContext, 'chain' | 'tokens'>,
): PaymentMatch | undefined {
  const known = requests.filter(({ topic }) => topic === event.topic)
  const verdicts = known.map((request) => judgePayment(event, request, context))
  return verdicts.find((verdict) => verdict.kind === 'PAYMENT')
}

function judgeRequest(event: SeenEvent, request: MatchableRequest, context: MatchContext): Match[] {
  const verdicts: Match[] = []
  if (request.topic === event.topic) verdicts.push(judgePayment(event, request, context))
  else if (request.refundTopic === event.topic) verdicts.push(judgeRefundReference(event, request, context))
  if (request.topic === event.topic && isRefundToPayer(event, request, context)) {
    verdicts.push(judgeRefund(event, request, context))
  }
  return verdicts
}

/** The reason of the request that came closest: the one that passed most checks. */
function furthestReason(verdicts: readonly Match[]): UnmatchedReason {
  const places = verdicts.map((verdict) =>
    verdict.kind === 'UNMATCHED' ? unmatchedReasons.indexOf(verdict.reason) : 0,
  )
  return unmatchedReasons[Math.max(0, ...places)] ?? 'UNKNOWN_TOPIC'
}

function judgePayment(
  event: SeenEvent,
  request: MatchableRequest,
  context: Pick<MatchContext, 'chain' | 'tokens'>,
): Match {
  const unmatched = (reason: UnmatchedReason): Match => ({ kind: 'UNMATCHED', reason })
  if (request.network !== context.chain) return unmatched('WRONG_CHAIN')
  if (event.to !== request.payee) return unmatched('WRONG_PAYEE')
  const token = paidToken(event, request, context.tokens)
  if (token === undefined) return unmatched('WRONG_TOKEN')
  const amount = event.received
  const payment = { kind: 'PAYMENT', request, token, amount } as const
  const movesNothing = whyNothingMoved(event)
  if (isConversionRequest(request)) {
    const unit = invoiceUnitOf(request.invoiceCurrency, context.tokens)
    if (event.conversion === undefined) return unmatched('NOT_A_CONVERSION')
    if (event.conversion.currency !== unit?.address) return unmatched('WRONG_TOKEN')
    const invoiceAmount = convertedAmount(event, event.conversion.amount)
    if (movesNothing !== undefined) return unmatched(movesNothing)
    if (invoiceAmount === 0n) return unmatched('NOTHING_RECEIVED')
    return { ...payment, invoiceAmount, invoiceDecimals: unit.decimals }
  }
  // A conversion from another currency into the right token pays another invoice.
  if (event.conversion !== undefined) return unmatched('WRONG_TOKEN')
  if (movesNothing !== undefined) return unmatched(movesNothing)
  return { ...payment, invoiceAmount: amount, invoiceDecimals: token.decimals }
}

/** Where a token keeps a part of each transfer, the converted amount counts in proportion to what arrived, rounded down. */
function convertedAmount({ amount, received }: SeenEvent, converted: bigint): bigint {
  return received >= amount ? converted : (converted * received) / amount
}

/** Payees who pay themselves, also through an intermediary, have as much as before. */
function whyNothingMoved({ received, to, paidFrom, payer }: SeenEvent): UnmatchedReason | undefined {
  if (received === 0n) return 'NOTHING_RECEIVED'
  return paidFrom === to || payer === to ? 'SELF_PAYMENT' : undefined
}

/** Judges an event under the reference of the request's refund address, which anybody can use. */
function judgeRefundReference(event: SeenEvent, request: MatchableRequest, context: MatchContext): Match {
  if (event.to !== request.refundAddress) return { kind: 'UNMATCHED', reason: 'WRONG_PAYEE' }
  const verdict = judgeRefund(event, request, context)
  if (verdict.kind !== 'REFUND' || context.accepted === 'REFUND') return verdict
  return isPayeesMoney(event, request, context) ? verdict : { kind: 'UNMATCHED', reason: 'NOT_FROM_PAYEE' }
}

/**
 * Whether an event under the request's own reference is the payee's money on its way back to a payer. Where a payment has an unknown payer,
 * anybody but the payee and its wallets may be that payer.
 */
function isRefundToPayer(event: SeenEvent, request: MatchableRequest, context: MatchContext): boolean {
  if (event.to === request.payee) return false
  if (context.accepted === 'REFUND') return true
  if (!isPayeesMoney(event, request, context)) return false
  return context.hasPaid(request, event.to) || (context.hasUnknownPayer(request) && !context.isWallet(event.to))
}

/** Whether the payee, or a wallet that was registered before, paid directly. Otherwise anybody could make a request REFUNDED. */
function isPayeesMoney({ paidFrom }: SeenEvent, { payee }: MatchableRequest, context: MatchContext): boolean {
  if (paidFrom === undefined || context.isIntermediary(paidFrom)) return false
  return paidFrom === payee || context.isWallet(paidFrom)
}

/** Checks everything about a refund but whose money it is. */
function judgeRefund(event: SeenEvent, request: MatchableRequest, { chain, tokens }: MatchContext): Match {
  if (request.network !== chain) return { kind: 'UNMATCHED', reason: 'WRONG_CHAIN' }
  const token = paidToken(event, request, tokens)
  if (token === undefined) return { kind: 'UNMATCHED', reason: 'WRONG_TOKEN' }
  if (event.received === 0n) return { kind: 'UNMATCHED', reason: 'NOTHING_RECEIVED' }
  // A payee who pays themselves returns nothing.
  if (event.paidFrom === event.to) return { kind: 'UNMATCHED', reason: 'SELF_PAYMENT' }
  return { kind: 'REFUND', request, token, amount: event.received }
}

/** The request's payment currency, if the event moved it. */
function paidToken(event: SeenEvent, request: MatchableRequest, tokens: TokenDirectory): Token | undefined {
  const token = tokens.byId(request.paymentCurrency)
  return token !== undefined && token.chain === request.network && token.address === event.token ? token : undefined
}

/** Whether the invoice currency of a request is not its payment currency. */
export function isConversionRequest(request: Pick<PaymentRequest, 'invoiceCurrency' | 'paymentCurrency'>): boolean {
  return request.invoiceCurrency !== request.paymentCurrency
}

/** How conversion events name a currency: a token by its address; fiat and native coins by a hash of type and symbol. */
export function invoiceUnitOf(currency: string, tokens: TokenDirectory): InvoiceUnit | undefined {
  const token = tokens.byId(currency)
  if (token !== undefined) {
    return { address: token.address ?? currencyHash('eth', token.symbol), decimals: token.decimals }
  }
  const code = parseFiatCode(currency)
  return code === undefined ? undefined : { address: currencyHash('iso4217', code), decimals: FIAT_DECIMALS }
}

/** A payment must bring at least this part of what our path says, in percent: feeds move between blocks, and payers may use other feeds. */
const MIN_PERCENT = 98n

/**
 * Decides whether a conversion counts. The payer chooses the path and no event contains it, so the fiat amount of the event is only the payer's claim. What
 * the proxy moved must be worth at least 98 % of that amount at the rate of our own path; where several rates are fresh, the one that favours
 * the payer counts. Amounts are truncated to base units as the contract truncates them.
 *
 * Not to be called for an event that an operator accepted as a payment.
 *
 * @param match - returned as it is unless it is a conversion that does not count
 * @param path - undefined: none is configured for the currencies
 * @param timestampSec - of the payment's block
 */
export function judgeRate(
  match: Match,
  event: SeenEvent,
  { path, timestampSec }: { readonly path: RatedPath | undefined; readonly timestampSec: number },
): Match {
  const { conversion } = event
  if (match.kind !== 'PAYMENT' || conversion === undefined) return match
  if (path === undefined) return rateOff({ rateProblem: 'NO_PATH' })
  const [first, ...others] = path.rates
  if (first === undefined) return rateOff({ rateProblem: 'NO_RATE' })
  const minUpdatedAtSec = BigInt(timestampSec - path.maxAgeSeconds)
  const fresh = path.rates.filter(({ oldestSec }) => oldestSec >= minUpdatedAtSec)
  if (fresh.length === 0) return staleRate(path.maxAgeSeconds, newestOf(first, others))
  const expected = fresh.map(({ rate, scale }) => (conversion.amount * rate) / scale)
  const lowest = expected.reduce((a, b) => (a < b ? a : b))
  if (event.amount * 100n >= lowest * MIN_PERCENT) return match
  return rateOff({ rateProblem: 'TOO_LITTLE', expectedAmount: lowest.toString() })
}

function newestOf(first: PathRate, others: readonly PathRate[]): bigint {
  return others.reduce((newest, { oldestSec }) => (oldestSec > newest ? oldestSec : newest), first.oldestSec)
}

function rateOff(detail: Readonly<Record<string, string>>): Match {
  return { kind: 'UNMATCHED', reason: 'RATE_OFF', detail }
}

function staleRate(maxAgeSeconds: number, updatedAtSec: bigint): Match {
  const detail = { rateUpdatedAtSec: updatedAtSec.toString(), maxRateAgeSeconds: maxAgeSeconds.toString() }
  return { kind: 'UNMATCHED', reason: 'STALE_RATE', detail }
}
