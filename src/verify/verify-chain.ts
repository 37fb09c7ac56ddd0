import { setTimeout as wait } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { ChainConfig } from '../chains/chains-file.ts'
import type { TokenDirectory } from '../chains/token-directory.ts'
import type { Account } from '../domain/account.ts'
import { caip2Of } from '../domain/chain.ts'
import type { Hex } from '../domain/hex.ts'
import type { Logger } from '../domain/logger.ts'
import { RpcError } from '../nodes/rpc-error.ts'
import { completeFacts, type EventFact, type FactTools } from './chain-facts.ts'
import { type ChainNodes, openNodes } from './chain-nodes.ts'
import { compareStored, type ReadFacts } from './compare-stored.ts'
import { knowContracts } from './known-contracts.ts'
import { planRange, type RangePlan, type Span } from './plan-range.ts'
import { type ReadBlocks, readBlocks } from './read-blocks.ts'
import { readHeader } from './read-headers.ts'
import { readPosition } from './sql/chain-position.ts'
import { findAccounts } from './sql/stored-requests.ts'
import type { Unproven, VerifyDifference, VerifyProgress, VerifyReport } from './verify-report.ts'

export interface VerifyOptions {
  /** Read, never written. */
  readonly knex: Knex
  readonly chain: ChainConfig
  readonly tokens: TokenDirectory
  /** The first block. Default: the first that was read. */
  readonly from?: number | undefined
  /** The last block. Default: the last final one. What is not final or not read yet is left out, and the report says so. */
  readonly to?: number | undefined
  readonly clock: () => Date
  readonly logger: Logger
  /** Default: all accounts. */
  readonly account?: Account | undefined
  readonly signal?: AbortSignal | undefined
  /** Called after each portion of blocks. */
  readonly onProgress?: ((progress: VerifyProgress) => void) | undefined
  /** How long to wait before a difference is looked at again, because a running service may just have changed the row; default 1,000. */
  readonly againAfterMs?: number | undefined
}

/** Headers that are read at once. */
const BLOCKS_A_PORTION = 200
const AGAIN_AFTER_MS = 1_000

/**
 * Recomputes the payments, refunds and unmatched events of some blocks from their receipts, and the settlement of each request that they
 * touch, and compares them with what is stored. Writes nothing. It shares no rule with detection: both follow CHAIN on their own.
 *
 * @throws RpcError when the nodes do not answer, or contradict themselves; RangeError when there is no block to compare; the signal's reason
 */
export async function verifyChain(options: VerifyOptions): Promise<VerifyReport> {
  const { knex, chain, tokens, clock, signal } = options
  const chainId = caip2Of(chain.chainId)
  const position = await readPosition(knex, chainId)
  if (position === undefined) throw new RangeError(`${chain.name} was never followed, so there is nothing to verify`)
  const nodes = openNodes(chain, { clock, signal })
  const asked = { from: options.from ?? 0, to: options.to ?? Number.MAX_SAFE_INTEGER }
  const plan = await planRange(chain, nodes, position, asked)
  const contracts = knowContracts(chain, position.fromBlocks, position.proxies)
  const tools: FactTools = { chain, tokens, nodes, contracts }
  const read = await readRange(options, tools, plan)
  const compared = await compareTwice(options, tools, read)
  await assertPinned(nodes, plan)
  const [first, last] = [plan.spans[0], plan.spans.at(-1)]
  return {
    network: chain.name,
    block: { number: plan.pinned.number, hash: plan.pinned.hash },
    from: first?.from ?? 0,
    to: last?.to ?? 0,
    notes: plan.notes,
    differences: compared.differences,
    unproven: [...read.unproven, ...compared.unproven],
    counts: { ...compared.counts, blocks: blocksIn(plan.spans), receiptsRead: read.receiptsRead },
  }
}

const blocksIn = (spans: readonly Span[]) => spans.reduce((sum, { from, to }) => sum + to - from + 1, 0)

/** Reads all blocks of the range, and completes the events whose topic some account knows. */
async function readRange(
  { knex, signal, onProgress }: VerifyOptions,
  tools: FactTools,
  plan: RangePlan,
): Promise<ReadFacts> {
  const facts: EventFact[] = []
  const unknown: ReadFacts['unknown'][number][] = []
  const uncertain = new Set<number>()
  const unproven: Unproven[] = []
  const times: Date[] = []
  let [blocksDone, receiptsRead] = [0, 0]
  for (const span of plan.spans) {
    let before: Hex | undefined
    for (let from = span.from; from <= span.to; from += BLOCKS_A_PORTION) {
      signal?.throwIfAborted()
      const to = Math.min(span.to, from + BLOCKS_A_PORTION - 1)
      const blocks = await readBlocks(tools, { from, to }, before)
      if (to === plan.pinned.number && blocks.last.hash !== plan.pinned.hash) throw pinnedChanged(plan)
      before = blocks.last.hash
      const sorted = await sortEvents(knex, tools, blocks)
      facts.push(...sorted.facts)
      unknown.push(...sorted.unknown)
      for (const number of blocks.uncertain) uncertain.add(number)
      unproven.push(...blocks.unproven)
      times.push(new Date(blocks.first.timestampSec * 1_000), new Date(blocks.last.timestampSec * 1_000))
      receiptsRead += blocks.receiptsRead
      blocksDone += to - from + 1
      onProgress?.({ blocksDone, blocksTotal: blocksIn(plan.spans), events: facts.length + unknown.length })
    }
  }
  const [fromTime, toTime] = [times[0] ?? new Date(0), times.at(-1) ?? new Date(0)]
  return { plan, facts, unknown, uncertain, unproven, receiptsRead, fromTime, toTime }
}

/** Events whose topic no account knows need no payer and no rate. */
async function sortEvents(
  knex: Knex,
  tools: FactTools,
  { seen }: ReadBlocks,
): Promise<Pick<ReadFacts, 'facts' | 'unknown'>> {
  const topics = new Set(seen.flatMap(({ logs }) => logs.events.map(({ topic }) => topic)))
  const known = await findAccounts(knex, [...topics])
  const facts: EventFact[] = []
  const unknown: ReadFacts['unknown'][number][] = []
  for (const transaction of seen) {
    const { header, receipt, logs } = transaction
    const isKnown = logs.events.some(({ topic }) => known.has(topic))
    for (const event of logs.events) {
      if (known.has(event.topic)) continue
      unknown.push({ txHash: receipt.txHash, blockNumber: header.number, timestampSec: header.timestampSec, event })
    }
    if (!isKnown) continue
    const completed = await completeFacts(tools, transaction)
    facts.push(...completed.filter(({ event }) => known.has(event.topic)))
  }
  return { facts, unknown }
}

/** Compares; what differs is compared again a moment later, since the service may have been about to write it. */
async function compareTwice(options: VerifyOptions, tools: FactTools, read: ReadFacts) {
  const { knex, signal, account, againAfterMs = AGAIN_AFTER_MS } = options
  const readMore = async (numbers: readonly number[]) => {
    const found: EventFact[] = []
    const uncertain: number[] = []
    for (const number of numbers) {
      signal?.throwIfAborted()
      const blocks = await readBlocks(tools, { from: number, to: number })
      found.push(...(await sortEvents(knex, tools, blocks)).facts)
      uncertain.push(...blocks.uncertain)
    }
    return { facts: found, uncertain }
  }
  const terms = { knex, chain: tools.chain, tokens: tools.tokens, account, signal, readMore }
  const first = await compareStored(terms, read)
  if (first.differences.length === 0) return first
  await wait(againAfterMs, undefined, { signal })
  const second = await compareStored(terms, read)
  const lasting = new Set(second.differences.map(textOf))
  return { ...second, differences: first.differences.filter((difference) => lasting.has(textOf(difference))) }
}

const textOf = (difference: VerifyDifference) => JSON.stringify(difference)

/** @throws RpcError when the block at which all was computed is no longer on the chain */
async function assertPinned(nodes: ChainNodes, plan: RangePlan): Promise<void> {
  const header = await nodes.onAny((node) => readHeader(nodes, node, plan.pinned.number))
  if (header?.hash !== plan.pinned.hash) throw pinnedChanged(plan)
}

function pinnedChanged({ pinned }: RangePlan): RpcError {
  return new RpcError('INCONSISTENT', `block ${pinned.number} was final and is now another; run it again`)
}
