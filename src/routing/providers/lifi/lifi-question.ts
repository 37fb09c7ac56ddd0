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
