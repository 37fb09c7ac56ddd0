import type { Address } from './address.ts'
import type { Hex } from './hex.ts'
import type { FeeStage, FeeType } from './payment.ts'

/** A question for routes, as the caller wrote it. */
export interface RoutesQuestion {
  readonly paymentReference: string
  readonly wallet: string
  readonly amount?: string | undefined
  readonly feePercentage?: string | undefined
  readonly feeAddress?: string | undefined
  readonly sort?: RouteSort | undefined
  /** Fractions as decimal strings. */
  readonly maxPriceImpact?: string | undefined
  readonly maxFeeRate?: string | undefined
  /** Names of chains to pay from and of tokens to pay with. Absent or empty: all. */
  readonly chains?: readonly string[] | undefined
  readonly tokens?: readonly string[] | undefined
}

/** The orders of routes besides the default one. */
export type RouteSort = 'CHEAPEST' | 'FASTEST'

/** How long a payment takes to reach the payee, fastest first: up to 60 seconds, up to 20 minutes, longer. */
export const routeSpeeds = ['FAST', 'STANDARD', 'SLOW'] as const
export type RouteSpeed = (typeof routeSpeeds)[number]

export type RouteTag = 'CHEAPEST' | 'FASTEST'
export type StepKind = 'APPROVE_RESET' | 'APPROVE' | 'SWAP' | 'PAY'

/** A way in which a wallet can pay a request now. Amounts are decimal strings in human units; what is unknown is absent. */
export interface Route {
  readonly id: string
  /** All fees in units of `feeCurrency`: the double nearest to `feeAmount`. */
  readonly fee: number
  readonly speed: RouteSpeed
  /** Loss against the market, fees not included, as a fraction of what the payee receives, rounded half-even to 8 places. */
  readonly priceImpact: number
  /** Canonical name of the chain on which the wallet pays. */
  readonly chain: string
  readonly token: string
  /** CAIP-2. */
  readonly chainId: string
  readonly tokenAddress?: Address | undefined
  readonly sourceAmount: string
  readonly sourceAmountInUsd?: string | undefined
  readonly feeAmount: string
  /** Currency id. */
  readonly feeCurrency: string
  readonly feeInUsd?: string | undefined
  /** Whether every cost could be priced and is counted in the fee. */
  readonly feeIsComplete: boolean
  /** `feeAmount` as a fraction of what the payee receives, rounded half-even to 8 places. */
  readonly feeRate: number
  /** `feeRate` + `priceImpact`. */
  readonly totalCost: number
  readonly feeBreakdown: readonly RouteFeeLine[]
  readonly estimatedDurationSeconds: number
  readonly provider: string
  readonly tags: readonly RouteTag[]
  readonly expiresAt: Date
  readonly warnings: readonly RouteWarning[]
  readonly atomic: boolean
  readonly readiness: RouteReadiness
}

export interface RouteFeeLine {
  readonly type: FeeType
  readonly stage: FeeStage
  readonly provider?: string | undefined
  readonly amount: string
  /** Currency id. */
  readonly currency: string
  /** Absent when a price is unknown. Then the line is not counted in the route's fee. */
  readonly amountInFeeCurrency?: string | undefined
  readonly amountInUsd?: string | undefined
}

export interface RouteWarning {
  readonly reason: string
  readonly message: string
  /** Values that a page may show in its own words, by name. */
  readonly metadata?: Readonly<Record<string, string>>
}

export interface RouteReadiness {
  /** Absent when it is not known. */
  readonly hasEnoughGas?: boolean | undefined
  readonly needsApproval: boolean
  readonly steps: readonly StepKind[]
}

/** A candidate that did not become a route. Without a token, it stands for a whole chain. */
export interface UnavailableRoute {
  readonly chain: string
  readonly token?: string
  readonly provider?: string | undefined
  readonly reason: string
  readonly message: string
  readonly remedy: string
  /** Values that programs may act on, by name: `check` of CROSSCHAIN_REJECTED. */
  readonly metadata?: Readonly<Record<string, string>>
}

/** The routes of one request and one wallet. */
export interface RoutesAnswer {
  /** Best first. */
  readonly routes: readonly Route[]
  /** What is paid for, in units of `currency`. */
  readonly amount: string
  /** Currency id or ISO 4217 code. */
  readonly currency: string
  readonly warnings: readonly RouteWarning[]
  readonly unavailable: readonly UnavailableRoute[]
  /** Whether a source failed or was cut off, so that routes may be missing. */
  readonly degraded: boolean
}

/** The ways to pay one request, for any wallet that holds enough. */
export interface OptionsAnswer extends RoutesAnswer {
  /** The direct payment as an EIP-681 address; undefined where none can express it. */
  readonly paymentUri: string | undefined
}

/** A question for the transactions of one route, as the caller wrote it: by the route's id, by chain and token, or neither for the direct route. */
export interface PaymentQuestion extends RoutesQuestion {
  /** The id of a route. */
  readonly route?: string | undefined
  /** The chain to pay from, and its token to pay with. */
  readonly chain?: string | undefined
  readonly token?: string | undefined
  /** Percent. */
  readonly slippage?: string | undefined
  /** Units of the route's token. */
  readonly maxSourceAmount?: string | undefined
}

/** A question for the transactions that pay many requests at once, as the caller wrote it. */
export interface BatchQuestion extends Pick<RoutesQuestion, 'wallet' | 'feePercentage' | 'feeAddress'> {
  readonly paymentReferences: readonly string[]
  /** Symbol or id. */
  readonly token?: string | undefined
}

/** One route and its transactions. */
export interface PreparedPayment {
  readonly route: Route
  /** What the wallet has to send, in order, each after the one before is mined. */
  readonly transactions: readonly PreparedTransaction[]
  /** What each transaction does, in the same order, in words for the payer. */
  readonly steps: readonly { readonly kind: StepKind; readonly message: string }[]
  /** The most that can leave the wallet, with platform fee and without gas, in units of the route's token. */
  readonly maxSourceAmount: string
  /** AMOUNT_ABOVE_OUTSTANDING where more than the outstanding balance is paid, and how gas was found where not by simulation. */
  readonly warnings: readonly RouteWarning[]
}

/** The parameters of `eth_sendTransaction`: addresses in EIP-55 form, numbers hexadecimal without leading zeros. */
export interface PreparedTransaction {
  readonly from: string
  readonly to: string
  readonly data: Hex
  /** Wei. */
  readonly value: Hex
  /** The gas limit. Absent where the wallet has to estimate it. */
  readonly gas?: Hex | undefined
  /** EIP-155. */
  readonly chainId: Hex
}

/** A result while routes are searched, sent as soon as it is known. The answer comes last. */
export type RoutesEvent =
  | {
      readonly kind: 'ROUTE'
      readonly route: Route /** Its place among the routes so far, from 1. */
      readonly rank: number
    }
  | { readonly kind: 'UNAVAILABLE'; readonly unavailable: UnavailableRoute }
  | { readonly kind: 'ANSWER'; readonly answer: RoutesAnswer }
