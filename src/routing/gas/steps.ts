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

/** The transactions of a route of which the gas is to be measured. */
export interface GasQuestion {
  readonly wallet: Address
  /** The wallet's balance in wei. */
  readonly balance: bigint
  /** The time of the block that the route was quoted on. */
  readonly quotedAtSec: number
  /** The time at which the transactions are simulated: later than any block so far. */
  readonly simulateAtSec: number
  /** In the order in which they are sent; at least one. */
  readonly calls: readonly GasCall[]
}

/** A transaction to measure. */
export interface GasCall extends Transaction {
  readonly effect?: StepEffect | undefined
}

/** The gas of one transaction, as a node measured it. */
export type StepGas =
  /** `used` after refunds; `most` before them, which the gas limit has to cover. */
  | { readonly way: 'SIMULATED'; readonly used: bigint; readonly most: bigint }
  /** The lowest limit with which it succeeds. Refunds, at most a fifth of it, are not known. */
  | { readonly way: 'ESTIMATED'; readonly most: bigint }

/** What a node measured. */
export type GasAnswer =
  /** In the order of the calls; undefined for one that could not be measured. */
  | { readonly steps: readonly (StepGas | undefined)[] }
  /** A transaction would be reverted, with what its contract says. */
  | { readonly reverted: { readonly place: number; readonly detail: string } }

/** Whether each call was measured, so that no other node has to be asked. */
export function isComplete(answer: GasAnswer): boolean {
  return 'reverted' in answer || answer.steps.every((step) => step !== undefined)
}

/** Every transaction takes at least this. */
const MIN_GAS = 21_000n

/** A node that names more is wrong: no chain mines a payment that takes a whole block. */
const MAX_GAS = 30_000_000n

/** Whether a node's figure can be the gas of a transaction. It decides the limit that a wallet signs. */
export function isPlausibleGas(gas: bigint): boolean {
  return gas >= MIN_GAS && gas <= MAX_GAS
}
