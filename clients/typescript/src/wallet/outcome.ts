import type { PaymentCalldata, PaymentStep, PaymentTransaction } from '../../gen/payments/v1/payment_calldata_pb.js'
import { type Route, Route_StepKind } from '../../gen/payments/v1/route_pb.js'

/**
 * How a payment ended. Only after MINED, SENT, UNKNOWN and ALREADY_ASKED can money have moved: never pay again then before the request's status
 * is known, or the payer says that the wallet has sent nothing (`askAgain`).
 */
export type PayOutcome =
  /** Every transaction is mined and succeeded. The request's status says when the payment counts. */
  | { readonly outcome: 'MINED'; readonly transactionHashes: readonly string[] }
  /** Everything was sent, and the signal ended the wait for it. */
  | { readonly outcome: 'SENT'; readonly transactionHashes: readonly string[]; readonly batchId?: string }
  /** The payer said no. Approvals before it may be mined; nothing was paid. */
  | { readonly outcome: 'REFUSED' }
  /** A transaction was mined and failed. Nothing was paid. */
  | { readonly outcome: 'REVERTED'; readonly transactionHash: string | undefined }
  /** The route now takes more than `maxSourceAmount`, or than the payer was shown. Nothing was paid. */
  | { readonly outcome: 'QUOTE_CHANGED'; readonly newQuote: Route | undefined }
  /** Quotes expired again and again before the payer answered. Nothing was paid. */
  | { readonly outcome: 'EXPIRED' }
  /** The wallet cannot do it. Nothing was paid. */
  | {
      readonly outcome: 'FAILED'
      readonly reason: FailureReason
      readonly code: number | undefined
      readonly message: string
    }
  /** Nothing tells whether the payment was sent, or whether it will be mined. */
  | {
      readonly outcome: 'UNKNOWN'
      readonly reason: UnknownReason
      readonly code: number | undefined
      readonly message: string
      readonly transactionHash?: string
      readonly batchId?: string
    }
  /** A wallet was asked to pay this request before and has not answered: in another tab, or by this page before a reload. Nothing was asked now. */
  | ({ readonly outcome: 'ALREADY_ASKED' } & AskedBefore)

/** What is known of a question that a wallet may still show. */
export interface AskedBefore {
  /** The address that was to pay; undefined where another tab has not come to the payment yet. */
  readonly wallet: string | undefined
  readonly askedAt: Date | undefined
  /** Whether another tab of this browser waits for the answer. */
  readonly isOtherTab: boolean
}

/**
 * WRONG_ACCOUNT: the wallet has not opened the paying address to the page. WRONG_CHAIN: it does not go to the route's chain. NO_ANSWER: it
 * does not answer, and was not asked for the payment yet. INTERRUPTED: the page was left between a swap, which is mined, and the payment; ask for
 * routes again, since the wallet holds another token now.
 */
export type FailureReason = 'WRONG_ACCOUNT' | 'WRONG_CHAIN' | 'WALLET_ERROR' | 'NO_ANSWER' | 'INTERRUPTED'

/**
 * NO_ANSWER: the wallet was asked for the payment and does not answer. REPLACED: another transaction took the place of the payment, as when a payer speeds it up or cancels it in the wallet. DROPPED: the wallet's
 * node no longer knows the payment.
 */
export type UnknownReason = 'WALLET_ERROR' | 'NO_ANSWER' | 'REPLACED' | 'DROPPED' | 'BATCH_LOST' | 'BATCH_IN_PART'

/** What happens on the way, in order. */
export type PayProgress =
  /** A payment that was sent before, perhaps by this page before a reload, is waited for instead of paying again. */
  | { readonly type: 'WAITING_FOR_EARLIER'; readonly transactionHash?: string; readonly batchId?: string }
  | { readonly type: 'QUOTED'; readonly quote: PaymentCalldata }
  | { readonly type: 'SWITCHING_CHAIN'; readonly chainId: string }
  /** The wallet now asks the payer for this step: one of `steps`, counted from 1. */
  | { readonly type: 'ASKING'; readonly step: number; readonly steps: number; readonly message: string }
  /** The wallet now asks the payer for all steps at once. */
  | { readonly type: 'ASKING_BATCH'; readonly steps: number }
  /** The wallet makes no batch: the steps are sent one by one. */
  | { readonly type: 'FALLING_BACK'; readonly code: number }
  | { readonly type: 'SENT'; readonly step: number; readonly transactionHash: string }
  | { readonly type: 'BATCH_SENT'; readonly batchId: string }
  | { readonly type: 'STEP_MINED'; readonly step: number; readonly transactionHash: string }
  /** The quote expired before the payment was sent: a new one is asked for. */
  | { readonly type: 'QUOTE_EXPIRED' }

/** A transaction as a plain object: the parameters of `eth_sendTransaction`. */
export type PlainTransaction = Pick<PaymentTransaction, 'from' | 'to' | 'data' | 'value' | 'chainId'> & { gas?: string }

export function toPlain({ from, to, data, value, gas, chainId }: PaymentTransaction): PlainTransaction {
  return { from, to, data, value, ...(gas !== undefined && { gas }), chainId }
}

/** The step by which its error is judged. */
export function walletStepOf(step: PaymentStep | undefined): 'APPROVE' | 'SWAP' | 'PAY' {
  if (isApprovalStep(step)) return 'APPROVE'
  return step?.kind === Route_StepKind.SWAP ? 'SWAP' : 'PAY'
}

export function isApprovalStep(step: PaymentStep | undefined): boolean {
  return step?.kind === Route_StepKind.APPROVE || step?.kind === Route_StepKind.APPROVE_RESET
}
