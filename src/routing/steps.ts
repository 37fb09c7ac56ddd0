import type { Address } from '../domain/address.ts'
import type { Hex } from '../domain/hex.ts'
import type { StepKind } from '../domain/route.ts'

/** A transaction that the wallet is to send. */
export interface Step {
  readonly kind: StepKind
  /** The most gas that it is expected to use. */
  readonly gasLimit: bigint
  /** What to send; made when asked for, since most quotes are only listed. */
  transaction(): Transaction
}

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
