/** What a wallet's provider is asked, and what its errors mean. */

/** A provider after EIP-1193; viem's clients have the same method. */
export interface Eip1193Provider {
  request(call: { method: string; params?: unknown }, options?: unknown): Promise<unknown>
}

/** The form of ethers' providers, 5 and 6. */
export interface SendingProvider {
  send(method: string, params: unknown[]): Promise<unknown>
}

export type WalletProvider = Eip1193Provider | SendingProvider

export type Ask = (method: string, params?: readonly unknown[]) => Promise<unknown>

export function askOf(provider: WalletProvider): Ask {
  // A provider that throws, instead of giving a promise that fails, fails as others do.
  return async (method, params = []) => {
    // viem would send a transaction again after some errors, although the first may be on its way.
    if ('request' in provider) return provider.request({ method, params }, { retryCount: 0 })
    return provider.send(method, [...params])
  }
}

/** Codes of EIP-1193, EIP-1474, EIP-3326 and EIP-5792. */
export const USER_REJECTED = 4001
export const UNKNOWN_CHAIN = 4902
export const INTERNAL_ERROR = -32603

/** After these the wallet has certainly not sent the batch, and does not know it or will not make it one step. */
export const NO_BATCH: ReadonlySet<number> = new Set([4200, -32601, 5750, 5760])

/**
 * After these the wallet has certainly sent nothing: not authorised (4100), unsupported (4200, 5700, 5710), disconnected (4900, 4901), no
 * such method or wrong parameters (-32601, -32602), too large (5740), rejected or not possible in one step (5750, 5760).
 */
const NOTHING_SENT: ReadonlySet<number> = new Set([
  4100, 4200, 4900, 4901, 4902, -32601, -32602, 5700, 5710, 5740, 5750, 5760,
])

export function hasSentNothing(code: number | undefined): boolean {
  return code !== undefined && NOTHING_SENT.has(code)
}

/**
 * The code of a wallet's error. Libraries and wallets wrap errors: a refusal or an unknown chain inside counts before the code of the
 * wrapper; otherwise the outermost number does.
 */
export function codeOf(error: unknown): number | undefined {
  const codes = [...errorsWithin(error, 0)].map(({ code }) => (code === 'ACTION_REJECTED' ? USER_REJECTED : code))
  const numbers = codes.filter((code) => typeof code === 'number')
  return numbers.find((code) => code === USER_REJECTED || code === UNKNOWN_CHAIN) ?? numbers[0]
}

const DEEPEST = 5

function* errorsWithin(value: unknown, depth: number): Generator<{ readonly code?: unknown }> {
  if (typeof value !== 'object' || value === null || depth > DEEPEST) return
  yield value
  const { error, cause, info, data } = value as Record<string, unknown>
  const inside = (of: unknown, name: string) =>
    typeof of === 'object' && of !== null ? (of as Record<string, unknown>)[name] : undefined
  for (const next of [error, cause, inside(info, 'error'), inside(data, 'originalError'), inside(data, 'cause')]) {
    yield* errorsWithin(next, depth + 1)
  }
}

export function messageOf(error: unknown): string {
  const { shortMessage, message } = (typeof error === 'object' && error !== null ? error : {}) as {
    shortMessage?: unknown
    message?: unknown
  }
  return String(shortMessage ?? message ?? error)
}
