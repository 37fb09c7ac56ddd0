import {
  type BloomBits,
  bloomBitsOf,
  type EncodableReceipt,
  mayHold,
  receiptsRootOf,
} from '../../contracts/block-proofs.ts'
import { eventTopics, followedTopics, type RpcLog } from '../../contracts/decode-events.ts'
import { readQuantity, toQuantity } from '../../contracts/words.ts'
import { type Address, ZERO_ADDRESS } from '../../domain/address.ts'
import type { BlockRun } from '../../domain/chain.ts'
import type { Hex } from '../../domain/hex.ts'
import { ignoreRpcError, isObject, RpcError } from '../../nodes/rpc-error.ts'
import { resultOf, type TransactionReceipt, toReceipt } from '../read/chain-reader.ts'
import { type ChainNodes, type Header, inParallel, readHeaders } from './chain-nodes.ts'
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
  const { erc20Payment, nativePayment, listingAdded, listingRemoved } = eventTopics
  const others = [erc20Payment, nativePayment, listingAdded, listingRemoved].map(bloomBitsOf)
  const creations = [eventTopics.tokenRequestProxy, eventTopics.nativeRequestProxy].map(bloomBitsOf)
  const pairs: readonly (readonly [BloomBits, readonly BloomBits[]])[] = [...startOf.keys()].map((address) => [
    bloomBitsOf(address),
    factories.has(address) ? creations : others,
  ])
  return (bloom) =>
    !pairs.some(([address, topics]) => mayHold(bloom, address) && topics.some((topic) => mayHold(bloom, topic)))
}

/**
 * How the receipts of a block are proved:
 *
 * - `ROOT`: they have the root that the block's header names
 * - `AGREED`: two nodes gave the same
 * - `NONE`: not at all; `why` says the reason
 */
type Proof =
  | { readonly kind: 'ROOT' | 'AGREED' }
  | { readonly kind: 'NONE'; readonly why: string; readonly isContradicted: boolean }

interface ProvenReceipts {
  readonly receipts: readonly TransactionReceipt[]
  readonly proof: Proof
  /** Hosts of nodes whose receipts do not have the root although another node's do. */
  readonly misreporting: readonly string[]
}

/** What one node answers. */
interface Answer {
  readonly host: string
  readonly receipts: readonly RawReceipt[]
  readonly hasRoot: boolean
}

type RawReceipt = EncodableReceipt & Readonly<Record<string, unknown>>

/**
 * Reads all receipts of a block from the first node whose receipts have the root of the header. Where none has it, for instance because the
 * chain encodes receipts in an unknown way, two nodes must give the same.
 *
 * @param isRootKnown - whether the header's receiptsRoot is certain
 * @throws RpcError when no node answers
 */
async function readReceipts(nodes: ChainNodes, header: Header, isRootKnown: boolean): Promise<ProvenReceipts> {
  const answers: Answer[] = []
  let failure: RpcError | undefined
  for (const node of nodes.order()) {
    const answer = await readFrom(nodes, node, header).catch((error: unknown) => {
      if (!(error instanceof RpcError)) throw error
      failure ??= error
      return undefined
    })
    if (answer === undefined) continue
    if (isRootKnown && answer.hasRoot) {
      const misreporting = answers.map(({ host }) => host)
      return { receipts: toReceipts(answer, header), proof: { kind: 'ROOT' }, misreporting }
    }
    const same = answers.find((other) => contentOf(other) === contentOf(answer))
    if (same !== undefined) return { receipts: toReceipts(answer, header), proof: { kind: 'AGREED' }, misreporting: [] }
    answers.push(answer)
  }
  const [first] = answers
  if (first === undefined) throw failure ?? new RpcError('UNREACHABLE', 'the chain has no RPC URL')
  return { receipts: toReceipts(first, header), proof: explainDoubt(answers, isRootKnown), misreporting: [] }
}

function explainDoubt(answers: readonly Answer[], isRootKnown: boolean): Proof {
  const hosts = answers.map(({ host }) => host).join(' and ')
  if (answers.length > 1) {
    const why = `${hosts} give different receipts, and none has the block's root`
    return { kind: 'NONE', why, isContradicted: true }
  }
  if (!isRootKnown) {
    const why = `the header's hash cannot be computed, and there is no second node that agrees with ${hosts}`
    return { kind: 'NONE', why, isContradicted: false }
  }
  const why = `the receipts of ${hosts} do not have the root that the block's header names: logs are missing or changed, or the chain encodes receipts in a way that is not known; add a second node to the chains file`
  return { kind: 'NONE', why, isContradicted: true }
}

async function readFrom(nodes: ChainNodes, node: number, header: Header): Promise<Answer> {
  const host = nodes.hostOf(node)
  const receipts = await readRaw(nodes, node, header)
  const { transactions } = header
  const isComplete =
    receipts.length === transactions.length &&
    receipts.every((receipt, place) => receipt['transactionHash'] === transactions[place])
  if (!isComplete) {
    const text = `the receipts of block ${header.number} are not those of its transactions`
    throw new RpcError('INCONSISTENT', text, { host })
  }
  const counted = withoutStateSync(receipts)
  const hasRoot = [receipts, counted].some(
    (some) => receiptsRootOf(some) === header.receiptsRoot && isGasConsistent(some),
  )
  return { host, receipts, hasRoot }
}

/** At the end of some blocks, Polygon lists a state-sync transaction whose receipt is not in the root. It pays nobody. */
function withoutStateSync(receipts: readonly RawReceipt[]): readonly RawReceipt[] {
  const last = receipts.at(-1)
  return last?.['from'] === ZERO_ADDRESS && readQuantity(last['gasUsed']) === 0n ? receipts.slice(0, -1) : receipts
}

/** Whether each `gasUsed` is the step between two cumulative sums: only those sums are in the root. */
function isGasConsistent(receipts: readonly RawReceipt[]): boolean {
  let before = 0n
  return receipts.every(({ cumulativeGasUsed, gasUsed }) => {
    const after = readQuantity(cumulativeGasUsed) ?? 0n
    const isRight = readQuantity(gasUsed) === after - before
    before = after
    return isRight
  })
}

async function readRaw(nodes: ChainNodes, node: number, { hash, transactions }: Header): Promise<RawReceipt[]> {
  const [whole] = await nodes.ask(node, [{ method: 'eth_getBlockReceipts', params: [hash] }])
  const list = whole?.ok && Array.isArray(whole.result) ? whole.result : await readEach(nodes, node, transactions)
  return list.map((receipt) => checkReceipt(receipt, nodes.hostOf(node)))
}

async function readEach(nodes: ChainNodes, node: number, transactions: readonly Hex[]): Promise<unknown[]> {
  if (transactions.length === 0) return []
  const calls = transactions.map((hash) => ({ method: 'eth_getTransactionReceipt', params: [hash] }))
  return (await nodes.ask(node, calls)).map(resultOf)
}

/** @throws RpcError INCONSISTENT where the value is no receipt */
function checkReceipt(value: unknown, host: string): RawReceipt {
  const texts = ['transactionHash', 'from', 'gasUsed', 'cumulativeGasUsed', 'logsBloom']
  const isReceipt =
    isObject(value) && texts.every((field) => typeof value[field] === 'string') && Array.isArray(value['logs'])
  if (!isReceipt) throw new RpcError('INCONSISTENT', 'a receipt lacks a field', { host })
  return value as unknown as RawReceipt
}

function contentOf({ receipts }: Answer): string {
  return JSON.stringify(
    receipts.map(({ status, cumulativeGasUsed, logs }) => [
      status,
      cumulativeGasUsed,
      logs.map(({ address, topics, data }) => [address.toLowerCase(), topics, data]),
    ]),
  )
}

/** Numbers the logs and names their block: neither is in the root. */
function toReceipts({ receipts }: Answer, { number, hash, timestampSec }: Header): TransactionReceipt[] {
  const block = { blockNumber: toQuantity(number), blockHash: hash }
  const ofLog = { ...block, blockTimestamp: toQuantity(timestampSec) }
  let nextLog = 0
  return receipts.map((receipt) => {
    const transactionHash = receipt['transactionHash'] as Hex
    const logs = receipt.logs.map(({ address, topics, data }) => ({
      address,
      topics,
      data,
      ...ofLog,
      transactionHash,
      logIndex: toQuantity(nextLog++),
    }))
    return toReceipt({ ...receipt, ...block, to: receipt['to'] ?? null, logs }) as TransactionReceipt
  })
}
