import type { PayOutcome } from './outcome.ts'
import { ANSWER_WITHIN_MS, askOf, type WalletProvider } from './provider.ts'
import { readAccounts } from './ready-wallet.ts'
import { judgeWalletError } from './wallet-error.ts'

export interface ConnectOptions {
  readonly provider: WalletProvider
  /** Ends the wait: the payer has chosen another wallet. */
  readonly signal?: AbortSignal | undefined
  /** How long the payer may take to answer. Default: 300,000. */
  readonly answerWithinMs?: number | undefined
}

/** How a wallet answered. */
export type ConnectOutcome =
  /** It has opened the address to the page. */
  | { readonly outcome: 'CONNECTED'; readonly wallet: string }
  | Extract<PayOutcome, { readonly outcome: 'REFUSED' | 'FAILED' }>

/**
 * Asks a wallet to open an address to the page.
 *
 * @throws the signal's reason
 */
export async function connectWallet(options: ConnectOptions): Promise<ConnectOutcome> {
  const { provider, signal, answerWithinMs = ANSWER_WITHIN_MS } = options
  try {
    const method = 'eth_requestAccounts'
    const answer = await askOf(provider, { signal, answerWithinMs })(method)
    const [wallet] = readAccounts(method, answer)
    // The payer has opened no account to the page.
    return wallet === undefined ? { outcome: 'REFUSED' } : { outcome: 'CONNECTED', wallet }
  } catch (error) {
    signal?.throwIfAborted()
    const end = judgeWalletError(error, 'CONNECT')
    if (end.outcome === 'UNKNOWN') throw error
    return end
  }
}
