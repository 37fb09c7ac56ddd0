import type { DemoChain } from '../network/network.ts'
import { type Rpc, toQuantity } from '../network/rpc.ts'
import { INTERNAL, MAX_GAS, UNKNOWN_CHAIN, WalletError } from './wallet-error.ts'

/** A chain as its wallets see it. */
export interface WalletChain extends Pick<DemoChain, 'spec'> {
  readonly client: { readonly rpc: Rpc }
  /** Ends the calls of its node. */
  readonly signal: AbortSignal
}

/** @throws WalletError 4902 */
export function findChain(chains: readonly WalletChain[], chainId: string | undefined): WalletChain {
  const found =
    chainId === undefined ? chains[0] : chains.find(({ spec }) => toQuantity(spec.chainId) === chainId.toLowerCase())
  if (found === undefined) throw new WalletError(UNKNOWN_CHAIN, `the demo has no chain ${chainId}`)
  return found
}

/** wei; above every base fee of the demo's chains. */
const MAX_FEE_PER_GAS = 1_000n * 10n ** 9n

/** Asks the node of a chain; a transaction gets the fees of the moment. @throws WalletError with the node's code, or -32603 */
export async function askChain(chain: WalletChain, method: string, params: readonly unknown[]): Promise<unknown> {
  const { client, signal } = chain
  try {
    if (method !== 'eth_sendTransaction') return await client.rpc.call(method, params, signal)
    return await send(chain, params[0] as Transaction)
  } catch (error) {
    const { code, data, message } = error as { code?: unknown; data?: string; message: string }
    if (typeof code === 'number') throw new WalletError(code, message, data)
    const isSent = signal.aborted && method === 'eth_sendTransaction'
    const more = isSent ? '; it may have taken the transaction' : ''
    throw new WalletError(INTERNAL, `the node of the chain does not answer${more}`)
  }
}

type Transaction = Readonly<Record<string, unknown>> & { readonly gas?: unknown }

async function send({ client, signal }: WalletChain, transaction: Transaction): Promise<unknown> {
  const maxPriorityFeePerGas = await client.rpc.call('eth_maxPriorityFeePerGas', [], signal)
  const most = { ...transaction, gas: toQuantity(MAX_GAS) }
  const gas = transaction.gas ?? (await client.rpc.call('eth_estimateGas', [most], signal).catch(gasOfReverting))
  const fees = { maxPriorityFeePerGas, maxFeePerGas: toQuantity(MAX_FEE_PER_GAS), gas }
  return client.rpc.call('eth_sendTransaction', [{ ...transaction, ...fees }], signal)
}

/** JSON-RPC: the contract reverted the call. */
const REVERTED = 3
const GAS_OF_REVERTING = 1_000_000

/** What reverts is sent all the same, as by somebody who goes on after the wallet's warning. Without a gas limit the node takes that of a block. */
function gasOfReverting(error: unknown): string {
  if ((error as { code?: unknown }).code !== REVERTED) throw error
  return toQuantity(GAS_OF_REVERTING)
}
