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
