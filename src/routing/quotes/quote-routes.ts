import type { ChainDirectory } from '../../chains/chain-directory.ts'
import { receiverChain } from '../../chains/configured-addresses.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { Account } from '../../domain/account.ts'
import { type Address, addressFamily, formatAddress } from '../../domain/address.ts'
import { FIAT_DECIMALS, type Token } from '../../domain/currency.ts'
import { compareDecimals, type Decimal, formatDecimal, MAX_DECIMAL_PLACES, rescale } from '../../domain/decimal.ts'
import type { Hex } from '../../domain/hex.ts'
import { closureOf, type PaymentRequest, type RequestBalance } from '../../domain/payment-request.ts'
import { requireReceiver } from '../../domain/require-input.ts'
import type { RoutesAnswer, RouteWarning, UnavailableRoute } from '../../domain/route.ts'
import { type Explanation, explain, type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { type Candidate, findCandidates, isFiatRequest } from '../plans/provider.ts'
import {
  checkAmount,
  checkTotal,
  DEFAULT_LIMIT,
  type ParsedQuestion,
  type Payment,
  platformFeeOf,
} from '../question/parse-question.ts'
import type { Scanner } from '../scan/scan.ts'
import { screen, withOracles } from '../scan/screening.ts'
import type { ChainState } from '../scan/wallet-state.ts'
import { warn } from './assemble-route.ts'
import { type AssessOptions, assessCandidates } from './assess-candidates.ts'
import { type PlannedCandidate, type PlanningDependencies, planCandidates, readsByChain } from './plan-candidates.ts'
import { isWanted, type Preferences } from './preferences.ts'

/** Loads a request of an account and its balance; undefined when the account has none under that reference. */
export type LoadRequest = (
  account: Account,
  paymentReference: Hex,
  signal: AbortSignal,
) => Promise<StoredRequest | undefined>

/** @param chainId - EIP-155 @returns undefined where it is not known */
export type ListChangedAt = (chainId: number) => Promise<Date | undefined>

/** The limits that a call sets. */
export interface QuoteOptions {
  /** Fires when the caller hangs up or its deadline passes. */
  readonly signal: AbortSignal
  /** When the answer must be there, milliseconds since 1970. */
  readonly deadlineAtMs?: number | undefined
}

export interface QuoteDependencies extends PlanningDependencies {
  readonly chains: ChainDirectory
  readonly tokens: TokenDirectory
  readonly scanner: Scanner
  readonly loadRequest: LoadRequest
  readonly listChangedAt?: ListChangedAt | undefined
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** The time for one chain. */
  readonly chainTimeoutMs: number
}

/** A caller's question about a stored request, with everything looked up that needs no chain. */
export interface Inquiry {
  /** The answer as far as it is known without reading a chain. */
  readonly answer: RoutesAnswer
  /** Absent when there is nothing to search for: then the answer is final. */
  readonly search?: { readonly payment: Payment; readonly candidates: readonly Candidate[] }
  /** The error for a caller who wants to pay a request that was cancelled or has expired, or with a wallet that may not pay it. */
  readonly refusal?: WaybillError
}

/** The wallet that asks, and which routes it wants. */
interface Quoting extends Omit<AssessOptions, 'tokens' | 'clock' | 'screening'> {
  readonly wallet: Address
}

/** Kept back from the call's deadline, so that the answers of quick chains still go out in time. */
const ANSWER_RESERVE_MS = 50

/**
 * Finds out what is to be paid, and with which tokens it might be.
 *
 * @throws WaybillError REQUEST_NOT_FOUND, and INVALID_… for what does not fit the request
 */
export async function inquire(
  account: Account,
  question: ParsedQuestion,
  signal: AbortSignal,
  dependencies: QuoteDependencies,
): Promise<Inquiry> {
  const { chains, tokens } = dependencies
  const stored = await dependencies.loadRequest(account, question.paymentReference, signal)
  if (stored === undefined) throw waybillError('REQUEST_NOT_FOUND', { value: question.paymentReference })
  const { request } = stored
  const feeAddress = question.platformFee?.receiver
  if (feeAddress) requireReceiver('feeAddress', formatAddress(feeAddress), receiverChain(request.network, chains))

  const due = decideAmount(question.amount, stored, tokens)
  const answer: RoutesAnswer = {
    routes: [],
    amount: formatDecimal(due.amount),
    currency: request.invoiceCurrency,
    warnings: due.warnings,
    unavailable: [],
    degraded: false,
  }
  if (due.amount.units === 0n) return { answer }
  const closure = closureOf(request, dependencies.clock())
  if (closure !== undefined) {
    const closedAt = closure === 'REQUEST_CANCELLED' ? request.cancelledAt : request.expiresAt
    const at = { at: closedAt?.toISOString() ?? '' }
    return { answer: { ...answer, warnings: [warn(closure, at)] }, refusal: waybillError(closure, at) }
  }
  const decimals = invoiceDecimals(request, tokens)
  const { units } = rescale(due.amount, decimals)
  const fee = question.platformFee === undefined ? 0n : platformFeeOf(units, question.platformFee.percentage)
  checkTotal(due.amount, units + fee, decimals)

  const destination = findDestination(request, dependencies)
  const unavailable = 'reason' in destination ? [{ chain: request.network, ...destination }] : []
  const { wallet, platformFee, isEstimate } = question
  const refused = isEstimate ? undefined : refusalOf(wallet, request)
  if (refused !== undefined) return refuse({ ...answer, unavailable }, wallet, refused)
  if ('reason' in destination) return { answer: { ...answer, unavailable } }
  const payment = { request, wallet, destination, amount: units, limit: DEFAULT_LIMIT, platformFee, isEstimate }
  const candidates = findCandidates(request, destination, tokens)
  if (addressFamily(question.wallet) !== chains.familyOf(request.network)) {
    return { answer: { ...answer, unavailable: candidates.map(({ source }) => familyMismatch(source, question)) } }
  }
  return { answer, search: { payment, candidates } }
}

/** Why a wallet is not sent to pay a request. Payments to oneself never count. */
function refusalOf(wallet: Address, { payee, allowedPayers }: PaymentRequest) {
  if (wallet === payee) return 'WALLET_IS_PAYEE'
  return allowedPayers?.includes(wallet) === false ? 'PAYER_NOT_ALLOWED' : undefined
}

function refuse(answer: RoutesAnswer, wallet: Address, reason: NonNullable<ReturnType<typeof refusalOf>>): Inquiry {
  const terms = { field: 'wallet', wallet: formatAddress(wallet) }
  const warnings = [...answer.warnings, warn(reason, terms)]
  return { answer: { ...answer, warnings }, refusal: waybillError(reason, terms) }
}

/** The terms of PAYER_SCREENED. @param listChangedAt - tells how old the list is: oracles run late */
async function listingOf(wallet: Address, { chain, timestampSec }: ChainState, listChangedAt?: ListChangedAt) {
  const at = new Date(timestampSec * 1_000).toISOString()
  const changedAt = (await listChangedAt?.(chain.chainId))?.toISOString() ?? 'unknown'
  return { field: 'wallet', wallet: formatAddress(wallet), chain: chain.name, at, changedAt }
}

/** What {@link quotePlanned} found. */
export type Quoted = Awaited<ReturnType<typeof quotePlanned>>

/** Lets all providers plan what is wanted, without reading any chain. */
export function planAll(
  { search }: Inquiry,
  dependencies: QuoteDependencies,
  preferences: Pick<Preferences, 'chains' | 'tokens'> = {},
): PlannedCandidate[] {
  if (search === undefined) return []
  const wanted = search.candidates.filter(({ source }) => isWanted(source, preferences))
  return planCandidates(wanted, search.payment, dependencies)
}

/**
 * Scans the chains and quotes.
 *
 * @throws the signal's reason when it fires. Chains that fail never throw: the result is then `degraded`
 */
export async function quotePlanned(
  planned: readonly PlannedCandidate[],
  { wallet, ...quoting }: Quoting,
  { signal, deadlineAtMs }: QuoteOptions,
  { scanner, chains, tokens, clock, chainTimeoutMs, listChangedAt }: QuoteDependencies,
) {
  const timeoutMs = timeLeft(chainTimeoutMs, deadlineAtMs, clock())
  using scan = scanner.scan(wallet, withOracles(readsByChain(planned), chains), { signal, timeoutMs })
  const screening = screen(scan, chains)
  // It may reject before somebody awaits it.
  screening.catch(() => {})
  const options = { tokens, clock, screening, ...quoting }
  const { listedBy, ...assessment } = await assessCandidates(planned, scan, options)
  return { ...assessment, listed: listedBy && (await listingOf(wallet, listedBy, listChangedAt)) }
}

/**
 * The token that the payee is to receive. Where the token or its chain is not configured, there is no candidate: every route would end
 * there, whatever the wallet holds.
 */
export function findDestination(
  request: Pick<PaymentRequest, 'network' | 'paymentCurrency'>,
  { chains, tokens }: Pick<QuoteDependencies, 'chains' | 'tokens'>,
): Token | Explanation {
  const { network, paymentCurrency } = request
  if (chains.config(network) === undefined) return explain('CHAIN_NOT_SUPPORTED', { chain: network })
  const token = tokens.byId(paymentCurrency)
  return token ?? explain('CURRENCY_NOT_SUPPORTED', { currency: paymentCurrency, chain: network })
}

function familyMismatch({ chain, symbol }: Token, { wallet }: ParsedQuestion): UnavailableRoute {
  const explanation = explain('WALLET_FAMILY_MISMATCH', { walletFamily: addressFamily(wallet), chain })
  return { chain, token: symbol, ...explanation }
}

/** The milliseconds for a source, so that the answer still goes out before the call's deadline. */
export function timeLeft(maxMs: number, deadlineAtMs: number | undefined, nowMs: number): number {
  if (deadlineAtMs === undefined) return maxMs
  return Math.max(1, Math.min(maxMs, Math.floor(deadlineAtMs - nowMs - ANSWER_RESERVE_MS)))
}

/** A stored request and its balance. */
interface StoredRequest {
  readonly request: PaymentRequest
  readonly balance: RequestBalance
}

/**
 * Decides how much is to be paid: nothing when payments cover the request, even ones that are not final; else the amount that the caller asked
 * for; else the outstanding balance.
 *
 * @returns units of the request's invoice currency; 0 when payments cover the request
 * @throws WaybillError INVALID_AMOUNT when the amount has more decimals than its currency, or is too large for a contract
 */
function decideAmount(asked: Decimal | undefined, { request, balance }: StoredRequest, tokens: TokenDirectory) {
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
function invoiceDecimals(request: PaymentRequest, tokens: TokenDirectory): number {
  if (isFiatRequest(request)) return FIAT_DECIMALS
  return tokens.byId(request.invoiceCurrency)?.decimals ?? MAX_DECIMAL_PLACES
}
