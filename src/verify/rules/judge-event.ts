import type { TokenDirectory } from '../../chains/token-directory.ts'
import { currencyHash } from '../../contracts/currency-hash.ts'
import type { Address } from '../../domain/address.ts'
import { FIAT_DECIMALS, parseFiatCode, type Token } from '../../domain/currency.ts'
import type { Decimal } from '../../domain/decimal.ts'
import type { StoredRequest } from '../sql/stored-requests.ts'
import type { EventFact } from './chain-facts.ts'

/** What an event counts as for an account. */
export type Verdict =
  | {
      readonly kind: 'PAYMENT'
      readonly request: StoredRequest
      readonly token: Token
      /** In the payment currency. */
      readonly amount: Decimal
      /** Its value in the invoice currency. */
      readonly counted: Decimal
      /** Whether its rate could not be read; then the stored verdict stands. */
      readonly isRateUnread: boolean
    }
  | { readonly kind: 'REFUND'; readonly request: StoredRequest; readonly token: Token; readonly amount: Decimal }
  | { readonly kind: 'UNMATCHED'; readonly reason: string }

/** What the rules ask of the account, as of the time of the event. */
export interface AccountView {
  readonly chain: string
  readonly tokens: TokenDirectory
  /** Whether an address has paid the request before. */
  hasPaid(request: StoredRequest, address: Address): boolean
  /** Whether a payment of the request before has no known payer. */
  hasUnknownPayer(request: StoredRequest): boolean
  /** Whether an address was a refund wallet of the account by then. */
  isWallet(address: Address): boolean
  /** What an operator accepted the event as. */
  readonly accepted?: 'PAYMENT' | 'REFUND' | undefined
}

/** The reasons in the order of the rules. An event that fits no request gets the reason of the request with which it came furthest. */
const ORDER = [
  'WRONG_CHAIN',
  'WRONG_PAYEE',
  'WRONG_TOKEN',
  'NOT_A_CONVERSION',
  'NOTHING_RECEIVED',
  'SELF_PAYMENT',
  'NOT_FROM_PAYEE',
  'STALE_RATE',
  'RATE_OFF',
]

/** Judges an event against the requests of an account that have its topic, as theirs or as that of their refund address. */
export function judgeEvent(fact: EventFact, requests: readonly StoredRequest[], account: AccountView): Verdict {
  const verdicts = requests.flatMap((request) => [
    ...(request.topic === fact.event.topic ? [judgeOwnTopic(fact, request, account)] : []),
    ...(request.refundTopic === fact.event.topic ? [judgeRefundTopic(fact, request, account)] : []),
  ])
  const counting = verdicts.find(({ kind }) => kind === 'PAYMENT') ?? verdicts.find(({ kind }) => kind === 'REFUND')
  if (counting !== undefined) return counting
  const reasons = verdicts.flatMap((verdict) => (verdict.kind === 'UNMATCHED' ? [verdict.reason] : []))
  const last = reasons.toSorted((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b)).at(-1)
  return unmatched(last ?? 'UNKNOWN_TOPIC')
}

const unmatched = (reason: string): Verdict => ({ kind: 'UNMATCHED', reason })

function judgeOwnTopic(fact: EventFact, request: StoredRequest, account: AccountView): Verdict {
  const { event } = fact
  if (request.network !== account.chain) return unmatched('WRONG_CHAIN')
  if (event.to !== request.payee) return judgeReturn(fact, request, account)
  const token = tokenPaid(fact, request, account)
  if (token === undefined) return unmatched('WRONG_TOKEN')
  const isConversion = request.invoiceCurrency !== request.paymentCurrency
  if (isConversion && event.conversion === undefined) return unmatched('NOT_A_CONVERSION')
  // A conversion from another currency pays another invoice, though it brings the right token.
  const isOtherInvoice = event.conversion !== undefined && !(isConversion && isInvoicedIn(fact, request, account))
  if (isOtherInvoice) return unmatched('WRONG_TOKEN')
  const nothing = whyNothing(fact)
  if (nothing !== undefined) return unmatched(nothing)
  const amount = { units: event.received, places: token.decimals }
  if (!isConversion) return { kind: 'PAYMENT', request, token, amount, counted: amount, isRateUnread: false }
  const isAccepted = account.accepted === 'PAYMENT'
  if (!isAccepted && (fact.rate === 'STALE_RATE' || fact.rate === 'RATE_OFF')) return unmatched(fact.rate)
  const counted = { units: countedOf(fact), places: invoicePlaces(request, account) }
  return { kind: 'PAYMENT', request, token, amount, counted, isRateUnread: !isAccepted && fact.rate === 'UNREADABLE' }
}

/** Judges money under the request's own reference that went to somebody else: a refund, if the payee sent it to somebody who had paid. */
function judgeReturn(fact: EventFact, request: StoredRequest, account: AccountView): Verdict {
  const { to } = fact.event
  const isWallet = account.isWallet(to)
  const isPayer = account.hasPaid(request, to) || (account.hasUnknownPayer(request) && !isWallet)
  const isReturn = isPayer && isFromPayee(fact, request, account)
  if (!isReturn && account.accepted !== 'REFUND') return unmatched('WRONG_PAYEE')
  return refundOf(fact, request, account)
}

function judgeRefundTopic(fact: EventFact, request: StoredRequest, account: AccountView): Verdict {
  if (request.network !== account.chain) return unmatched('WRONG_CHAIN')
  if (fact.event.to !== request.refundAddress) return unmatched('WRONG_PAYEE')
  const refund = refundOf(fact, request, account)
  if (refund.kind === 'UNMATCHED' || account.accepted === 'REFUND') return refund
  return isFromPayee(fact, request, account) ? refund : unmatched('NOT_FROM_PAYEE')
}

function refundOf(fact: EventFact, request: StoredRequest, account: AccountView): Verdict {
  const token = tokenPaid(fact, request, account)
  if (token === undefined) return unmatched('WRONG_TOKEN')
  const nothing = whyNothing(fact)
  if (nothing !== undefined) return unmatched(nothing)
  return { kind: 'REFUND', request, token, amount: { units: fact.event.received, places: token.decimals } }
}

function isFromPayee({ paidFrom }: EventFact, { payee }: StoredRequest, account: AccountView): boolean {
  return paidFrom !== undefined && (paidFrom === payee || account.isWallet(paidFrom))
}

function whyNothing({ event, paidFrom }: EventFact): string | undefined {
  if (event.received === 0n) return 'NOTHING_RECEIVED'
  return (event.claimed?.from ?? paidFrom) === event.to ? 'SELF_PAYMENT' : undefined
}

function tokenPaid(
  { token }: EventFact,
  { paymentCurrency }: StoredRequest,
  { tokens }: AccountView,
): Token | undefined {
  return token !== undefined && token.id === tokens.byId(paymentCurrency)?.id ? token : undefined
}

function isInvoicedIn({ event }: EventFact, { invoiceCurrency }: StoredRequest, { tokens }: AccountView): boolean {
  const fiat = parseFiatCode(invoiceCurrency)
  const token = tokens.byId(invoiceCurrency)
  const address =
    token === undefined ? fiat && currencyHash('iso4217', fiat) : (token.address ?? currencyHash('eth', token.symbol))
  return address !== undefined && event.conversion?.currency === address
}

function invoicePlaces({ invoiceCurrency }: StoredRequest, { tokens }: AccountView): number {
  return tokens.byId(invoiceCurrency)?.decimals ?? FIAT_DECIMALS
}

/** The conversion's amount in proportion to what arrived, rounded down. */
function countedOf({ event: { conversion, received, amount } }: EventFact): bigint {
  const whole = conversion?.amount ?? 0n
  return amount === 0n ? 0n : (whole * received) / amount
}
