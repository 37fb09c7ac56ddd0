/** A demo that runs in another process, by the interfaces that its users have: the public API and the nodes of its chains. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { Address, Hex } from 'viem'
import { caip2Of } from '../src/domain/chain.ts'
import type { Reason } from '../src/errors/reasons.ts'
import { type FieldViolation, WaybillError } from '../src/errors/waybill-error.ts'
import type { DemoFile, DemoFileChain } from './demo-file.ts'
import { createChainClient } from './network/chain-client.ts'
import { encodeBalanceOf } from './network/demo-contracts.ts'
import { createRpc, type Rpc, toQuantity } from './network/rpc.ts'

export type RunningDemo = ReturnType<typeof openDemo>

/**
 * Finds the demo that runs on a data folder.
 *
 * @throws Error when none runs, or no longer
 */
export async function findRunningDemo(dataDir: string, signal: AbortSignal) {
  const file = await readDemoFile(dataDir)
  // Its nodes end with it, and another demo has other ones.
  const nodes = await Promise.allSettled(file.chains.map((chain) => isNodeOf(chain)))
  if (nodes.some((node) => node.status === 'rejected' || !node.value))
    throw new Error(`no demo runs at ${file.baseUrl}, the last address of the demo in ${dataDir}; start it: npm start`)
  return openDemo(file, { 'x-api-key': file.apiKey }, signal)
}

/** @param caller - the headers that say who calls */
export function openDemo(file: DemoFile, caller: Readonly<Record<string, string>>, signal: AbortSignal) {
  const call = async <T>(path: string, init: RequestInit = {}): Promise<T> => {
    const headers = { ...caller, 'content-type': 'application/json', 'cache-control': 'no-cache' }
    const response = await fetch(file.baseUrl + path, { ...init, headers, signal })
    if (!response.ok) throw errorOf((await response.json()) as ErrorBody)
    return (await response.json()) as T
  }
  return {
    file,
    /** Calls the API and returns its answer. @throws WaybillError that the API answers */
    get: <T>(path: string) => call<T>(path),
    post: <T>(path: string, body: object) => call<T>(path, { method: 'POST', body: JSON.stringify(body) }),
    /** The node of a chain. */
    rpcOf: ({ rpcUrl }: DemoFileChain): Rpc => createRpc(rpcUrl),
  }
}

interface ErrorBody {
  readonly message: string
  readonly details: readonly [
    { readonly reason: Reason; readonly metadata: Readonly<Record<string, string>> },
    { readonly fieldViolations?: readonly FieldViolation[] }?,
  ]
}

/** The error of the API, as its own process threw it. */
function errorOf({ message, details: [{ reason, metadata }, bad] }: ErrorBody): WaybillError {
  return new WaybillError(reason, message, metadata, { violations: bad?.fieldViolations ?? [] })
}

async function isNodeOf({ rpcUrl, chainId }: DemoFileChain): Promise<boolean> {
  return Number(await createRpc(rpcUrl).call<string>('eth_chainId')) === chainId
}

async function readDemoFile(dataDir: string): Promise<DemoFile> {
  const path = join(dataDir, 'demo.json')
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    throw new Error(
      `there is no demo in ${dataDir}; start one: npm start, or set DATA_DIR to the folder of a running demo`,
    )
  })
  return JSON.parse(text) as DemoFile
}

const CHECK_EVERY_MS = 100

/**
 * Polls until a read returns something.
 *
 * @throws Error that names what it waited for, after a minute or `timeoutMs`
 */
export async function waitFor<T>(
  what: string,
  read: () => Promise<T | undefined>,
  signal: AbortSignal,
  timeoutMs = 60_000,
): Promise<T> {
  const endMs = performance.now() + timeoutMs
  for (;;) {
    const seen = await read()
    if (seen !== undefined) return seen
    if (performance.now() > endMs)
      throw new Error(`timed out after ${timeoutMs / 1000} seconds while waiting for ${what}`)
    await setTimeout(CHECK_EVERY_MS, undefined, { signal })
  }
}

/** A transaction of `GET /v1/request/{ref}/pay`: the parameters of `eth_sendTransaction`. */
export interface CalldataTransaction {
  from: string
  to: string
  data: string
  value: string
  /** Absent when the wallet must estimate it, which the demo's nodes do. */
  gas?: string
  chainId: string
}

/**
 * Sends a transaction of a route unchanged from one of the demo's wallets, whose keys its nodes hold, and waits for its block. The wallet
 * chooses the gas price: the tip that the node suggests, below a cap that is higher than any base fee.
 *
 * @returns its hash
 * @throws Error when it was reverted
 */
export async function sendTransaction(rpc: Rpc, transaction: CalldataTransaction, signal: AbortSignal): Promise<Hex> {
  const maxPriorityFeePerGas = await rpc.call<string>('eth_maxPriorityFeePerGas')
  const fees = { maxPriorityFeePerGas, maxFeePerGas: toQuantity(MAX_FEE_PER_GAS) }
  const hash = await rpc.call<Hex>('eth_sendTransaction', [{ ...transaction, ...fees }])
  const read = () => createChainClient(rpc).receipt(hash)
  const receipt = await waitFor(`the block of transaction ${hash}`, read, signal)
  if (!receipt.succeeded) throw new Error(`transaction ${hash} was reverted`)
  return hash
}

/** wei; above every base fee of the demo's chains. */
const MAX_FEE_PER_GAS = 1_000n * 10n ** 9n

/** An address's balance of a token or native coin, in base units with their decimals. */
export async function readHolding(
  rpc: Rpc,
  chain: DemoFileChain,
  { owner, symbol }: { owner: string; symbol: string },
): Promise<{ units: bigint; decimals: number }> {
  const token = chain.tokens.find((each) => each.symbol === symbol)
  if (token === undefined) {
    return {
      units: BigInt(await rpc.call<string>('eth_getBalance', [owner, 'latest'])),
      decimals: chain.native.decimals,
    }
  }
  const answer = await createChainClient(rpc).read(encodeBalanceOf(token.address, owner as Address))
  return { units: BigInt(answer), decimals: token.decimals }
}

/**
 * A chain of the demo.
 *
 * @param id - the name or the CAIP-2 id
 * @throws Error when the demo has no such chain
 */
export function findDemoChain({ file }: RunningDemo, id: string): DemoFileChain {
  const chain = file.chains.find(({ name, chainId }) => name === id || caip2Of(chainId) === id)
  if (chain === undefined) throw new Error(`demo.json has no chain ${id}`)
  return chain
}

/** The fields of a payment that the commands need. */
export interface FoundPayment {
  id: string
  status: string
  type: string
  amount: string
  currency: string
  txHash: string
  blockNumber: string
  payer?: string
  sourceTxHash?: string
  sourceNetwork?: string
}

/** The fields of a request that the commands need. */
export interface DemoRequest {
  paymentReference: string
  payee: string
  amount: string
  invoiceCurrency: string
  paymentCurrency: string
  network: string
  refundAddress?: string
  /** Absent without a refund address. */
  refundReference?: string
}

export function readRequest({ get }: RunningDemo, paymentReference: string): Promise<DemoRequest> {
  return get(`/v1/request/${encodeURIComponent(paymentReference)}`)
}
