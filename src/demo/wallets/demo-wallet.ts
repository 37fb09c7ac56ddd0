/**
 * The demo's wallets as a page in a browser calls them: EIP-1193. The nodes hold the keys; a wallet sends with its own address alone, signs no
 * message, and reads with a fixed list of methods.
 */
import type { DemoChain } from '../network/network.ts'
import { type Rpc, toQuantity } from '../network/rpc.ts'
import {
  INTERNAL,
  INVALID_PARAMS,
  UNAUTHORIZED,
  UNKNOWN_CHAIN,
  UNSUPPORTED_METHOD,
  WalletError,
} from './wallet-error.ts'

/** What a page asks of a wallet. `chainId` is the chain that the page's provider has chosen, in hex; by default the first. */
export interface WalletCall {
  readonly method: string
  readonly params: readonly unknown[]
  readonly chainId?: string | undefined
}

type WalletChain = Pick<DemoChain, 'spec'> & { readonly client: { readonly rpc: Rpc } }

/** Reads that go to the node as they are. */
const READS = new Set([
  'eth_blockNumber',
  'eth_call',
  'eth_estimateGas',
  'eth_gasPrice',
  'eth_getBalance',
  'eth_getBlockByNumber',
  'eth_getCode',
  'eth_getTransactionByHash',
  'eth_getTransactionCount',
  'eth_getTransactionReceipt',
  'eth_maxPriorityFeePerGas',
])

/** wei; above every base fee of the demo's chains. */
const MAX_FEE_PER_GAS = 1_000n * 10n ** 9n

/**
 * Carries out what a page asks of a wallet.
 *
 * @throws WalletError 4100, 4200, 4902, -32602, -32603, or with the node's code
 */
export async function callWallet(
  chains: readonly WalletChain[],
  address: string,
  { method, params, chainId }: WalletCall,
): Promise<unknown> {
  switch (method) {
    case 'eth_requestAccounts':
    case 'eth_accounts':
      return [address]
    case 'eth_chainId':
      return toQuantity(chainOf(chains, chainId).spec.chainId)
    case 'wallet_switchEthereumChain':
    case 'wallet_addEthereumChain':
      chainOf(chains, idOf(params[0]))
      return null
    case 'eth_sendTransaction':
      return sendFrom(chains, address, { params, chainId })
    default:
      if (!READS.has(method)) throw new WalletError(UNSUPPORTED_METHOD, `the demo's wallets have no method ${method}`)
      return ask(chainOf(chains, chainId), method, params)
  }
}

function chainOf(chains: readonly WalletChain[], chainId: string | undefined): WalletChain {
  const found =
    chainId === undefined ? chains[0] : chains.find(({ spec }) => toQuantity(spec.chainId) === chainId.toLowerCase())
  if (found === undefined) throw new WalletError(UNKNOWN_CHAIN, `the demo has no chain ${chainId}`)
  return found
}

function idOf(param: unknown): string {
  const { chainId } = (param ?? {}) as { chainId?: unknown }
  if (typeof chainId !== 'string')
    throw new WalletError(INVALID_PARAMS, 'params[0].chainId is missing: give it in hex, 0x1')
  return chainId
}

async function sendFrom(
  chains: readonly WalletChain[],
  address: string,
  { params, chainId }: Pick<WalletCall, 'params' | 'chainId'>,
): Promise<unknown> {
  const transaction = transactionOf(params[0])
  if (transaction.from.toLowerCase() !== address.toLowerCase())
    throw new WalletError(UNAUTHORIZED, `this wallet does not send from ${transaction.from}`)
  if (transaction.chainId !== undefined && chainId !== undefined && BigInt(transaction.chainId) !== BigInt(chainId))
    throw new WalletError(INVALID_PARAMS, `the wallet is on chain ${chainId}, not on ${transaction.chainId}`)
  const chain = chainOf(chains, transaction.chainId ?? chainId)
  const maxPriorityFeePerGas = await ask(chain, 'eth_maxPriorityFeePerGas', [])
  const fees = { maxPriorityFeePerGas, maxFeePerGas: toQuantity(MAX_FEE_PER_GAS) }
  return ask(chain, 'eth_sendTransaction', [{ ...transaction, ...fees }])
}

interface Transaction {
  readonly from: string
  readonly to: string
  readonly data: string
  readonly value?: string
  readonly gas?: string
  readonly chainId?: string
}

const HEX = /^0x[0-9a-fA-F]*$/
const OPTIONAL = ['value', 'gas', 'chainId'] as const

/** The fields that a payment has; others are refused rather than left out. */
function transactionOf(param: unknown): Transaction {
  const given = { ...(param as Record<string, unknown> | undefined) }
  for (const name of ['from', 'to', 'data', ...OPTIONAL]) {
    const value = given[name]
    if (value === undefined && (OPTIONAL as readonly string[]).includes(name)) continue
    if (typeof value !== 'string' || !HEX.test(value))
      throw new WalletError(INVALID_PARAMS, `params[0].${name} is not hex data`)
  }
  const unknown = Object.keys(given).find((name) => !['from', 'to', 'data', ...OPTIONAL].includes(name))
  if (unknown !== undefined) throw new WalletError(INVALID_PARAMS, `params[0].${unknown} is not understood`)
  return given as unknown as Transaction
}

async function ask({ client }: WalletChain, method: string, params: readonly unknown[]): Promise<unknown> {
  try {
    return await client.rpc.call(method, params)
  } catch (error) {
    const { code, data, message } = error as { code?: unknown; data?: string; message: string }
    if (typeof code === 'number') throw new WalletError(code, message, data)
    throw new WalletError(INTERNAL, 'the node of the chain does not answer')
  }
}
