/**
 * The demo's wallets as a page in a browser calls them: EIP-1193. The nodes hold the keys; a wallet sends with its own address alone, signs no
 * message, and reads with a fixed list of methods.
 */
import { toQuantity } from '../network/rpc.ts'
import { batchCalls } from './batch-calls.ts'
import { askChain, findChain, type WalletChain } from './wallet-chain.ts'
import { INVALID_PARAMS, UNAUTHORIZED, UNSUPPORTED_METHOD, WalletError } from './wallet-error.ts'
import { isAddress, isBytes, isGas, isQuantity, MAX_GAS } from './wallet-values.ts'

/** What a page asks of a wallet. `chainId` is the chain that the page's provider has chosen, in hex; by default the first. */
export interface WalletCall {
  readonly method: string
  readonly params: readonly unknown[]
  readonly chainId?: string | undefined
}

export interface CalledWallet {
  readonly address: string
  /** Whether it makes several calls as one (EIP-5792). */
  readonly batches: boolean
}

/** Reads that run code. */
const EXECUTIONS = new Set(['eth_call', 'eth_estimateGas'])

/** Reads that go to the node as they are. */
const READS = new Set([
  'eth_blockNumber',
  'eth_gasPrice',
  'eth_getBalance',
  'eth_getBlockByNumber',
  'eth_getCode',
  'eth_getTransactionByHash',
  'eth_getTransactionCount',
  'eth_getTransactionReceipt',
  'eth_maxPriorityFeePerGas',
])

/**
 * Carries out what a page asks of a wallet.
 *
 * @throws WalletError 4100, 4200, 4902, 5730, -32602, -32603, or with the node's code
 */
export async function callWallet(
  chains: readonly WalletChain[],
  { address, batches }: CalledWallet,
  { method, params, chainId }: WalletCall,
): Promise<unknown> {
  // Own names alone: every object also has `constructor`, which would answer what it is called with.
  if (batches && Object.hasOwn(batchCalls, method))
    return batchCalls[method as keyof typeof batchCalls](chains, address, params)
  switch (method) {
    case 'eth_requestAccounts':
    case 'eth_accounts':
      return [address]
    case 'eth_chainId':
      return toQuantity(findChain(chains, chainId).spec.chainId)
    case 'wallet_switchEthereumChain':
    case 'wallet_addEthereumChain':
      findChain(chains, idOf(params[0]))
      return null
    case 'eth_sendTransaction':
      return sendFrom(chains, address, { params, chainId })
    default:
      if (EXECUTIONS.has(method)) return askChain(findChain(chains, chainId), method, boundExecution(method, params))
      if (!READS.has(method)) throw new WalletError(UNSUPPORTED_METHOD, `this wallet has no method ${method}`)
      return askChain(findChain(chains, chainId), method, params)
  }
}

/**
 * Limits the gas of code that a page has the node run: while it runs, the node mines no block. State overrides are refused, since with them a page
 * could replace the contracts that others see.
 *
 * @throws WalletError -32602
 */
function boundExecution(method: string, [call, block = 'latest', ...others]: readonly unknown[]): readonly unknown[] {
  if (typeof call !== 'object' || call === null || Array.isArray(call))
    throw new WalletError(INVALID_PARAMS, 'params[0] is not a transaction')
  if (others.length > 0) throw new WalletError(INVALID_PARAMS, `${method} takes a transaction and a block here`)
  const { gas = toQuantity(MAX_GAS) } = call as { gas?: unknown }
  if (!isGas(gas)) throw new WalletError(INVALID_PARAMS, `params[0].gas is not ${FORMS.get(isGas)}`)
  return [{ ...call, gas }, block]
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
  return askChain(findChain(chains, transaction.chainId ?? chainId), 'eth_sendTransaction', [transaction])
}

interface Transaction {
  readonly from: string
  readonly to: string
  readonly data: string
  readonly value?: string
  readonly gas?: string
  readonly chainId?: string
}

const FORMS = new Map<unknown, string>([
  [isAddress, 'an address'],
  [isBytes, 'hex data'],
  [isQuantity, 'a number in hex'],
  [isGas, `a number in hex of at most ${toQuantity(MAX_GAS)}`],
])
const NEEDED = { from: isAddress, to: isAddress, data: isBytes }
const OPTIONAL = { value: isQuantity, gas: isGas, chainId: isQuantity }

/** The fields that a payment has; others are refused rather than left out. */
function transactionOf(param: unknown): Transaction {
  const given = { ...(param as Record<string, unknown> | undefined) }
  for (const [name, isGood] of Object.entries({ ...NEEDED, ...OPTIONAL })) {
    const value = given[name]
    if (value === undefined && Object.hasOwn(OPTIONAL, name)) continue
    if (!isGood(value)) throw new WalletError(INVALID_PARAMS, `params[0].${name} is not ${FORMS.get(isGood)}`)
  }
  const unknown = Object.keys(given).find((name) => !Object.hasOwn({ ...NEEDED, ...OPTIONAL }, name))
  if (unknown !== undefined) throw new WalletError(INVALID_PARAMS, `params[0].${unknown} is not understood`)
  return given as unknown as Transaction
}
