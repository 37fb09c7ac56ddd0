import { isHashOf } from '../../contracts/block-proofs.ts'
import { followedTopics, type RpcLog } from '../../contracts/decode-events.ts'
import type { ContractRead } from '../../contracts/multicall.ts'
import { toQuantity } from '../../contracts/words.ts'
import type { Address } from '../../domain/address.ts'
import { chunksOf } from '../../domain/collections.ts'
import type { Hex } from '../../domain/hex.ts'
import type { RpcAnswer, RpcCall } from '../../nodes/json-rpc.ts'
import type { RpcClient } from '../../nodes/rpc-client.ts'
import { ignoreRpcError, RpcError } from '../../nodes/rpc-error.ts'

/** A block as far as following a chain needs it. */
export interface BlockHeader {
  readonly number: number
  readonly hash: Hex
  readonly parentHash: Hex
  readonly timestampSec: number
  /** Absent where it comes from elsewhere than a node. */
  readonly logsBloom?: string | undefined
  /** Whether its hash is that of its fields, so that none of them was changed. */
  readonly isHashed?: boolean | undefined
}

/** The current blocks of a chain, all from one node. */
export interface ChainView {
  readonly head: BlockHeader
  /** NONE: the node has no finalized block. UNANSWERED: it failed to answer. Absent: it was not asked. */
  readonly finalized?: BlockHeader | 'NONE' | 'UNANSWERED' | undefined
  /** The block at the number that was asked for; absent where the node has not reached it. */
  readonly atTip?: BlockHeader | undefined
}

/** The receipt of a transaction. */
export interface TransactionReceipt {
  readonly txHash: Hex
  readonly blockHash: Hex
  readonly blockNumber: number
  readonly from: Address
  /** Absent: it created a contract. */
  readonly to?: Address | undefined
  readonly gasUsed: bigint
  /** In wei. Absent: the node's receipts do not have it. */
  readonly effectiveGasPrice?: bigint | undefined
  /** In wei; what some second layers charge for the first. */
  readonly l1Fee?: bigint | undefined
  /** Whether it is a deposit from the first layer, which pays no `l1Fee`. */
  readonly isDeposit?: boolean
  /** In the order of the chain. */
  readonly logs: readonly RpcLog[]
}

/** Asks a chain's nodes what detection needs. All methods throw RpcError, or the signal's reason. */
export type ChainReader = ReturnType<typeof createChainReader>

/** Blocks `from` to `to`, both included. */
export interface BlockRange {
  readonly from: number
  readonly to: number
  /** Only logs of these contracts; of all followed ones where absent. */
  readonly addresses?: readonly Address[] | undefined
}

/** Logs from a block on, at most until another. */
export interface WantedLogs extends Omit<BlockRange, 'to'> {
  readonly until: number
  /** How many blocks to ask a node for at once, by its place among the URLs. */
  readonly blocksAt: (node: number) => number
}

/** What a node answered, by its place among the URLs. */
export interface NodeLogs {
  readonly node: number
  /** The last block that was asked for. */
  readonly to: number
  /** The node's error where it refused, or did not answer in time. */
  readonly logs: RpcLog[] | RpcError
  /** Block `to`; undefined where the node has not reached it. */
  readonly last: BlockHeader | undefined
}

type Tried = Pick<NodeLogs, 'node' | 'to'>

/** A read of a contract at a block. */
export interface ReadAtBlock extends ContractRead {
  readonly block: number | 'latest'
}

/** The reader of one chain: whom it asks, and the contracts whose logs it reads. */
interface LogReader {
  readonly client: RpcClient
  readonly addresses: readonly Address[]
}

/** Makes the reader of one chain. @param addresses - the contracts whose logs are read */
export function createChainReader(client: RpcClient, addresses: readonly Address[]) {
  const ofLogs: LogReader = { client, addresses }
  return {
    /**
     * Distrusts the node that answered last: other nodes are asked first for a while, and it is asked for its chain id again.
     *
     * @returns which node that was; undefined where none has answered since the last doubt
     */
    doubt: (why: string) => client.doubt(why),
    async view(tip: number, askFinalized: boolean, signal?: AbortSignal): Promise<ChainView> {
      const calls = [blockCall('latest'), blockCall(toQuantity(tip))]
      if (askFinalized) calls.push(blockCall('finalized'))
      const [head, atTip, finalized] = await client.batch(calls, signal)
      const latest = toHeader(resultOf(head))
      if (latest === undefined) throw new RpcError('UNREACHABLE', 'the node has no latest block')
      return { head: latest, atTip: toHeader(resultOf(atTip)), finalized: finalized && readTag(finalized) }
    },
    /** Blocks by number, as the chain is now; undefined where the node has not reached them. */
    async headers(numbers: readonly number[], signal?: AbortSignal): Promise<(BlockHeader | undefined)[]> {
      const calls = numbers.map((number) => blockCall(toQuantity(number)))
      return (await client.batch(calls, signal)).map((answer) => toHeader(resultOf(answer)))
    },
    /** Logs of followed events in a range, and the last block of the range, from one node. */
    async logsInRange({ from, to, addresses: only = addresses }: BlockRange, signal?: AbortSignal) {
      const read = await logsFrom(ofLogs, { from, until: to, addresses: only, blocksAt: () => to - from + 1 }, signal)
      if (read.logs instanceof RpcError) throw read.logs
      return { logs: read.logs, last: read.last }
    },
    /** Reads logs as in `logsInRange`, of as many blocks as suit the node that is asked. */
    logsFrom: (wanted: WantedLogs, signal?: AbortSignal) => logsFrom(ofLogs, wanted, signal),
    /** What is known of the limits of a node, by its place among the URLs. */
    limitsOf: (node: number) => client.limitsOf(node),
    /** Logs of followed events, block by block; the node's error for a block that it refused or does not know. */
    logsOfBlocks: (hashes: readonly Hex[], signal?: AbortSignal) => logsOfBlocks(ofLogs, hashes, signal),
    /** Receipts; the node's error where it refused, undefined where it does not know the transaction. */
    async receipts(
      hashes: readonly Hex[],
      signal?: AbortSignal,
    ): Promise<(TransactionReceipt | RpcError | undefined)[]> {
      const calls = hashes.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }))
      const answers = await client.batch(calls, signal)
      return answers.map((answer) => (answer.ok ? toReceipt(answer.result) : answer.error))
    },
    /** `eth_call`s, each at its block; the error of one is its answer. */
    calls: (reads: readonly ReadAtBlock[], signal?: AbortSignal) => client.batch(reads.map(contractCall), signal),
    /**
     * As `calls`, but what one node refused the next one is asked for, since some keep old state and others do not. Reverts are answers.
     * Failures do not count against a node.
     *
     * @returns undefined for a call that no node answered
     */
    callsAnywhere: (reads: readonly ReadAtBlock[], signal?: AbortSignal) => callAnywhere(client, reads, signal),
  }
}

const topics = [followedTopics]

/** Cuts addresses into parts that a node takes in one filter. */
function partsFor({ client }: LogReader, node: number, addresses: readonly Address[]): Address[][] {
  return [...chunksOf(addresses, partSize(client, node, addresses))]
}

function partSize(client: RpcClient, node: number, addresses: readonly Address[]): number {
  return Math.max(1, Math.min(addresses.length, client.limitsOf(node).addressesAtOnce()))
}

/** Learns from a filter that was refused for its addresses. @returns whether to ask again with fewer of them */
function mayTakeFewer({ client }: LogReader, node: number, addresses: readonly Address[], refused: RpcError): boolean {
  const size = partSize(client, node, addresses)
  if (refused.kind !== 'TOO_MANY_ADDRESSES' || size === 1) return false
  client.limitsOf(node).addressesRefused(size)
  return true
}

async function logsFrom(reader: LogReader, wanted: WantedLogs, signal?: AbortSignal): Promise<NodeLogs> {
  const { from, until, addresses = reader.addresses } = wanted
  const tried: Tried[] = []
  const callsOf = (asked: number): RpcCall[] => {
    const to = Math.min(until, from + wanted.blocksAt(asked) - 1)
    const range = { topics, fromBlock: toQuantity(from), toBlock: toQuantity(to) }
    const parts = partsFor(reader, asked, addresses)
    tried.push({ node: asked, to })
    return [
      ...parts.map((address) => ({ method: 'eth_getLogs', params: [{ ...range, address }] })),
      blockCall(toQuantity(to)),
    ]
  }
  const asking = await reader.client.batchBy(callsOf, signal).catch((error: unknown) => {
    if (error instanceof RpcError && error.kind === 'TIMEOUT') return error
    throw error
  })
  // Where several nodes failed, the caller gets the error of the first one.
  if (asking instanceof RpcError) return { ...(tried[0] as Tried), logs: asking, last: undefined }
  const { node, answers } = asking
  const { to } = tried.at(-1) as Tried
  const logs = joinLogs(answers.slice(0, -1))
  if (logs instanceof RpcError) {
    if (mayTakeFewer(reader, node, addresses, logs)) return logsFrom(reader, wanted, signal)
    return { node, to, logs, last: undefined }
  }
  return { node, to, logs, last: toHeader(resultOf(answers.at(-1))) }
}

async function logsOfBlocks(
  reader: LogReader,
  hashes: readonly Hex[],
  signal?: AbortSignal,
): Promise<(RpcLog[] | RpcError)[]> {
  const { client, addresses } = reader
  const callsOf = (asked: number) =>
    hashes.flatMap((blockHash) =>
      partsFor(reader, asked, addresses).map((address) => ({
        method: 'eth_getLogs',
        params: [{ topics, address, blockHash }],
      })),
    )
  const { node, answers } = await client.batchBy(callsOf, signal)
  const parts = answers.length / Math.max(1, hashes.length)
  const blocks = hashes.map((_, nth) => joinLogs(answers.slice(nth * parts, (nth + 1) * parts)))
  const refused = blocks.find((logs) => logs instanceof RpcError && logs.kind === 'TOO_MANY_ADDRESSES')
  if (refused instanceof RpcError && mayTakeFewer(reader, node, addresses, refused)) {
    return logsOfBlocks(reader, hashes, signal)
  }
  return blocks
}

function contractCall({ to, data, block }: ReadAtBlock): RpcCall {
  return { method: 'eth_call', params: [{ to, data }, block === 'latest' ? block : toQuantity(block)] }
}

async function callAnywhere(
  client: Pick<RpcClient, 'tryBatch'>,
  reads: readonly ReadAtBlock[],
  signal: AbortSignal | undefined,
): Promise<(RpcAnswer | undefined)[]> {
  const found = new Map<ReadAtBlock, RpcAnswer>()
  const asked = new Set<number>()
  for (;;) {
    const open = reads.filter((read) => !found.has(read))
    if (open.length === 0) break
    const callsOf = (node: number) => (asked.has(node) ? undefined : open.map(contractCall))
    const tried = await client.tryBatch(callsOf, signal).catch(ignoreRpcError)
    if (tried === undefined) break
    asked.add(tried.node)
    for (const [index, read] of open.entries()) {
      const answer = tried.answers[index]
      if (answer?.ok === true || answer?.error.kind === 'REVERTED') found.set(read, answer)
    }
  }
  return reads.map((read) => found.get(read))
}

/** Joins the logs of one block, which were asked for by several calls. @returns the first error where one was refused */
function joinLogs(answers: readonly RpcAnswer[]): RpcLog[] | RpcError {
  const refused = answers.find((answer) => !answer.ok)
  return refused?.error ?? answers.flatMap((answer) => toLogs(resultOf(answer)))
}

function blockCall(block: string): RpcCall {
  return { method: 'eth_getBlockByNumber', params: [block, false] }
}

/** @throws the node's error */
export function resultOf(answer: RpcAnswer | undefined): unknown {
  if (answer === undefined) throw new RpcError('UNREACHABLE', 'the node left a call unanswered')
  if (!answer.ok) throw answer.error
  return answer.result
}

const NO_SUCH_TAG =
  /invalid|unsupported|not (supported|found|available)|unknown (block|tag)|does not exist|cannot unmarshal/i

/** `unknown block` means a block that the node does not have yet, or a tag that it does not know. */
function isRefusalOfTag({ kind }: RpcError): boolean {
  return kind === 'REFUSED' || kind === 'BEHIND'
}

/** A node without the tag answers null, or an error that says so; any other error leaves open whether it has the tag. */
function readTag(answer: RpcAnswer): BlockHeader | 'NONE' | 'UNANSWERED' {
  if (answer.ok) return toHeader(answer.result) ?? 'NONE'
  return isRefusalOfTag(answer.error) && NO_SUCH_TAG.test(answer.error.message) ? 'NONE' : 'UNANSWERED'
}

function toHeader(json: unknown): BlockHeader | undefined {
  if (json === null) return undefined
  const block = json as { number?: string; hash?: string; parentHash?: string; timestamp?: string; logsBloom?: string }
  const { number, hash, parentHash, timestamp, logsBloom } = block
  if (number === undefined || hash === undefined || parentHash === undefined || timestamp === undefined) {
    throw new RpcError('UNREACHABLE', 'the node answered with something that is not a block')
  }
  return {
    number: Number(number),
    hash: hash as Hex,
    parentHash: parentHash as Hex,
    timestampSec: Number(timestamp),
    logsBloom,
    isHashed: isHashOf(block),
  }
}

function toLogs(json: unknown): RpcLog[] {
  if (!Array.isArray(json))
    throw new RpcError('UNREACHABLE', 'the node answered with something that is not a list of logs')
  return json as RpcLog[]
}

/** The transaction type of deposits on the OP stack. */
const DEPOSIT_TYPE = '0x7e'

interface ReceiptJson {
  readonly transactionHash: Hex
  readonly blockHash: Hex
  readonly blockNumber: string
  readonly from: string
  readonly to: string | null
  readonly gasUsed: string
  readonly effectiveGasPrice?: string
  readonly l1Fee?: string | null
  readonly type?: string
  readonly logs: RpcLog[]
}

/** A receipt from a node's JSON. @returns undefined for null */
export function toReceipt(json: unknown): TransactionReceipt | undefined {
  if (json === null) return undefined
  const receipt = json as ReceiptJson
  return {
    txHash: receipt.transactionHash,
    blockHash: receipt.blockHash,
    blockNumber: Number(receipt.blockNumber),
    from: receipt.from.toLowerCase() as Address,
    to: receipt.to === null ? undefined : (receipt.to.toLowerCase() as Address),
    gasUsed: BigInt(receipt.gasUsed),
    effectiveGasPrice: receipt.effectiveGasPrice ? BigInt(receipt.effectiveGasPrice) : undefined,
    l1Fee: typeof receipt.l1Fee === 'string' ? BigInt(receipt.l1Fee) : undefined,
    isDeposit: receipt.type === DEPOSIT_TYPE,
    logs: receipt.logs.toSorted((a, b) => Number(a.logIndex) - Number(b.logIndex)),
  }
}
