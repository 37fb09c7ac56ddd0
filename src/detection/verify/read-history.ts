import type { RpcLog } from '../../contracts/decode-events.ts'
import { decodeFeeProxyLog } from '../../contracts/decode-events.ts'
import { readQuantity } from '../../contracts/words.ts'
import { chunksOf } from '../../domain/collections.ts'
import type { Hex } from '../../domain/hex.ts'
import type { RpcAnswer } from '../../nodes/json-rpc.ts'
import { isObject } from '../../nodes/rpc-error.ts'
import type { BlockHeader, TransactionReceipt } from '../read/chain-reader.ts'
import type { ProvenReading } from '../repair/correct-requests.ts'
import type { RequestEvents, StoredEvent } from '../sql/topics-repository.ts'
import { inParallel } from './chain-nodes.ts'
import { type BlockTools, type ReadBlocks, readBlocks, readSpanHeaders } from './read-blocks.ts'
import type { Section } from './read-sections.ts'

export type History = ReturnType<typeof createHistory>

interface HistoryOptions {
  readonly tools: BlockTools
  /** The last block that is looked at. */
  readonly pinned: number
  readonly signal: AbortSignal | undefined
}

/** What was read of a section, and for it. */
interface Known {
  readonly section: Pick<Section, 'span' | 'uncertain'>
  readonly receipts: Map<Hex, TransactionReceipt>
  readonly headers: Map<number, BlockHeader>
  /** Transactions by the topics of their events. */
  readonly byTopic: Map<Hex, Set<Hex>>
  /** Blocks outside the section. */
  readonly others: Map<number, ReadBlocks>
  /** Blocks of transactions that are not in the block that a row names; undefined: in none. */
  readonly located: Map<Hex, number | undefined>
}

const BLOCKS_AT_ONCE = 8
const RECEIPTS_AT_ONCE = 100

/** Makes what tells what proven blocks say of requests: those of a section, and those outside it that hold the rest of their events. */
export function createHistory({ tools, pinned, signal }: HistoryOptions) {
  let known = emptyKnown({ span: { from: 0, to: -1 }, uncertain: new Set() })
  const differing = new Map<string, Set<number>>()

  async function load(numbers: Iterable<number>): Promise<void> {
    const missing = [...new Set(numbers)].filter(
      (number) => number <= pinned && !isWithin(known, number) && !known.others.has(number),
    )
    await inParallel(missing, BLOCKS_AT_ONCE, async (number) => {
      signal?.throwIfAborted()
      const read = await readBlocks(tools, await readSpanHeaders(tools.nodes, { from: number, to: number }))
      known.others.set(number, read)
      addRead(known, read)
    })
  }

  /** Looks for transactions that are not in the block that their row names. One is in none where no node that answers knows it. @throws RpcError */
  async function locate(txHashes: readonly Hex[]): Promise<void> {
    for (const some of chunksOf(txHashes, RECEIPTS_AT_ONCE)) {
      const answers = await askAll(some)
      for (const [place, txHash] of some.entries()) {
        const number = answers.map((each) => blockOf(each[place])).find((each) => each !== undefined)
        known.located.set(txHash, number)
      }
    }
    await load([...known.located.values()].flatMap((number) => number ?? []))
  }

  async function askAll(txHashes: readonly Hex[]): Promise<(readonly RpcAnswer[])[]> {
    const calls = txHashes.map((txHash) => ({ method: 'eth_getTransactionReceipt', params: [txHash] }))
    const { nodes } = tools
    const reported = await Promise.allSettled(nodes.order().map((node) => nodes.ask(node, calls)))
    const answers = reported.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    return answers.length > 0 ? answers : [await nodes.onAny((node) => nodes.ask(node, calls))]
  }

  function isRead({ txHash, blockNumber }: StoredEvent): boolean {
    const number = known.located.get(txHash) ?? blockNumber
    if (isWithin(known, number)) return !known.section.uncertain.has(number)
    return known.others.get(number)?.uncertain.size === 0
  }

  return {
    /** Starts a section: blocks that were read for the one before are dropped. */
    begin(section: Section): void {
      known = emptyKnown(section)
      addRead(known, section)
    },
    /** Reads the blocks outside the section in which events of requests are stored. @throws RpcError; the signal's reason */
    async complete(accountId: number, batch: readonly RequestEvents[]): Promise<ProvenReading> {
      const topics = batch.flatMap((request) => request.topics)
      const stored = batch.flatMap(({ events }) => events)
      await load([
        ...stored.map(({ blockNumber }) => blockNumber),
        ...topics.flatMap((topic) => [...(differing.get(`${accountId} ${topic}`) ?? [])]),
      ])
      const isLost = (event: StoredEvent) => !known.receipts.has(event.txHash) && isRead(event)
      await locate(
        stored.filter((event) => isLost(event) && !known.located.has(event.txHash)).map(({ txHash }) => txHash),
      )
      const txHashes = topics.flatMap((topic) => [...(known.byTopic.get(topic) ?? [])])
      const receipts = [...txHashes, ...stored.map(({ txHash }) => txHash)].flatMap(
        (txHash) => known.receipts.get(txHash) ?? [],
      )
      const logged = receipts.flatMap(({ logs }) => logs.flatMap((log) => decodeFeeProxyLog(log)?.topic ?? []))
      return { receipts: known.receipts, headers: known.headers, txHashes, topics: logged, isRead }
    },
    /** Notes requests that differ from what is stored: their events of this section count in later ones, even if no row names their block. */
    addDiffering(accountId: number, batch: readonly RequestEvents[]): void {
      for (const topic of batch.flatMap(({ topics }) => topics)) {
        const numbers = [...(known.byTopic.get(topic) ?? [])].flatMap(
          (txHash) => known.receipts.get(txHash)?.blockNumber ?? [],
        )
        const key = `${accountId} ${topic}`
        differing.set(key, new Set([...(differing.get(key) ?? []), ...numbers]))
      }
    },
  }
}

function blockOf(answer: RpcAnswer | undefined): number | undefined {
  const number = answer?.ok === true && isObject(answer.result) ? readQuantity(answer.result['blockNumber']) : undefined
  return number === undefined ? undefined : Number(number)
}

function emptyKnown(section: Known['section']): Known {
  const maps = { receipts: new Map(), headers: new Map(), byTopic: new Map(), others: new Map(), located: new Map() }
  return { section, ...maps }
}

function isWithin({ section: { span } }: Known, number: number): boolean {
  return number >= span.from && number <= span.to
}

function addRead(known: Known, { receipts, logs }: Pick<ReadBlocks, 'receipts' | 'logs'>): void {
  for (const receipt of receipts) {
    known.receipts.set(receipt.txHash, receipt)
    known.headers.set(receipt.blockNumber, headerOf(receipt))
  }
  for (const log of logs) {
    const topic = decodeFeeProxyLog(log)?.topic
    if (topic === undefined) continue
    known.byTopic.set(topic, (known.byTopic.get(topic) ?? new Set<Hex>()).add(log.transactionHash as Hex))
  }
}

function headerOf({ blockNumber, blockHash, logs }: TransactionReceipt): BlockHeader {
  const { blockTimestamp = '0x0' } = logs[0] as RpcLog
  return { number: blockNumber, hash: blockHash, parentHash: '0x', timestampSec: Number(blockTimestamp) }
}
