import { sleep } from '../retry.ts'
import type { PayOutcome, PayProgress } from './outcome.ts'
import { type Ask, wrongAnswer } from './provider.ts'
import type { WaitTerms } from './receipts.ts'
import { isUnknownChain, judgeWalletError, type WalletStep } from './wallet-error.ts'

/** A chain after EIP-3085, for a wallet that does not know it. */
export interface AddChainParameters {
  readonly chainId: string
  readonly chainName: string
  readonly rpcUrls: readonly string[]
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number }
  readonly blockExplorerUrls?: readonly string[]
}

export interface WalletTerms extends WaitTerms {
  /** Hexadecimal, as in a transaction. */
  readonly chainId: string
  readonly addChain: AddChainParameters | undefined
  readonly onProgress: (progress: PayProgress) => void
}

/**
 * Makes sure that the wallet can send from the address on the chain.
 *
 * @returns why it cannot; undefined if it can
 * @throws the signal's reason
 */
export async function readyWallet(terms: WalletTerms): Promise<PayOutcome | undefined> {
  const { ask, wallet, chainId, signal } = terms
  let step: WalletStep = 'CONNECT'
  try {
    const accounts = readAccounts('eth_accounts', await ask('eth_accounts'))
    if (!accounts.some((account) => account.toLowerCase() === wallet.toLowerCase())) {
      const message = `the wallet has not opened ${wallet} to this page; ask for it with eth_requestAccounts`
      return { outcome: 'FAILED', reason: 'WRONG_ACCOUNT', code: undefined, message }
    }
    if (await isOnChain(ask, chainId)) return undefined
    step = 'SWITCH_CHAIN'
    await switchChain(terms)
    if (await comesToChain(terms)) return undefined
    const message = `the wallet is not on chain ${chainId} although it was asked to go there`
    return { outcome: 'FAILED', reason: 'WRONG_CHAIN', code: undefined, message }
  } catch (error) {
    signal?.throwIfAborted()
    return judgeWalletError(error, step)
  }
}

/** @returns the addresses that the wallet answered. @throws Error for an answer that is no list */
export function readAccounts(method: string, answer: unknown): readonly string[] {
  if (!Array.isArray(answer)) wrongAnswer(method, answer, 'a list of addresses')
  return (answer as readonly unknown[]).filter((each) => typeof each === 'string')
}

async function switchChain(terms: WalletTerms): Promise<void> {
  const { ask, chainId, addChain, onProgress } = terms
  onProgress({ type: 'SWITCHING_CHAIN', chainId })
  try {
    await goToChain(terms)
  } catch (error) {
    if (!isUnknownChain(error) || addChain === undefined || BigInt(addChain.chainId) !== BigInt(chainId)) throw error
    await ask('wallet_addEthereumChain', [addChain])
    // A wallet may add a chain without going there.
    if (!(await isOnChain(ask, chainId))) await goToChain(terms)
  }
}

/** Between two checks whether a wallet that does not answer has changed its chain all the same. */
const SILENT_CHECK_MS = 1_000

/** Some mobile wallets change the chain and never say so. */
async function goToChain({ ask, chainId }: WalletTerms): Promise<void> {
  const answered = new AbortController()
  const answer = ask('wallet_switchEthereumChain', [{ chainId }]).finally(() => answered.abort())
  const arrival = async () => {
    for (;;) {
      await sleep(SILENT_CHECK_MS, answered.signal)
      if (await isOnChain(ask, chainId).catch(() => false)) return
    }
  }
  // It ends with an error of its own as soon as the wallet has answered.
  await Promise.race([answer, arrival().catch(() => answer)])
}

/** `eth_chainId` may lag behind a change: some wallets tell the chain of before for 400 ms. */
const LAG_MS = 2_000

async function comesToChain({ ask, chainId, pollMs, signal }: WalletTerms): Promise<boolean> {
  const end = performance.now() + LAG_MS
  for (;;) {
    try {
      if (await isOnChain(ask, chainId)) return true
      if (performance.now() >= end) return false
    } catch (error) {
      if (performance.now() >= end) throw error
    }
    await sleep(Math.min(pollMs, LAG_MS / 10), signal)
  }
}

async function isOnChain(ask: Ask, chainId: string): Promise<boolean> {
  const answer = await ask('eth_chainId')
  const isNumber = typeof answer === 'number' || (typeof answer === 'string' && /^(?:0x[0-9a-f]+|\d+)$/i.test(answer))
  if (!isNumber) wrongAnswer('eth_chainId', answer, 'the number of a chain')
  return BigInt(answer) === BigInt(chainId)
}
