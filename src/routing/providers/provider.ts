import type { Decimal } from '../../domain/decimal.ts'
import type { Explanation } from '../../errors.ts'
import type { Candidate, CandidateKind } from '../candidates.ts'
import type { ChainState } from '../chain-reader.ts'
import type { CostLine } from '../costs.ts'
import type { GasStep } from '../gas.ts'
import type { ContractRead } from '../multicall.ts'
import type { Payment } from '../payment.ts'

/** A way to carry out one kind of candidate. */
export interface Provider {
  /** As it goes out: `request-network`. */
  readonly name: string
  readonly kind: CandidateKind
  /** Decides by the configuration alone whether and how it could carry a candidate; the explanation says why not. */
  plan(candidate: Candidate, payment: Payment): Plan | Explanation
}

/** How a candidate could become a route, once its chain has been looked at. */
export interface Plan {
  /** What the quote needs to know of the source chain, beside balances and prices. */
  readonly reads: readonly ContractRead[]
  /** Decides by what was read. Asked only when the wallet's balance of the source token is known. */
  quote(state: ChainState): Quote | Explanation
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
  readonly steps: readonly GasStep[]
  /** Until the payee has the money. */
  readonly durationSeconds: number
  readonly atomic: boolean
}
