import type { Address, Hex } from 'viem'

/** An error that a wallet answers, with a code of EIP-1193 or EIP-1474. */
export class WalletError extends Error {
  readonly code: number
  readonly data: string | undefined

  constructor(code: number, message: string, data?: string) {
    super(message)
    this.name = 'WalletError'
    this.code = code
    this.data = data
  }
}

/** EIP-1193: the wallet may not do that for this address. */
export const UNAUTHORIZED = 4100
export const UNSUPPORTED_METHOD = 4200
/** EIP-3326: the wallet does not know the chain. */
export const UNKNOWN_CHAIN = 4902
/** EIP-5792: no such batch. */
export const UNKNOWN_BATCH = 5730
/** EIP-1474 */
export const INVALID_REQUEST = -32_600
export const INVALID_PARAMS = -32_602
export const INTERNAL = -32_603
export const LIMIT_EXCEEDED = -32_005

/** The forms that values have in JSON-RPC. */
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
