import type { Reason } from '../../../errors/reasons.ts'

/** The reasons for which a quote is rejected. */
export type RejectionReason = Extract<
  Reason,
  | 'CROSSCHAIN_INCONSISTENT'
  | 'CROSSCHAIN_UNVERIFIABLE'
  | 'CROSSCHAIN_FOREIGN_CONTRACT'
  | 'CROSSCHAIN_FOREIGN_SPENDER'
  | 'CROSSCHAIN_WRONG_SOURCE'
  | 'CROSSCHAIN_WRONG_VALUE'
  | 'CROSSCHAIN_WRONG_DESTINATION'
  | 'CROSSCHAIN_WRONG_RECEIVER'
  | 'CROSSCHAIN_WRONG_REFUND'
  | 'CROSSCHAIN_OUTPUT_TOO_LOW'
  | 'CROSSCHAIN_NO_CALL'
  | 'CROSSCHAIN_WRONG_CALL'
  | 'CROSSCHAIN_WRONG_TIMES'
  | 'CROSSCHAIN_TOO_DEAR'
>

/** A quote of LI.FI that must not be used. The message says what is wrong with it. */
export class RejectedQuoteError extends Error {
  override readonly name = 'RejectedQuoteError'
  readonly reason: RejectionReason

  constructor(reason: RejectionReason, message: string) {
    super(message)
    this.reason = reason
  }
}

/** @throws RejectedQuoteError where it does not hold */
export function ensure(holds: boolean, reason: RejectionReason, message: string): asserts holds {
  if (!holds) throw new RejectedQuoteError(reason, message)
}
