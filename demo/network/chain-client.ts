/**
 * Sends transactions from a demo chain's unlocked accounts, mines, and reads.
 */
import type { Address, Hex, RpcTransactionReceipt, TransactionReceipt } from 'viem'
import { formatTransactionRequest } from 'viem/utils'
import { type ContractCall, MULTICALL3_ADDRESS, multicall3RuntimeCode } from './demo-contracts.ts'
import type { Deployed, DeploymentPlan } from './deployment.ts'
import { type Rpc, type RpcCall, toQuantity } from './rpc.ts'

type ReadField = 'transactionHash' | 'blockHash' | 'blockNumber' | 'from' | 'to' | 'gasUsed' | 'effectiveGasPrice'

export interface Receipt extends Pick<TransactionReceipt, ReadField> {
  succeeded: boolean
  logs: readonly Pick<TransactionReceipt['logs'][number], 'address' | 'topics' | 'data' | 'logIndex'>[]
}

export interface SendOptions {
  gas?: bigint
  nonce?: number
  /** wei; 1,000 gwei by default. A transaction with a cap below the block's base fee is silently not mined. */
  maxFeePerGas?: bigint
  /** wei; 1 gwei by default. */
  maxPriorityFeePerGas?: bigint
}

/** A transaction to send, from an unlocked account. */
export interface Sending {
  readonly from: Address
  readonly call: ContractCall | { data: Hex }
  /** With a nonce, where several of a list are from one account. */
  readonly options?: SendOptions | undefined
}

interface BlockOptions {
  timestampSec?: number
  /** wei, for this block only. */
  baseFeePerGas?: bigint
}

export interface BlockHeader {
  number: bigint
  hash: Hex
  timestampSec: number
  baseFeePerGas: bigint
}

/** Enough for every payment of the demo. Nothing is estimated, because an estimate costs as much as the call. */
const DEFAULT_GAS = 500_000n
const DEPLOYMENT_GAS = 5_000_000n
const GWEI = 10n ** 9n

export type ChainClient = ReturnType<typeof createChainClient>

export function createChainClient(rpc: Rpc) {
  return {
    rpc,
    /** Sends from an unlocked account; resolves when the node has accepted it, before it is mined. */
    send: (from: Address, call: Sending['call'], options?: SendOptions) =>
      rpc.call<Hex>(...toCall({ from, call, options })),
    /** Sends several in any order. @returns their hashes, in the order of the list */
    sendAll: (list: readonly Sending[]) => rpc.callAll<Hex>(list.map(toCall)),
    /** Mines one block. @returns its number */
    async mine({ timestampSec, baseFeePerGas }: BlockOptions = {}): Promise<bigint> {
      if (baseFeePerGas !== undefined) {
        await rpc.call('anvil_setNextBlockBaseFeePerGas', [toQuantity(baseFeePerGas)])
      }
      await rpc.call('evm_mine', timestampSec === undefined ? [] : [toQuantity(timestampSec)])
      return BigInt(await rpc.call<Hex>('eth_blockNumber'))
    },
    /** Undefined while the transaction is not mined. */
    async receipt(hash: Hex): Promise<Receipt | undefined> {
      const answer = await rpc.call<RpcTransactionReceipt | null>('eth_getTransactionReceipt', [hash])
      return answer ? toReceipt(answer) : undefined
    },
    async head(): Promise<BlockHeader> {
      const block = await rpc.call<Record<'number' | 'hash' | 'timestamp' | 'baseFeePerGas', Hex>>(
        'eth_getBlockByNumber',
        ['latest', false],
      )
      return {
        number: BigInt(block.number),
        hash: block.hash,
        timestampSec: Number(block.timestamp),
        baseFeePerGas: BigInt(block.baseFeePerGas),
      }
    },
    read: ({ to, data }: ContractCall) => rpc.call<Hex>('eth_call', [{ to, data }, 'latest']),
  }
}

/**
 * Deploys a chain's contracts at the planned addresses. The deployer must not have sent a transaction before.
 *
 * @param calls - further transactions of the deployer, after the contracts
 * @throws Error when a transaction fails or an address differs from the plan
 */
export async function deployContracts(
  client: ChainClient,
  plan: DeploymentPlan,
  { deployer, calls = [], block }: { deployer: Address; calls?: readonly ContractCall[]; block?: BlockOptions },
): Promise<Deployed> {
  await client.rpc.call('anvil_setCode', [MULTICALL3_ADDRESS, multicall3RuntimeCode()])
  const hashes: Hex[] = []
  const sendAll = async (firstNonce: number, list: readonly (ContractCall | { data: Hex })[]): Promise<void> => {
    const options = (offset: number) => ({ gas: DEPLOYMENT_GAS, nonce: firstNonce + offset })
    hashes.push(...(await client.sendAll(list.map((call, at) => ({ from: deployer, call, options: options(at) })))))
  }
  await sendAll(
    0,
    plan.common.map((data) => ({ data })),
  )
  await client.mine(block)
  await client.rpc.call('anvil_setNonce', [deployer, toQuantity(plan.ownNonce)])
  await sendAll(plan.ownNonce, [...plan.own.map((data) => ({ data })), ...plan.calls, ...calls])
  await client.mine(block)
  await assertAllSucceeded(client, hashes)
  return plan.deployed
}

/** @throws Error when the transaction is not mined or was reverted */
export async function assertSucceeded(client: ChainClient, hash: Hex): Promise<Receipt> {
  return requireSuccess(hash, await client.receipt(hash))
}

/** @throws Error for the first transaction that is not mined or was reverted */
export async function assertAllSucceeded({ rpc }: ChainClient, hashes: readonly Hex[]): Promise<void> {
  const answers = await rpc.callAll<RpcTransactionReceipt | null>(
    hashes.map((hash) => ['eth_getTransactionReceipt', [hash]]),
  )
  for (const [at, hash] of hashes.entries()) {
    const answer = answers[at]
    requireSuccess(hash, answer ? toReceipt(answer) : undefined)
  }
}

function requireSuccess(hash: Hex, receipt: Receipt | undefined): Receipt {
  if (!receipt) throw new Error(`transaction ${hash} was not mined: its fee cap may be below the block's base fee`)
  if (!receipt.succeeded) throw new Error(`transaction ${hash} was reverted in block ${receipt.blockNumber}`)
  return receipt
}

function toReceipt(answer: RpcTransactionReceipt): Receipt {
  return {
    ...answer,
    blockNumber: BigInt(answer.blockNumber),
    succeeded: BigInt(answer.status) === 1n,
    gasUsed: BigInt(answer.gasUsed),
    effectiveGasPrice: BigInt(answer.effectiveGasPrice),
    logs: answer.logs.map((log) => ({ ...log, logIndex: Number(log.logIndex) })),
  }
}

/** The call of the node that sends. */
export function toCall({ from, call, options = {} }: Sending): RpcCall {
  const { gas = DEFAULT_GAS, nonce, maxFeePerGas = 1_000n * GWEI, maxPriorityFeePerGas = GWEI } = options
  const transaction = { from, ...call, gas, nonce, maxFeePerGas, maxPriorityFeePerGas }
  return ['eth_sendTransaction', [formatTransactionRequest(transaction)]]
}
