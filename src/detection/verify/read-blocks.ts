import { eventTopics, followedTopics, type RpcLog } from '../../contracts/decode-events.ts'
import { type BloomBits, bloomBitsOf, mayHold } from '../../contracts/logs-bloom.ts'
import type { Address } from '../../domain/address.ts'
import type { BlockRun } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import { ignoreRpcError, RpcError } from '../../nodes/rpc-error.ts'
import type { TransactionReceipt } from '../read/chain-reader.ts'
import type { ChainNodes } from './chain-nodes.ts'
import { inParallel } from './in-parallel.ts'
import { type Header, readHeaders } from './read-headers.ts'
import { type ProvenReceipts, readReceipts } from './read-receipts.ts'
import type { UnprovenBlock } from './verify-report.ts'

/** The followed events of some consecutive blocks. */
export interface ReadBlocks {
  /** Followed logs of the blocks that are certain, in the order of the chain. */
  readonly logs: readonly RpcLog[]
  /** Receipts of their transactions. */
  readonly receipts: readonly TransactionReceipt[]
  /** Blocks whose events are not certain: nothing is compared with them. */
  readonly uncertain: ReadonlySet<number>
  readonly unproven: readonly UnprovenBlock[]
  readonly receiptsRead: number
  readonly first: Header
  readonly last: Header
}

/** The headers of consecutive blocks, and the place of the node that gave them. */
export interface ReadHeaders {
  readonly headers: readonly Header[]
  readonly node: number
}

/** What is asked, and what is looked for. */
export interface BlockTools {
  readonly nodes: ChainNodes
  /** The contracts whose events are followed, and from which block on. */
  readonly startOf: ReadonlyMap<Address, number>
  readonly factories: ReadonlySet<Address>
  /** Whether a block of which nothing is proven is left out even where nothing contradicts it. */
  readonly isProofNeeded: boolean
}

const BLOCKS_AT_ONCE = 8

/**
 * Reads the headers of consecutive blocks from one node. Another node that answers must have the last of them: the blocks of a fork prove themselves as
 * well.
 *
 * @param before - the hash of the block before the first, where it is known
 * @throws RpcError
 */
export async function readSpanHeaders(nodes: ChainNodes, { from, to }: BlockRun, before?: Hex): Promise<ReadHeaders> {
  return nodes.onAny(async (node) => {
    const headers = await readHeaders(nodes, node, { from, to, before })
    const reported = await askOther(nodes, node, to)
    if (reported !== undefined && reported.hash !== headers.at(-1)?.hash) {
      const hosts = `${nodes.hostOf(node)} and ${nodes.hostOf(reported.node)}`
      throw new RpcError('INCONSISTENT', `${hosts} have different blocks ${to}`)
    }
    return { headers, node }
  })
}

/** The hash of a block as another node has it. @returns undefined where no other one answers */
async function askOther(nodes: ChainNodes, first: number, block: number) {
  for (const node of nodes.order()) {
    if (node === first) continue
    const headers = await readHeaders(nodes, node, { from: block, to: block }).catch(ignoreRpcError)
    if (headers?.[0] !== undefined) return { node, hash: headers[0].hash }
  }
  return undefined
}

/**
 * Reads the followed logs of some blocks, from the receipts of those whose bloom does not exclude them. No node is asked for logs: one that leaves logs
 * out would leave them out again.
 *
 * @throws RpcError
 */
export async function readBlocks(tools: BlockTools, { headers, node }: ReadHeaders): Promise<ReadBlocks> {
  const { nodes } = tools
  const [first, last] = [headers[0], headers.at(-1)]
  if (first === undefined || last === undefined) throw new RangeError('there are no blocks to read')
  const agreed = headers.every(({ isHashed }) => isHashed) || (await isAgreed(nodes, node, headers))
  const isExcluded = excluderOf(tools)
  // The bloom of a header whose hash cannot be computed proves nothing: the node may have changed it, or the chain leaves it empty.
  const wanted = headers.filter(
    ({ isHashed, logsBloom, transactions }) => !isHashed || (transactions.length > 0 && !isExcluded(logsBloom)),
  )
  const proven = await inParallel(wanted, BLOCKS_AT_ONCE, (header) =>
    readReceipts(nodes, header, header.isHashed || agreed),
  )
  const read = wanted.map((header, place) => judgeBlock(tools, header, proven[place] as ProvenReceipts))
  const receipts = read.flatMap((block) => block.receipts)
  return {
    receipts,
    logs: receipts.flatMap(({ logs }) => logs.filter((log) => isFollowed(tools, log))),
    uncertain: new Set(read.flatMap(({ isLeftOut, block }) => (isLeftOut ? [block] : []))),
    unproven: read.flatMap(({ unproven }) => unproven),
    receiptsRead: wanted.length,
    first,
    last,
  }
}

/** Keeps the receipts with followed logs, where they are certain. */
function judgeBlock(tools: BlockTools, { number: block }: Header, { receipts, proof, misreporting }: ProvenReceipts) {
  const reported = misreporting.map((host) => ({
    block,
    why: `${host} gave receipts that do not have the block's root; another node's were taken`,
    isInfo: true,
  }))
  const unproven = proof.kind === 'NONE' ? [...reported, { block, why: proof.why }] : reported
  const isLeftOut = proof.kind === 'NONE' && (proof.isContradicted || tools.isProofNeeded)
  const kept = isLeftOut ? [] : receipts.filter(({ logs }) => logs.some((log) => isFollowed(tools, log)))
  return { block, receipts: kept, isLeftOut, unproven }
}

const topics = new Set<string>(followedTopics)

/** Whether a log is one that following the chain reads. */
function isFollowed({ startOf }: Pick<BlockTools, 'startOf'>, { address, topics: [topic = ''], blockNumber }: RpcLog) {
  const from = startOf.get(address.toLowerCase() as Address) ?? Number.POSITIVE_INFINITY
  return topics.has(topic.toLowerCase()) && Number(blockNumber) >= from
}

/** Whether a second node gives the same headers. That decides where their hashes cannot be computed. */
async function isAgreed(nodes: ChainNodes, first: number, headers: readonly Header[]): Promise<boolean> {
  const [from, to] = [headers[0]?.number ?? 0, headers.at(-1)?.number ?? 0]
  const textOf = (some: readonly Header[]) => some.map(({ hash, receiptsRoot }) => `${hash} ${receiptsRoot}`).join()
  for (let node = 0; node < nodes.count; node++) {
    if (node === first) continue
    const others = await readHeaders(nodes, node, { from, to }).catch(ignoreRpcError)
    if (textOf(others ?? []) === textOf(headers)) return true
  }
  return false
}

/** Makes a function that says of a bloom whether its block has no event of a followed contract. */
function excluderOf({ startOf, factories }: BlockTools): (bloom: Uint8Array) => boolean {
  const payments = [eventTopics.erc20Payment, eventTopics.nativePayment].map(bloomBitsOf)
  const creations = [eventTopics.tokenRequestProxy, eventTopics.nativeRequestProxy].map(bloomBitsOf)
  const pairs: readonly (readonly [BloomBits, readonly BloomBits[]])[] = [...startOf.keys()].map((address) => [
    bloomBitsOf(address),
    factories.has(address) ? creations : payments,
  ])
  return (bloom) =>
    !pairs.some(([address, topics]) => mayHold(bloom, address) && topics.some((topic) => mayHold(bloom, topic)))
}
