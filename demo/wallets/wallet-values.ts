/** The forms that values have in JSON-RPC. */
import type { Address, Hex } from 'viem'

export const isAddress = (value: unknown): value is Address =>
  typeof value === 'string' && /^0x[0-9a-f]{40}$/i.test(value)

/** A number of at most 256 bits. */
export const isQuantity = (value: unknown): value is Hex =>
  typeof value === 'string' && /^0x[0-9a-f]{1,64}$/i.test(value)

export const isBytes = (value: unknown): value is Hex =>
  typeof value === 'string' && /^0x(?:[0-9a-f]{2})*$/i.test(value)

/**
 * The gas of what a page has a node run: ten times that of the demo's largest payment, and some 50 ms of the node's time. Without a limit one
 * call could occupy the node for ever.
 */
export const MAX_GAS = 10_000_000

export const isGas = (value: unknown): value is Hex => isQuantity(value) && BigInt(value) <= BigInt(MAX_GAS)
