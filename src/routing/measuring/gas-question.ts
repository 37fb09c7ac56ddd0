import type { Address } from '../../domain/address.ts'
import type { StepEffect, Transaction } from '../quotes/steps.ts'

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
  /** The gas limit by the table in `quotes/gas.ts`. */
  readonly tableLimit: bigint
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

/** The gas that a transaction may use and still be measured: so many times its limit by the table, within these bounds. */
const MAX_TIMES_TABLE = 5n
const MIN_ALLOWED = 500_000n
const MAX_ALLOWED = 8_000_000n

/**
 * The most gas that a transaction may use and still be measured. A simulation needs a limit for each: without one, some nodes reserve the
 * gas of the whole block for the first.
 */
export function allowedGas({ tableLimit }: Pick<GasCall, 'tableLimit'>): bigint {
  const wanted = tableLimit * MAX_TIMES_TABLE
  const bounded = wanted < MIN_ALLOWED ? MIN_ALLOWED : wanted > MAX_ALLOWED ? MAX_ALLOWED : wanted
  return bounded < tableLimit ? tableLimit : bounded
}

/** Whether a node's figure can be the gas of a transaction. It decides the limit that a wallet signs, and pays in the worst case. */
export function isPlausibleGas(gas: bigint, call: Pick<GasCall, 'tableLimit'>): boolean {
  return gas >= MIN_GAS && gas <= allowedGas(call)
}
