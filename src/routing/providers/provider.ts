import type { ContractRead } from '../../contracts/multicall.ts'
import type { Token } from '../../domain/currency.ts'
import type { Decimal } from '../../domain/decimal.ts'
import type { RouteWarning } from '../../domain/route.ts'
import type { Explanation } from '../../errors/waybill-error.ts'
import type { Payment } from '../due-payment.ts'
import type { Price } from '../looks/token-prices.ts'
import type { ChainState } from '../looks/wallet-state.ts'
import type { Candidate, CandidateKind } from '../quotes/candidates.ts'
import type { CostLine } from '../quotes/costs.ts'
import type { Step } from '../quotes/steps.ts'

/** A way to carry out one kind of candidate. */
export interface Provider {
  /** As it goes out: `request-network`. */
  readonly name: string
  readonly kind: CandidateKind
  /**
   * Decides by the configuration alone whether and how it could carry a candidate; the explanation says why not.
   *
   * @returns undefined where it has no business with the candidate's chain at all
   */
  plan(candidate: Candidate, payment: Payment): Plan | Explanation | undefined
}

/** How a candidate could become a route, once its chain has been looked at. */
export interface Plan {
  /** What the quote needs to know of the source chain, beside balances and prices. */
  readonly reads: readonly ContractRead[]
  /** The same of the destination's chain, which is then looked at as well; empty for its prices alone. */
  readonly readsOfDestination?: readonly ContractRead[]
  /**
   * Decides by what was read. Asked only when the wallet's balance of the source token is known. A promise where somebody has to be
   * asked once the chain is known; it never rejects but by the signal.
   */
  quote(state: ChainState, context: QuoteContext): Quote | Explanation | Promise<Quote | Explanation>
}

/** What a quote may use beside the state of its source chain. */
export interface QuoteContext {
  /** In US dollars, on whatever chain the token is; undefined also while that chain has not answered. */
  readonly priceOf: (token: Token) => Price | undefined
  /** Fires when the caller hangs up, or the time of the call is over. */
  readonly signal: AbortSignal
}

/** What a route would take and cost, gas aside, in base units. */
export interface Quote {
  /** What leaves the wallet in the source token, platform fee included. */
  readonly sourceAmount: bigint
  /** The most that the contract may pull; decides whether the balance suffices. */
  readonly mostPulled: bigint
  /** What the payee is to receive, in the request's payment currency: what fees are a fraction of. */
  readonly received: bigint
  /** Costs but for gas. */
  readonly costs: readonly CostLine[]
  /** Loss against the market's mid price as a fraction of `received`; 8 places. */
  readonly priceImpact: Decimal
  /** The transactions to send, in order. */
  readonly steps: readonly Step[]
  /** Until the payee has the money. */
  readonly durationSeconds: number
  readonly atomic: boolean
  /** What to know before taking it. */
  readonly warnings?: readonly RouteWarning[]
  /** When it ends by itself, milliseconds since 1970, where that is sooner than quotes usually do. */
  readonly expiresAtMs?: number
}
