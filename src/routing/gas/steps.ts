import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { StepKind } from '../../domain/route.ts'

/** A transaction that the wallet is to send. */
export interface Step {
  readonly kind: StepKind
  /** The gas that it is expected to use: by the table in `gas.ts`, or as a node measured it. */
  readonly gasLimit: bigint
  /** The gas limit where it was measured; else it follows from `gasLimit`. */
  readonly allow?: bigint
  /** The change of state that later steps depend on; absent where none does. */
  readonly effect?: StepEffect
  /** The transaction; encoded when asked for, since most quotes are only listed. */
  transaction(): Transaction
}

/** What a step changes for those after it. Amounts are the new values, in base units. */
export type StepEffect =
  | { readonly kind: 'ALLOWANCE'; readonly token: Address; readonly spender: Address; readonly amount: bigint }
  /** The wallet's balance. */
  | { readonly kind: 'BALANCE'; readonly token: Address; readonly amount: bigint }

/** A transaction without nonce and gas price, which the wallet decides. */
export interface Transaction {
  readonly to: Address
  readonly data: Hex
  /** Wei of the native coin that it sends. */
  readonly value: bigint
}

/** The gas of all steps. */
export function totalGas(steps: readonly Pick<Step, 'gasLimit'>[]): bigint {
  return steps.reduce((sum, step) => sum + step.gasLimit, 0n)
}
