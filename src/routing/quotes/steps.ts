import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { StepKind } from '../../domain/route.ts'

/** A transaction that the wallet is to send. */
export interface Step {
  readonly kind: StepKind
  /** The gas that it is expected to use: at most so much by the measured table, or what a node found for this very step. */
  readonly gasLimit: bigint
  /** The gas that it is to be allowed where that was measured; else it follows from `gasLimit`. */
  readonly allow?: bigint
  /** What it leaves behind that later steps need; absent where no later step needs anything of it. */
  readonly effect?: StepEffect
  /** What to send; made when asked for, since most quotes are only listed. */
  transaction(): Transaction
}

/** What a step changes for those after it. Amounts are base units, and are what stands there afterwards. */
export type StepEffect =
  | { readonly kind: 'ALLOWANCE'; readonly token: Address; readonly spender: Address; readonly amount: bigint }
  /** What the wallet then holds. */
  | { readonly kind: 'BALANCE'; readonly token: Address; readonly amount: bigint }

/** A transaction without what the wallet decides itself: nonce and price of gas. */
export interface Transaction {
  readonly to: Address
  readonly data: Hex
  /** Wei of the native coin that goes with it. */
  readonly value: bigint
}

/** The gas of all steps. */
export function totalGas(steps: readonly Pick<Step, 'gasLimit'>[]): bigint {
  return steps.reduce((sum, step) => sum + step.gasLimit, 0n)
}
