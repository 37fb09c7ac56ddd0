/**
 * The demo's wallets as a page in a browser calls them: EIP-1193. The nodes hold the keys; a wallet sends with its own address alone, signs no
 * message, and reads with a fixed list of methods.
 */

import type { Address, Hex } from 'viem'
import { encodeExecute } from '../network/demo-contracts.ts'
import type { DemoChain } from '../network/network.ts'
import { type Rpc, toQuantity } from '../network/rpc.ts'
import {
  INTERNAL,
  INVALID_PARAMS,
  isAddress,
  isBytes,
  isGas,
  isQuantity,
  MAX_GAS,
  UNAUTHORIZED,
  UNKNOWN_BATCH,
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
  if (!isGas(gas)) throw new WalletError(INVALID_PARAMS, `params[0].gas is not ${GAS}`)
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

const GAS = `a number in hex of at most ${toQuantity(MAX_GAS)}`
const FIELDS = { from: isAddress, to: isAddress, data: isBytes, value: isQuantity, gas: isGas, chainId: isQuantity }
const NEEDED = ['from', 'to', 'data']

/** The fields that a payment has; others are refused rather than left out. */
function transactionOf(param: unknown): Transaction {
  const given = { ...(param as Record<string, unknown> | undefined) }
  const isGood = ([name, value]: [string, unknown]) =>
    Object.hasOwn(FIELDS, name) && FIELDS[name as keyof typeof FIELDS](value)
  if (!NEEDED.every((name) => Object.hasOwn(given, name)) || !Object.entries(given).every(isGood))
    throw new WalletError(
      INVALID_PARAMS,
      `params[0] is not {from, to, data, value?, gas?, chainId?} in hex; gas: ${GAS}`,
    )
  return given as unknown as Transaction
}

/** EIP-5792: several calls as one. The wallet's account delegates to DemoAccount.sol, so they are one transaction, carried out whole or not at all. */
type BatchCall = (chains: readonly WalletChain[], address: string, params: readonly unknown[]) => Promise<unknown>

const batchCalls = {
  wallet_getCapabilities: async (chains) =>
    Object.fromEntries(chains.map(({ spec }) => [toQuantity(spec.chainId), { atomic: { status: 'supported' } }])),
  wallet_sendCalls: async (chains, address, [batch]) => {
    const { from, chainId, calls } = readBatch(batch)
    if (from.toLowerCase() !== address.toLowerCase())
      throw new WalletError(UNAUTHORIZED, `this wallet does not send from ${from}`)
    // The coins of the calls are the account's own.
    const transaction = { from: address, to: address, data: encodeExecute(calls) }
    const hash = await askChain(findChain(chains, chainId), 'eth_sendTransaction', [transaction])
    return { id: `${chainId}:${String(hash)}` }
  },
  wallet_getCallsStatus: async (chains, address, [id]) => {
    const { chainId, hash, chain } = readBatchId(chains, id)
    const [sent, receipt] = (await Promise.all([
      askChain(chain, 'eth_getTransactionByHash', [hash]),
      askChain(chain, 'eth_getTransactionReceipt', [hash]),
    ])) as [{ from: string; to: string | null } | null, { status: string } | null]
    // A batch is a transaction of the wallet to itself.
    const isBatch = [sent?.from, sent?.to].every((each) => each?.toLowerCase() === address.toLowerCase())
    if (!isBatch) throw new WalletError(UNKNOWN_BATCH, NO_BATCH)
    const status = receipt === null ? 100 : BigInt(receipt.status) === 1n ? 200 : 500
    return { version: '2.0.0', id, chainId, atomic: true, status, receipts: receipt === null ? [] : [receipt] }
  },
} satisfies Record<string, BatchCall>

const NO_BATCH = 'there is no such batch'

/** Reads the id that `wallet_sendCalls` answered. @throws WalletError 5730 */
function readBatchId(chains: readonly WalletChain[], id: unknown) {
  const [, chainId, hash] = /^(0x[0-9a-f]{1,16}):(0x[0-9a-f]{64})$/i.exec(typeof id === 'string' ? id : '') ?? []
  const chain = chains.find(({ spec }) => toQuantity(spec.chainId) === chainId?.toLowerCase())
  if (hash === undefined || chain === undefined) throw new WalletError(UNKNOWN_BATCH, NO_BATCH)
  return { chainId, hash, chain }
}

interface ReadBatch {
  readonly from: string
  readonly chainId: string
  readonly calls: readonly { readonly target: Address; readonly value: bigint; readonly data: Hex }[]
}

const MAX_CALLS = 10

function readBatch(param: unknown): ReadBatch {
  const { version, from, chainId, calls } = (param ?? {}) as Partial<
    Record<'version' | 'from' | 'chainId' | 'calls', unknown>
  >
  if (version !== '2.0.0') throw new WalletError(INVALID_PARAMS, 'params[0].version is not "2.0.0"')
  if (typeof from !== 'string' || typeof chainId !== 'string')
    throw new WalletError(INVALID_PARAMS, 'params[0].from and chainId are needed')
  if (!Array.isArray(calls) || calls.length === 0 || calls.length > MAX_CALLS)
    throw new WalletError(INVALID_PARAMS, `params[0].calls is not a list of 1 to ${MAX_CALLS} calls`)
  return { from, chainId, calls: calls.map(readOne) }
}

function readOne(call: unknown, index: number): ReadBatch['calls'][number] {
  const { to, value = '0x0', data = '0x' } = (call ?? {}) as { to?: unknown; value?: unknown; data?: unknown }
  if (!isAddress(to) || !isQuantity(value) || !isBytes(data))
    throw new WalletError(INVALID_PARAMS, `params[0].calls[${index}] is not {to, value?, data?} in hex`)
  return { target: to, value: BigInt(value), data }
}

/** A chain as its wallets see it. */
interface WalletChain extends Pick<DemoChain, 'spec'> {
  readonly client: { readonly rpc: Rpc }
  /** Ends the calls of its node. */
  readonly signal: AbortSignal
}

/** @throws WalletError 4902 */
function findChain(chains: readonly WalletChain[], chainId: string | undefined): WalletChain {
  const found =
    chainId === undefined ? chains[0] : chains.find(({ spec }) => toQuantity(spec.chainId) === chainId.toLowerCase())
  if (found === undefined) throw new WalletError(UNKNOWN_CHAIN, `the demo has no chain ${chainId}`)
  return found
}

/** wei; above every base fee of the demo's chains. */
const MAX_FEE_PER_GAS = 1_000n * 10n ** 9n

/** Asks the node of a chain; a transaction gets the fees of the moment. @throws WalletError with the node's code, or -32603 */
async function askChain(chain: WalletChain, method: string, params: readonly unknown[]): Promise<unknown> {
  const { client, signal } = chain
  try {
    if (method !== 'eth_sendTransaction') return await client.rpc.call(method, params, signal)
    return await send(chain, params[0] as WithGas)
  } catch (error) {
    const { code, data, message } = error as { code?: unknown; data?: string; message: string }
    if (typeof code === 'number') throw new WalletError(code, message, data)
    const isSent = signal.aborted && method === 'eth_sendTransaction'
    const more = isSent ? '; it may have taken the transaction' : ''
    throw new WalletError(INTERNAL, `the node of the chain does not answer${more}`)
  }
}

type WithGas = Readonly<Record<string, unknown>> & { readonly gas?: unknown }

async function send({ client, signal }: WalletChain, transaction: WithGas): Promise<unknown> {
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
