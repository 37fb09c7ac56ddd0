/** How a wallet's provider is asked, and for how long its answer is waited for. */
import { within } from '../retry.ts'

/** A provider after EIP-1193; viem's clients have the same method. */
export interface Eip1193Provider {
  request(call: { method: string; params?: unknown }, options?: unknown): Promise<unknown>
}

/** The form of ethers' providers, 5 and 6. */
export interface SendingProvider {
  send(method: string, params: unknown[]): Promise<unknown>
}

export type WalletProvider = Eip1193Provider | SendingProvider

/** @throws what the wallet throws; NoAnswerError when its time is over; the signal's reason when that is aborted */
export type Ask = (method: string, params?: readonly unknown[]) => Promise<unknown>

/** The wallet has not answered in time. It may still do so, and carry out what it was asked for. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError'
  constructor(method: string, limitMs: number) {
    super(`the wallet has not answered ${method} within ${Math.ceil(limitMs / 1_000)} seconds`)
  }
}

/** Asks without a limit of time. A provider that throws, instead of giving a promise that fails, fails as others do. */
export async function askProvider(provider: WalletProvider, method: string, params: readonly unknown[] = []) {
  // viem would send a transaction again after some errors, although the first may be on its way.
  if ('request' in provider) return provider.request({ method, params }, { retryCount: 0 })
  return provider.send(method, [...params])
}

export interface Patience {
  readonly signal: AbortSignal | undefined
  /** How long a person may take to answer the wallet's question. */
  readonly answerWithinMs: number
}

/** Default of `answerWithinMs`: hardware wallets take minutes. */
export const ANSWER_WITHIN_MS = 300_000
/** Nobody is asked for these. */
const READ_WITHIN_MS = 10_000
/** Mobile wallets leave it pending for ever. */
const CAPABILITIES_WITHIN_MS = 1_000

/** What may open a question in the wallet. `eth_accounts` and others are answered without the payer. */
const QUESTIONS =
  /^(?:eth_requestAccounts|eth_sendTransaction|wallet_(?:sendCalls|switchEthereumChain|addEthereumChain))$/

/** Asks, and stops waiting when the method's time is over or the signal is aborted. */
export function askOf(provider: WalletProvider, patience: Patience): Ask {
  return (method, params) => waitForAnswer(askProvider(provider, method, params), method, patience)
}

/** @param answer - goes on by itself when it is no longer waited for */
export async function waitForAnswer<T>(answer: Promise<T>, method: string, { signal, answerWithinMs }: Patience) {
  const limitMs = QUESTIONS.test(method)
    ? answerWithinMs
    : method === 'wallet_getCapabilities'
      ? CAPABILITIES_WITHIN_MS
      : READ_WITHIN_MS
  return within(limitMs, answer, () => new NoAnswerError(method, limitMs), signal)
}

/** @throws Error that says what the wallet answered instead of what was asked for */
export function wrongAnswer(method: string, answer: unknown, wanted: string): never {
  const given = typeof answer === 'string' ? answer : (JSON.stringify(answer) ?? typeof answer)
  throw new Error(`the wallet answered ${method} with ${given.slice(0, 100)} instead of ${wanted}`)
}
