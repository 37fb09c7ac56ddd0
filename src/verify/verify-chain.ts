import { setTimeout as wait } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { ChainConfig } from '../chains/chains-file.ts'
import type { TokenDirectory } from '../chains/token-directory.ts'
import type { Account } from '../domain/account.ts'
import { caip2Of } from '../domain/chain.ts'
import type { Logger } from '../domain/logger.ts'
import type { NodeLimits } from '../nodes/node-limits.ts'
import { compareStatistics, compareStored, type Outcome } from './compare/compare-stored.ts'
import { differencesIn, type Findings, NO_FINDINGS, withSection } from './compare/findings.ts'
import { listTotals } from './compare/totals.ts'
import { listUnproven } from './compare/unproven-list.ts'
import { type ChainNodes, openNodes } from './read/chain-nodes.ts'
import { inParallel } from './read/in-parallel.ts'
import { planRange, type RangePlan } from './read/plan-range.ts'
import { readEvents, readSpanHeaders } from './read/read-blocks.ts'
import { readHeader } from './read/read-headers.ts'
import { pinnedChanged, readSections, type Section, type SectionSize, sortEvents } from './read-sections.ts'
import type { EventFact, FactTools } from './rules/chain-facts.ts'
import { knowContracts } from './rules/known-contracts.ts'
import { readPosition } from './sql/chain-position.ts'
import type { VerifyDifference, VerifyProgress, VerifyReport } from './verify-report.ts'

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
  /** What is known of the nodes' limits; default nothing. */
  readonly limits?: NodeLimits | undefined
  /** Default: all accounts. */
  readonly account?: Account | undefined
  /** When it fires, the report tells what was found until then. */
  readonly signal?: AbortSignal | undefined
  /** Called each time some blocks were read. */
  readonly onProgress?: ((progress: VerifyProgress) => void) | undefined
  /** Milliseconds until a difference is compared again, since the running service may just have changed the row; default 1,000. */
  readonly againAfterMs?: number | undefined
  /** How much is read before it is compared; for tests. */
  readonly section?: SectionSize | undefined
}

const AGAIN_AFTER_MS = 1_000
const BLOCKS_AT_ONCE = 8

/**
 * Computes the payments, refunds and unmatched events of some blocks from their receipts, and the settlement of each request that these
 * belong to, and compares them with what is stored. Writes nothing. It shares no rule with detection, so an error in one of them shows.
 *
 * @throws RpcError when the nodes do not answer, or contradict themselves; RangeError when there is no block to compare; the signal's reason
 * where it fires before the first block is read
 */
export async function verifyChain(options: VerifyOptions): Promise<VerifyReport> {
  const { knex, chain, tokens, clock, signal } = options
  const chainId = caip2Of(chain.chainId)
  const position = await readPosition(knex, chainId)
  if (position === undefined) throw new RangeError(`${chain.name} was never followed, so there is nothing to verify`)
  const nodes = openNodes(chain, { clock, limits: options.limits, signal })
  const asked = { from: options.from ?? 0, to: options.to ?? Number.MAX_SAFE_INTEGER }
  const plan = await planRange(chain, nodes, position, asked)
  const contracts = knowContracts(chain, position.fromBlocks, position.proxies)
  const work: Work = { options, tools: { chain, tokens, nodes, contracts }, plan, found: NO_FINDINGS, blocksRead: 0 }
  const isStopped = await compareAll(work).then(
    () => false,
    (error: unknown) => {
      if (!signal?.aborted) throw error
      return true
    },
  )
  return reportOf(work, isStopped)
}

/** A running verification. */
interface Work {
  readonly options: VerifyOptions
  readonly tools: FactTools
  readonly plan: RangePlan
  found: Findings
  blocksRead: number
}

async function compareAll(work: Work): Promise<void> {
  const { options, tools, plan } = work
  const { knex, signal, section: size, onProgress } = options
  const blocksTotal = blocksIn(plan)
  let events = 0
  const onPortion = (blocks: number, eventsOfThese: number) => {
    work.blocksRead += blocks
    events += eventsOfThese
    onProgress?.({ blocksDone: work.blocksRead, blocksTotal, events, differences: differencesIn(work.found).length })
  }
  for await (const section of readSections(tools, plan, { knex, size, signal, onPortion })) {
    const outcome = await compareTwice(work, section)
    work.found = withSection(work.found, section, outcome)
  }
  await assertPinned(tools.nodes, plan)
  for (const account of work.found.accounts.values()) {
    const statistics = await compareStatistics({ knex, signal }, account)
    work.found = { ...work.found, statistics: [...work.found.statistics, ...statistics] }
  }
}

function blocksIn({ spans }: RangePlan): number {
  return spans.reduce((sum, { from, to }) => sum + to - from + 1, 0)
}

function reportOf({ options, plan, found, blocksRead }: Work, isStopped: boolean): VerifyReport {
  const [first, last] = [plan.spans[0], plan.spans.at(-1)]
  const from = first?.from ?? 0
  const totals = listTotals(found.totals)
  const sumOf = (field: 'payments' | 'refunds') => totals.reduce((sum, total) => sum + total[field], 0)
  return {
    network: options.chain.name,
    block: { number: plan.pinned.number, hash: plan.pinned.hash },
    from,
    to: isStopped ? (found.comparedTo ?? from - 1) : (last?.to ?? 0),
    stopped: isStopped ? { blocksTotal: blocksIn(plan), blocksRead } : undefined,
    notes: plan.notes,
    differences: differencesIn(found),
    unproven: listUnproven(found.unproven),
    totals,
    counts: {
      ...found.counts,
      payments: sumOf('payments'),
      refunds: sumOf('refunds'),
      requests: found.requests.size,
    },
  }
}

/** Compares a section; what differs is compared again a moment later, since the service may have been about to write it. */
async function compareTwice({ options, tools, plan, found }: Work, section: Section): Promise<Outcome> {
  const { knex, signal, account, againAfterMs = AGAIN_AFTER_MS } = options
  const readMore = async (numbers: readonly number[]) => {
    const read = await inParallel(numbers, BLOCKS_AT_ONCE, async (number) => {
      signal?.throwIfAborted()
      const blocks = await readEvents(tools, await readSpanHeaders(tools.nodes, { from: number, to: number }))
      const { facts } = await sortEvents(knex, tools, blocks)
      return { facts, uncertain: blocks.uncertain }
    })
    const facts: EventFact[] = read.flatMap((each) => each.facts)
    return { facts, uncertain: read.flatMap(({ uncertain }) => uncertain) }
  }
  const { chain, tokens } = tools
  const terms = { knex, chain, tokens, pinned: plan.pinned.number, account, signal, differed: found.differed, readMore }
  const first = await compareStored(terms, section)
  if (first.differences.length === 0) return first
  await wait(againAfterMs, undefined, { signal })
  const second = await compareStored(terms, section)
  const lasting = new Set(second.differences.map(textOf))
  return { ...second, differences: first.differences.filter((difference) => lasting.has(textOf(difference))) }
}

const textOf = (difference: VerifyDifference) => JSON.stringify(difference)

/** @throws RpcError when the pinned block is no longer on the chain */
async function assertPinned(nodes: ChainNodes, plan: RangePlan): Promise<void> {
  const header = await nodes.onAny((node) => readHeader(nodes, node, plan.pinned.number))
  if (header?.hash !== plan.pinned.hash) throw pinnedChanged(plan)
}
