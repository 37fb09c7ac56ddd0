import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { StepEffect, Transaction } from '../steps.ts'

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

/** A number as JSON-RPC writes it: hexadecimal without leading zeros. */
export function toQuantity(value: bigint | number): Hex {
  return `0x${value.toString(16)}`
}

/** A number as JSON-RPC writes it; undefined where it is none, or more than 256 bits. */
export function readQuantity(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^0x[0-9a-f]{1,64}$/i.test(value) ? BigInt(value) : undefined
}
