import { eventTopics } from '../../contracts/decode-events.ts'
import { type BloomBits, bloomBitsOf, mayHold } from '../../contracts/logs-bloom.ts'
import type { Hex } from '../../domain/hex.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import type { SeenTransaction } from '../rules/chain-facts.ts'
import type { KnownContracts } from '../rules/known-contracts.ts'
import { readLogs } from '../rules/transaction-events.ts'
import type { UnprovenBlock } from '../verify-report.ts'
import type { ChainNodes } from './chain-nodes.ts'
import { inParallel } from './in-parallel.ts'
import type { Span } from './plan-range.ts'
import { type Header, readHeaders } from './read-headers.ts'
import { type ProvenReceipts, readReceipts } from './read-receipts.ts'

/** The payment events of some consecutive blocks. */
export interface ReadBlocks {
  /** Transactions with followed events, in the order of the chain. */
  readonly seen: readonly SeenTransaction[]
  /** Blocks whose events are not certain: nothing is compared with them. */
  readonly uncertain: readonly number[]
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

const BLOCKS_AT_ONCE = 8

export interface BlockTools {
  readonly nodes: ChainNodes
  readonly contracts: KnownContracts
}

/**
 * Reads the headers of consecutive blocks from one node.
 *
 * @param before - the hash of the block before the first, where it is known
 * @throws RpcError
 */
export async function readSpanHeaders(nodes: ChainNodes, { from, to }: Span, before?: Hex): Promise<ReadHeaders> {
  return nodes.onAny(async (node) => ({ headers: await readHeaders(nodes, node, { from, to, before }), node }))
}

/**
 * Reads the payment events of some blocks, from the receipts of those whose bloom does not exclude followed events. No node is asked for
 * logs: one that leaves logs out would leave them out again.
 *
 * @throws RpcError
 */
export async function readEvents(tools: BlockTools, { headers, node }: ReadHeaders): Promise<ReadBlocks> {
  const { nodes, contracts } = tools
  const [first, last] = [headers[0], headers.at(-1)]
  if (first === undefined || last === undefined) throw new RangeError('there are no blocks to read')
  const agreed = headers.every(({ isHashed }) => isHashed) || (await isAgreed(nodes, node, headers))
  const isExcluded = excluderOf(contracts)
  const state = {
    seen: [] as SeenTransaction[],
    uncertain: [] as number[],
    unproven: [] as UnprovenBlock[],
  }
  // The bloom of a header whose hash cannot be computed proves nothing: the node may have changed it, or the chain leaves it empty.
  const wanted = headers.filter(
    ({ isHashed, logsBloom, transactions }) => !isHashed || (transactions.length > 0 && !isExcluded(logsBloom)),
  )
  const proven = await inParallel(wanted, BLOCKS_AT_ONCE, (header) =>
    readReceipts(nodes, header, header.isHashed || agreed),
  )
  for (const [place, header] of wanted.entries()) keepEvents(tools, header, proven[place] as ProvenReceipts, state)
  return { ...state, receiptsRead: wanted.length, first, last }
}

function keepEvents(
  { contracts }: Pick<BlockTools, 'contracts'>,
  header: Header,
  { receipts, proof, misreporting }: ProvenReceipts,
  state: { seen: SeenTransaction[]; uncertain: number[]; unproven: UnprovenBlock[] },
): void {
  const block = header.number
  for (const host of misreporting) {
    state.unproven.push({
      block,
      why: `${host} gave receipts that do not have the block's root; another node's were taken`,
      isInfo: true,
    })
  }
  if (proof.kind === 'NONE') {
    state.unproven.push({ block, why: proof.why })
    if (proof.isContradicted) {
      state.uncertain.push(block)
      return
    }
  }
  for (const receipt of receipts) {
    const logs = readLogs(receipt, block, contracts)
    for (const proxy of logs.createdProxies) contracts.addProxy(proxy)
    if (logs.events.length > 0) state.seen.push({ header, receipt, logs })
  }
}

/** Whether a second node gives the same headers. That decides where their hashes cannot be computed. */
async function isAgreed(nodes: ChainNodes, first: number, headers: readonly Header[]): Promise<boolean> {
  const [from, to] = [headers[0]?.number ?? 0, headers.at(-1)?.number ?? 0]
  const textOf = (some: readonly Header[]) => some.map(({ hash, receiptsRoot }) => `${hash} ${receiptsRoot}`).join()
  for (let node = 0; node < nodes.count; node++) {
    if (node === first) continue
    const others = await readHeaders(nodes, node, { from, to }).catch((error: unknown) => {
      if (error instanceof RpcError) return []
      throw error
    })
    if (textOf(others) === textOf(headers)) return true
  }
  return false
}

/** Makes a function that says of a bloom whether its block has no event of a followed contract. */
function excluderOf(contracts: KnownContracts): (bloom: Uint8Array) => boolean {
  const payments = [eventTopics.erc20Payment, eventTopics.nativePayment].map(bloomBitsOf)
  const creations = [eventTopics.tokenRequestProxy, eventTopics.nativeRequestProxy].map(bloomBitsOf)
  const pairs: readonly (readonly [BloomBits, readonly BloomBits[]])[] = contracts.followed.map((address) => [
    bloomBitsOf(address),
    contracts.isFactory(address) ? creations : payments,
  ])
  return (bloom) =>
    !pairs.some(([address, topics]) => mayHold(bloom, address) && topics.some((topic) => mayHold(bloom, topic)))
}
