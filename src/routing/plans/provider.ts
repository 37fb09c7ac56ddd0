import type { TokenDirectory } from '../../chains/token-directory.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import type { Address } from '../../domain/address.ts'
import { parseFiatCode, type Token } from '../../domain/currency.ts'
import type { Decimal } from '../../domain/decimal.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'
import type { RouteWarning } from '../../domain/route.ts'
import type { Explanation } from '../../errors/waybill-error.ts'
import type { Step } from '../gas/steps.ts'
import type { Payment } from '../question/parse-question.ts'
import type { ChainState, Price } from '../scan/wallet-state.ts'
import type { CostLine } from './costs.ts'

/**
 * How a token could pay a request.
 * - `DIRECT`: it is the payment currency
 * - `CONVERSION`: it is the payment currency of a fiat request
 * - `SWAP`: another token of the request's chain
 * - `CROSSCHAIN`: a token of another chain
 */
type CandidateKind = 'DIRECT' | 'CONVERSION' | 'SWAP' | 'CROSSCHAIN'

/** A token with which a wallet might pay a request. */
export interface Candidate {
  readonly kind: CandidateKind
  readonly source: Token
  /** The request's payment currency. */
  readonly destination: Token
}

/** Whether a request's amount is in a fiat currency. Then only a conversion counts as its payment. */
export function isFiatRequest(request: PaymentRequest): boolean {
  return parseFiatCode(request.invoiceCurrency) !== undefined
}

/**
 * Every token and native coin of every configured chain: the request's payment currency first, then its chain, then the others
 * in the order of the configuration.
 */
export function findCandidates(request: PaymentRequest, destination: Token, tokens: TokenDirectory): Candidate[] {
  const own = tokens.ofChain(destination.chain).filter((token) => token.id !== destination.id)
  const elsewhere = tokens.all.filter((token) => token.chain !== destination.chain)
  return [destination, ...own, ...elsewhere].map((source) => ({
    kind: kindOf(request, source, destination),
    source,
    destination,
  }))
}

function kindOf(request: PaymentRequest, source: Token, destination: Token): CandidateKind {
  if (source.chain !== destination.chain) return 'CROSSCHAIN'
  if (source.id !== destination.id) return 'SWAP'
  return isFiatRequest(request) ? 'CONVERSION' : 'DIRECT'
}

/** Quotes and prepares one kind of candidate. */
export interface Provider {
  /** As routes name it: `request-network`. */
  readonly name: string
  readonly kind: CandidateKind
  /**
   * Plans a candidate by the configuration alone; an explanation says why that is not possible.
   *
   * @returns undefined where it does not serve the candidate's chain at all
   */
  plan(candidate: Candidate, payment: Payment): Plan | Explanation | undefined
}

/** A contract or token on a chain. */
export interface UsedContract {
  /** Name of the chain. */
  readonly chain: string
  readonly address: Address
}

/** What nodes say of a contract or token that cannot be as the chains file has it. */
export interface Objection {
  /** As the chains file names it: `ERC20_FEE_PROXY 0.2.0`, `USDC`. */
  readonly contract: string
  readonly detail: string
}

/** Tells why nobody is to be sent to a contract or token; undefined where nothing speaks against it. */
export type ObjectionTo = (used: UsedContract) => Objection | undefined

/** How a candidate could become a route, once its chain has been looked at. */
export interface Plan {
  /** The tokens and contracts that the wallet's money goes through, on both chains. */
  readonly contracts: readonly UsedContract[]
  /** Reads of the source chain that the quote needs beside balances and prices. */
  readonly reads: readonly ContractRead[]
  /** Reads of the destination chain, which is then looked at as well; empty where its prices are enough. */
  readonly readsOfDestination?: readonly ContractRead[]
  /**
   * Quotes by what was read. Called only when the wallet's balance of the source token is known. A promise where a service has to be asked;
   * it never rejects but by the signal.
   */
  quote(state: ChainState, context: QuoteContext): Quote | Explanation | Promise<Quote | Explanation>
}

/** What a quote may use beside the state of its source chain. */
export interface QuoteContext {
  /** In US dollars, on any chain; undefined also where that chain did not answer. */
  readonly priceOf: (token: Token) => Price | undefined
  /** Fires when the caller hangs up or the call's time is over. */
  readonly signal: AbortSignal
}

/** What a route would take and cost without gas, in base units. */
export interface Quote {
  /** What leaves the wallet in the source token, platform fee included. */
  readonly sourceAmount: bigint
  /** The most that the contract may pull; decides whether the balance suffices. */
  readonly maxPulled: bigint
  /** What the payee is to receive, in the request's payment currency. Rates are fractions of it. */
  readonly received: bigint
  /** Costs without gas. */
  readonly costs: readonly CostLine[]
  /** Loss against the market, fees not included, as a fraction of `received`; 8 places. */
  readonly priceImpact: Decimal
  /** The transactions to send, in order. */
  readonly steps: readonly Step[]
  /** Until the payee has the money; default the time of a block for each step. */
  readonly durationSeconds?: number
  readonly atomic: boolean
  /** What the payer should know before taking it. */
  readonly warnings?: readonly RouteWarning[]
  /** When the quote ends, where that is sooner than usual; milliseconds since 1970. */
  readonly expiresAtMs?: number
}
