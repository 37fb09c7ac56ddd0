import { sleep } from '../retry.ts'
import type { Ask, Patience } from './provider.ts'

export type Receipt = { readonly status?: unknown; readonly transactionHash?: string }

export interface WaitTerms extends Patience {
  readonly ask: Ask
  readonly wallet: string
  readonly pollMs: number
  /** How long the node may not know a transaction until it counts as dropped. */
  readonly dropAfterMs: number
}

/** Checks at which the nonce was used and there was still no receipt, before the transaction counts as replaced. */
const CHECKS_BEFORE_REPLACED = 5

/**
 * Waits until a transaction is mined. A node that fails is asked again.
 *
 * @returns REPLACED if another transaction used its nonce; DROPPED if the node has not known it for `dropAfterMs`
 * @throws the signal's reason
 */
export async function waitForReceipt({ ask, wallet, pollMs, signal, dropAfterMs }: WaitTerms, hash: string) {
  /** @returns null where the node knows nothing of it; undefined where the node failed */
  const read = <T>(method: string, params: readonly unknown[]) =>
    ask(method, params).then(
      (answer) => (answer ?? null) as T | null,
      () => undefined,
    )
  let nonce: string | undefined
  let knownAt = performance.now()
  for (let used = 0; used < CHECKS_BEFORE_REPLACED; ) {
    signal?.throwIfAborted()
    const receipt = await read<Receipt>('eth_getTransactionReceipt', [hash])
    if (receipt) return receipt
    const found = await read<{ nonce: string }>('eth_getTransactionByHash', [hash])
    nonce ??= found?.nonce
    const next = nonce === undefined ? null : await read<string>('eth_getTransactionCount', [wallet, 'latest'])
    used = nonce !== undefined && next && BigInt(next) > BigInt(nonce) ? used + 1 : 0
    // A node that fails says nothing about the transaction.
    if (found !== null) knownAt = performance.now()
    else if (used === 0 && performance.now() - knownAt >= dropAfterMs) return 'DROPPED' as const
    await sleep(pollMs, signal)
  }
  return 'REPLACED' as const
}

/** `0x0` in receipts of nodes; libraries and wallets have numbers and words. A receipt without a status is of a transaction that was mined. */
const FAILED_STATUS = /^(?:0x0*|0+|false|fail(?:ed|ure)?|revert(?:ed)?)$/i

export function hasFailed({ status }: Receipt): boolean {
  return FAILED_STATUS.test(String(status))
}
