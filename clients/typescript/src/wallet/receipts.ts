import { sleep } from '../retry.ts'
import type { Ask } from './provider.ts'

export type Receipt = { readonly status: string; readonly transactionHash: string }

export interface WaitTerms {
  readonly ask: Ask
  readonly wallet: string
  readonly pollMs: number
  readonly signal: AbortSignal | undefined
}

/** Looks at which the nonce was used and there was still no receipt, before the transaction counts as replaced. */
const LOOKS_BEFORE_REPLACED = 5

/**
 * Waits until a transaction is mined. A node that fails is asked again.
 *
 * @returns REPLACED if another transaction used its nonce
 * @throws the signal's reason
 */
export async function waitForReceipt({ ask, wallet, pollMs, signal }: WaitTerms, hash: string) {
  const look = <T>(method: string, params: readonly unknown[]) =>
    ask(method, params).then(
      (answer) => answer as T | null,
      () => null,
    )
  let nonce: string | undefined
  for (let used = 0; used < LOOKS_BEFORE_REPLACED; ) {
    signal?.throwIfAborted()
    const receipt = await look<Receipt>('eth_getTransactionReceipt', [hash])
    if (receipt !== null) return receipt
    nonce ??= (await look<{ nonce: string }>('eth_getTransactionByHash', [hash]))?.nonce
    const next = nonce === undefined ? null : await look<string>('eth_getTransactionCount', [wallet, 'latest'])
    used = nonce !== undefined && next !== null && BigInt(next) > BigInt(nonce) ? used + 1 : 0
    await sleep(pollMs, signal)
  }
  return 'REPLACED' as const
}

export function hasSucceeded({ status }: Receipt): boolean {
  return BigInt(status) === 1n
}
