import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { StepEffect, Transaction } from '../quotes/steps.ts'

/** The transactions of a route, whose gas is to be measured. */
export interface GasQuestion {
  readonly wallet: Address
  /** Wei that the wallet holds. */
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
  /** The gas limit by the measured table. */
  readonly tableLimit: bigint
  readonly effect?: StepEffect
}

/** The gas of one transaction, as a node found it. */
export type StepGas =
  /** `used` once refunds are through; `most` before them, which is what the limit has to cover. */
  | { readonly way: 'SIMULATED'; readonly used: bigint; readonly most: bigint }
  /** The least limit with which it goes through. Refunds, at most a fifth of it, are not known. */
  | { readonly way: 'ESTIMATED'; readonly most: bigint }

/** What a node found. */
export type GasAnswer =
  /** In the order of the calls; undefined for one that could not be measured. */
  | { readonly steps: readonly (StepGas | undefined)[] }
  /** A transaction would be reverted, with what its contract says. */
  | { readonly reverted: { readonly place: number; readonly detail: string } }

/** Whether each call was measured, so that no other node need be asked. */
export function isComplete(answer: GasAnswer): boolean {
  return 'reverted' in answer || answer.steps.every((step) => step !== undefined)
}

/** The gas that no transaction is below. */
const LEAST_GAS = 21_000n

/** What a transaction may use, by its limit of the table: those that take more are not measured. */
const MAX_TIMES_TABLE = 5n
const LEAST_ALLOWED = 500_000n
const MAX_ALLOWED = 8_000_000n

/**
 * The most gas that a transaction may use and still be measured. A simulation needs a limit: what is left out is the whole block's for some
 * nodes, which no second transaction fits beside.
 */
export function allowedGas({ tableLimit }: Pick<GasCall, 'tableLimit'>): bigint {
  const wanted = tableLimit * MAX_TIMES_TABLE
  const bounded = wanted < LEAST_ALLOWED ? LEAST_ALLOWED : wanted > MAX_ALLOWED ? MAX_ALLOWED : wanted
  return bounded < tableLimit ? tableLimit : bounded
}

/** Whether a node's figure can be the gas of a transaction: what it tells decides what a wallet allows, and pays in the worst case. */
export function isPlausibleGas(told: bigint, call: Pick<GasCall, 'tableLimit'>): boolean {
  return told >= LEAST_GAS && told <= allowedGas(call)
}

/** A number as JSON-RPC writes it: hexadecimal without leading zeros. */
export function toQuantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`
}

/** A number as JSON-RPC writes it; undefined where it is none, or more than 256 bits. */
export function readQuantity(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^0x[0-9a-f]{1,64}$/i.test(value) ? BigInt(value) : undefined
}
