import { followedTopics, type RpcLog } from '../../contracts/decode-events.ts'
import { toQuantity } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import type { Hex } from '../../domain/hex.ts'
import type { RpcAnswer, RpcCall } from '../../nodes/json-rpc.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { TransactionReceipt } from './read-transaction.ts'

/** A block as far as following a chain needs it. */
export interface BlockHeader {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestampSec: number
}

/** Where a chain stands, all from one node. */
export interface ChainView {
  readonly head: BlockHeader
  /** NONE: the node has no such block. UNTOLD: it failed to say. Absent: it was not asked. */
  readonly finalized?: BlockHeader | 'NONE' | 'UNTOLD'
  /** The block that now stands at the number that was asked for; absent when the node is not as far. */
  readonly atTip?: BlockHeader
}

/** Asks a chain's nodes what detection needs to know. All methods throw RpcError, or the signal's reason. */
export interface ChainReader {
  view(tip: number, askFinalized: boolean, signal?: AbortSignal): Promise<ChainView>
  /** By number, as the chain stands now; undefined where it does not reach. */
  headers(numbers: readonly number[], signal?: AbortSignal): Promise<(BlockHeader | undefined)[]>
  /** Logs of followed events in a range, and the range's last block, from the same node. */
  logsInRange(range: BlockRange, signal?: AbortSignal): Promise<{ logs: RpcLog[]; last: BlockHeader | undefined }>
  /** Logs of followed events block by block; what the node answered instead where it refused, or does not know the block. */
  logsOfBlocks(hashes: readonly Hex[], signal?: AbortSignal): Promise<(RpcLog[] | RpcError)[]>
  /** What the node answered instead where it refused; undefined where it does not know the transaction. */
  receipts(hashes: readonly Hex[], signal?: AbortSignal): Promise<(TransactionReceipt | RpcError | undefined)[]>
  /** `eth_call`s, each at a block; an error of one is its answer. */
  calls(calls: readonly ContractRead[], signal?: AbortSignal): Promise<RpcAnswer[]>
  /** Has other nodes asked first for a while, and the one that answered last for its chain id again. @returns which one that was */
  doubt(why: string): number | undefined
}

/** Blocks `from` to `to`, both included. */
export interface BlockRange {
  readonly from: number
  readonly to: number
  /** Only logs of these contracts; all that are followed unless told. */
  readonly addresses?: readonly Address[]
}

export interface ContractRead {
  readonly to: Address
  readonly data: Hex
  readonly block: number | 'latest'
}

/** Makes the reader of one chain's events at `addresses`. */
export function createChainReader(client: RpcClient, addresses: readonly Address[]): ChainReader {
  const filter = { address: addresses, topics: [followedTopics] }
  return {
    doubt: (why) => client.doubt(why),
    async view(tip, askFinalized, signal) {
      const calls = [blockCall('latest'), blockCall(toQuantity(tip))]
      if (askFinalized) calls.push(blockCall('finalized'))
      const [head, atTip, finalized] = await client.batch(calls, signal)
      const latest = toHeader(resultOf(head))
      if (latest === undefined) throw new RpcError('UNREACHABLE', 'the node has no latest block')
      return {
        head: latest,
        ...optional('atTip', toHeader(resultOf(atTip))),
        ...optional('finalized', finalized && readTag(finalized)),
      }
    },
    async headers(numbers, signal) {
      const answers = await client.batch(
        numbers.map((number) => blockCall(toQuantity(number))),
        signal,
      )
      return answers.map((answer) => toHeader(resultOf(answer)))
    },
    async logsInRange({ from, to, addresses: only }, signal) {
      const chosen = only === undefined ? filter : { ...filter, address: only }
      const range = { ...chosen, fromBlock: toQuantity(from), toBlock: toQuantity(to) }
      const [logs, last] = await client.batch(
        [{ method: 'eth_getLogs', params: [range] }, blockCall(toQuantity(to))],
        signal,
      )
      return { logs: toLogs(resultOf(logs)), last: toHeader(resultOf(last)) }
    },
    async logsOfBlocks(hashes, signal) {
      const answers = await client.batch(
        hashes.map((blockHash) => ({ method: 'eth_getLogs', params: [{ ...filter, blockHash }] })),
        signal,
      )
      return answers.map((answer) => (answer.ok ? toLogs(answer.result) : answer.error))
    },
    async receipts(hashes, signal) {
      const answers = await client.batch(
        hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] })),
        signal,
      )
      return answers.map((answer) => (answer.ok ? toReceipt(answer.result) : answer.error))
    },
    calls(reads, signal) {
      return client.batch(
        reads.map(({ to, data, block }) => ({
          method: 'eth_call',
          params: [{ to, data }, block === 'latest' ? block : toQuantity(block)],
        })),
        signal,
      )
    },
  }
}

function blockCall(block: string): RpcCall {
  return { method: 'eth_getBlockByNumber', params: [block, false] }
}

function resultOf(answer: RpcAnswer | undefined): unknown {
  if (answer === undefined) throw new RpcError('UNREACHABLE', 'the node left a call unanswered')
  if (!answer.ok) throw answer.error
  return answer.result
}

const NO_SUCH_TAG =
  /invalid|unsupported|not (supported|found|available)|unknown (block|tag)|does not exist|cannot unmarshal/i

/** Nodes without that tag answer null, or an error that says so; any other error says nothing of the tag. */
function readTag(answer: RpcAnswer): BlockHeader | 'NONE' | 'UNTOLD' {
  if (answer.ok) return toHeader(answer.result) ?? 'NONE'
  return answer.error.kind === 'REFUSED' && NO_SUCH_TAG.test(answer.error.message) ? 'NONE' : 'UNTOLD'
}

function optional<K extends string, V>(key: K, value: V | undefined): { [name in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { [name in K]: V })
}

function toHeader(json: unknown): BlockHeader | undefined {
  if (json === null) return undefined
  const block = json as { number?: string; hash?: string; parentHash?: string; timestamp?: string }
  const { number, hash, parentHash, timestamp } = block
  if (number === undefined || hash === undefined || parentHash === undefined || timestamp === undefined) {
    throw new RpcError('UNREACHABLE', 'the node answered with something that is not a block')
  }
  return { number: Number(number), hash: hash as Hex, parentHash: parentHash as Hex, timestampSec: Number(timestamp) }
}

function toLogs(json: unknown): RpcLog[] {
  if (!Array.isArray(json))
    throw new RpcError('UNREACHABLE', 'the node answered with something that is not a list of logs')
  return json as RpcLog[]
}

interface ReceiptJson {
  readonly transactionHash: Hex
  readonly blockHash: Hex
  readonly blockNumber: string
  readonly from: string
  readonly to: string | null
  readonly gasUsed: string
  readonly effectiveGasPrice?: string
  readonly l1Fee?: string | null
  readonly logs: RpcLog[]
}

function toReceipt(json: unknown): TransactionReceipt | undefined {
  if (json === null) return undefined
  const receipt = json as ReceiptJson
  return {
    txHash: receipt.transactionHash,
    blockHash: receipt.blockHash,
    blockNumber: Number(receipt.blockNumber),
    from: receipt.from.toLowerCase() as Address,
    ...(receipt.to === null ? {} : { to: receipt.to.toLowerCase() as Address }),
    gasUsed: BigInt(receipt.gasUsed),
    ...(receipt.effectiveGasPrice ? { effectiveGasPrice: BigInt(receipt.effectiveGasPrice) } : {}),
    ...(typeof receipt.l1Fee === 'string' ? { l1Fee: BigInt(receipt.l1Fee) } : {}),
    logs: receipt.logs.toSorted((a, b) => Number(a.logIndex) - Number(b.logIndex)),
  }
}
