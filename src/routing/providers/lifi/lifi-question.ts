import type { ContractCall, ContractCallsQuoteRequestToAmount } from '@lifi/types'
import type { Address } from '../../../domain/address.ts'
import type { Token } from '../../../domain/currency.ts'

/** The contracts of the chains file that an answer must use. */
export interface LifiPins {
  /** On the source chain: the wallet calls it and lets it pull tokens. */
  readonly diamond: Address
  /** On the source chain: they take LI.FI's fee. */
  readonly feeContracts: readonly Address[]
  /** On the destination chain: the bridge delivers to it. */
  readonly receiver: Address
}

/** What LI.FI was asked. */
export interface LifiQuestion {
  readonly request: ContractCallsQuoteRequestToAmount
  readonly call: ContractCall
  readonly source: Token
  readonly destination: Token
  readonly pins: LifiPins
}

/** The checks of a quote. COST_TOO_HIGH is a reason of its own, since the provider is then honest but expensive. */
export type QuoteCheck =
  /** The answer cannot be read, contradicts itself, or is about something else than was asked for. */
  | 'INCONSISTENT'
  /** The calldata is not of a form that can be decoded. */
  | 'UNVERIFIABLE'
  | 'FOREIGN_CONTRACT'
  | 'FOREIGN_SPENDER'
  | 'WRONG_SOURCE'
  | 'WRONG_VALUE'
  | 'WRONG_DESTINATION'
  | 'WRONG_RECEIVER'
  | 'WRONG_REFUND'
  | 'OUTPUT_TOO_LOW'
  | 'NO_CALL'
  | 'WRONG_CALL'
  | 'WRONG_TIMES'
  | 'COST_TOO_HIGH'

/** A quote of LI.FI that must not be used. The message says what is wrong with it. */
export class RejectedQuoteError extends Error {
  override readonly name = 'RejectedQuoteError'
  readonly check: QuoteCheck

  /** @param check - the one that failed */
  constructor(check: QuoteCheck, message: string) {
    super(message)
    this.check = check
  }
}

/** @throws RejectedQuoteError where it does not hold */
export function ensure(holds: boolean, check: QuoteCheck, message: string): asserts holds {
  if (!holds) throw new RejectedQuoteError(check, message)
}
