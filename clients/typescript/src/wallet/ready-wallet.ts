import type { PayOutcome, PayProgress } from './outcome.ts'
import { type Ask, codeOf, messageOf, UNKNOWN_CHAIN, USER_REJECTED } from './provider.ts'

/** A chain after EIP-3085, for a wallet that does not know it. */
export interface AddChainParameters {
  readonly chainId: string
  readonly chainName: string
  readonly rpcUrls: readonly string[]
  readonly nativeCurrency: { readonly name: string; readonly symbol: string; readonly decimals: number }
  readonly blockExplorerUrls?: readonly string[]
}

export interface WalletTerms {
  readonly ask: Ask
  readonly wallet: string
  /** Hexadecimal, as in a transaction. */
  readonly chainId: string
  readonly addChain: AddChainParameters | undefined
  readonly onProgress: (progress: PayProgress) => void
}

/** Makes sure that the wallet can send from the address on the chain. @returns why it cannot; undefined if it can */
export async function readyWallet(terms: WalletTerms): Promise<PayOutcome | undefined> {
  const { ask, wallet, chainId } = terms
  try {
    const accounts = (await ask('eth_accounts')) as readonly string[]
    if (!accounts.some((account) => account.toLowerCase() === wallet.toLowerCase())) {
      const message = `the wallet has not opened ${wallet} to this page; ask for it with eth_requestAccounts`
      return { outcome: 'FAILED', reason: 'WRONG_ACCOUNT', code: undefined, message }
    }
    if (await isOnChain(ask, chainId)) return undefined
    await switchChain(terms)
    if (await isOnChain(ask, chainId)) return undefined
    const message = `the wallet is not on chain ${chainId} although it was asked to go there`
    return { outcome: 'FAILED', reason: 'WRONG_CHAIN', code: undefined, message }
  } catch (error) {
    const code = codeOf(error)
    if (code === USER_REJECTED) return { outcome: 'REFUSED' }
    return { outcome: 'FAILED', reason: 'WRONG_CHAIN', code, message: messageOf(error) }
  }
}

async function switchChain({ ask, chainId, addChain, onProgress }: WalletTerms): Promise<void> {
  onProgress({ type: 'SWITCHING_CHAIN', chainId })
  try {
    await ask('wallet_switchEthereumChain', [{ chainId }])
  } catch (error) {
    if (codeOf(error) !== UNKNOWN_CHAIN || addChain === undefined || BigInt(addChain.chainId) !== BigInt(chainId)) {
      throw error
    }
    await ask('wallet_addEthereumChain', [addChain])
    // A wallet may add a chain without going there.
    if (!(await isOnChain(ask, chainId))) await ask('wallet_switchEthereumChain', [{ chainId }])
  }
}

async function isOnChain(ask: Ask, chainId: string): Promise<boolean> {
  return BigInt((await ask('eth_chainId')) as string) === BigInt(chainId)
}
