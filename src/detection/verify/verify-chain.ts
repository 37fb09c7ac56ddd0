import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import type { Account } from '../../domain/account.ts'
import type { Address } from '../../domain/address.ts'
import { type BlockRun, caip2Of, describeRun, withBlocks } from '../../domain/chain.ts'
import { type OpenChainOptions, openChain } from '../chain/open-chain.ts'
import { findCreatedProxies } from '../find/find-payments.ts'
import type { CreatedProxy } from '../match/detected.ts'
import { readContracts, readSpans } from '../sql/chain-spans-repository.ts'
import { findChain } from '../sql/chain-state-repository.ts'
import { createDetectionRepository } from '../sql/detection-repository.ts'
import {
  deleteRequestProxies,
  findRequestProxiesBetween,
  storeRequestProxies,
} from '../sql/request-proxies-repository.ts'
import { finalisedBlockOf } from '../write/block-rules.ts'
import { openNodes, readHeader } from './chain-nodes.ts'
import { compareSection, type Outcome } from './compare-section.ts'
import type { BlockTools } from './read-blocks.ts'
import { createHistory } from './read-history.ts'
import {
  type ChainPosition,
  pinnedChanged,
  planRange,
  type RangePlan,
  readSections,
  type Section,
  type SectionSize,
} from './read-sections.ts'
import {
  createTotals,
  type Unproven,
  type UnprovenBlock,
  type VerifyDifference,
  type VerifyProgress,
  type VerifyReport,
} from './verify-report.ts'

export interface VerifyOptions extends Pick<OpenChainOptions, 'knex' | 'tokens' | 'clock' | 'logger' | 'limits'> {
  readonly chain: ChainConfig
  /** The first block. Default: the first that was read. */
  readonly from?: number | undefined
  /** The last block. Default: the last final one. What is not final or not read yet is left out, and the report says so. */
  readonly to?: number | undefined
  /** Who repairs what differs, for the audit log: `user@host`. Absent: nothing is changed. */
  readonly repairer?: string | undefined
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

/**
 * Proves the blocks of a chain by their receipts, judges the events of requests in them by the rules of detection, and compares payments, refunds,
 * unmatched events and requests with what is stored. Where it repairs, writes what is proven and differs. The chain's and an account's writers wait while a
 * batch of requests is compared, for some milliseconds.
 *
 * @throws RpcError when the nodes do not answer, or contradict themselves; RangeError when there is no block to compare; the signal's reason
 * where it fires before the first block is read
 */
export async function verifyChain(options: VerifyOptions): Promise<VerifyReport> {
  const work = await openWork(options)
  const isStopped = await compareAll(work).then(
    () => false,
    (error: unknown) => {
      if (!options.signal?.aborted) throw error
      return true
    },
  )
  return reportOf(work, isStopped)
}

/** A running verification. */
type Work = Awaited<ReturnType<typeof openWork>>

async function openWork(options: VerifyOptions) {
  const { knex, chain, clock, signal, repairer, againAfterMs = AGAIN_AFTER_MS } = options
  const chainId = caip2Of(chain.chainId)
  const position = await readPosition(knex, chain)
  const nodes = openNodes(chain, options, signal)
  const asked = { from: options.from ?? 0, to: options.to ?? Number.MAX_SAFE_INTEGER }
  const plan = await planRange(chain, nodes, position, asked)
  const repairs = repairer !== undefined
  const proxies = knowProxies(knex, chainId, repairs)
  const opened = openChain({ ...options, config: chain, repository: proxies.repository })
  const { factories } = opened.tools.chain.followed
  const tools: BlockTools = { nodes, startOf: position.startOf, factories, isProofNeeded: repairs }
  const history = createHistory({ tools, pinned: plan.pinned.number, signal })
  const { account } = options
  const terms = { knex, chain: opened, account, repairer, clock, signal, againAfterMs, history }
  return { options, tools, plan, terms, proxies, found: createFindings(repairs), blocksRead: 0 }
}

async function readPosition(knex: Knex, chain: ChainConfig): Promise<ChainPosition> {
  const chainId = caip2Of(chain.chainId)
  const stored = await findChain(knex, chainId)
  if (stored === undefined) throw new RangeError(`${chain.name} was never followed, so there is nothing to verify`)
  const read = await readContracts(knex, chainId)
  const spans = await readSpans(knex, chainId)
  return {
    finalBlock: finalisedBlockOf(stored),
    startOf: new Map(
      followedContracts(chain).map(({ address, fromBlock }) => [address, read.get(address) ?? fromBlock]),
    ),
    unread: spans.map(({ next, until }) => ({ from: next, to: until })),
  }
}

async function compareAll(work: Work): Promise<void> {
  const { options, tools, plan, terms, proxies, found } = work
  const { signal, section: size, onProgress } = options
  const blocksTotal = blocksIn(plan)
  let events = 0
  const onPortion = (blocks: number, eventsOfThese: number) => {
    work.blocksRead += blocks
    events += eventsOfThese
    onProgress?.({ blocksDone: work.blocksRead, blocksTotal, events, differences: found.differences().length })
  }
  for await (const section of readSections(tools, plan, { size, signal, onPortion })) {
    await proxies.note(section.span, findCreatedProxies(section.logs, terms.chain.tools.chain.followed))
    found.add(section, await compareSection(terms, section))
  }
  const { number, hash } = plan.pinned
  const last = await tools.nodes.onAny((node) => readHeader(tools.nodes, node, number))
  if (last?.hash !== hash) throw pinnedChanged(plan)
}

function blocksIn({ spans }: RangePlan): number {
  return spans.reduce((sum, { from, to }) => sum + to - from + 1, 0)
}

function reportOf({ options, plan, found, blocksRead }: Work, isStopped: boolean): VerifyReport {
  const [first, last] = [plan.spans[0], plan.spans.at(-1)]
  const from = first?.from ?? 0
  const { comparedTo = from - 1, ...findings } = found.report()
  return {
    network: options.chain.name,
    block: { number: plan.pinned.number, hash: plan.pinned.hash },
    from,
    to: isStopped ? comparedTo : (last?.to ?? 0),
    stopped: isStopped ? { blocksTotal: blocksIn(plan), blocksRead } : undefined,
    notes: plan.notes,
    ...findings,
  }
}

/** Makes what gathers the findings of the sections. @param repairs - whether differences are repaired, so that later sections cannot see them */
function createFindings(repairs: boolean) {
  /** By request, so that a later section which compares the request again replaces them; those of no request by their own text. */
  const byRequest = new Map<string, VerifyDifference[]>()
  const requests = new Set<string>()
  const counts = { blocks: 0, receiptsRead: 0, unmatched: 0 }
  const unproven = createUnprovenList()
  const totals = createTotals()
  let comparedTo: number | undefined

  /** Each once: the same row is seen with each request that it has a part in. */
  const differences = (): VerifyDifference[] => [
    ...new Map([...byRequest.values()].flat().map((each) => [JSON.stringify(each), each])).values(),
  ]
  return {
    differences,
    add({ span: { from, to }, receiptsRead, ...section }: Section, outcome: Outcome): void {
      const touched = [...outcome.touched].flatMap(([{ name }, ids]) => [...ids].map((id) => requestKey(name, id)))
      for (const key of touched) {
        if (!repairs) byRequest.delete(key)
        requests.add(key)
      }
      for (const difference of outcome.differences) {
        const key = keyOf(difference)
        byRequest.set(key, [...(byRequest.get(key) ?? []), difference])
      }
      unproven.add(section.unproven, outcome.unproven)
      totals.add(outcome.counted)
      counts.blocks += to - from + 1
      counts.receiptsRead += receiptsRead
      counts.unmatched += outcome.unmatched
      comparedTo = to
    },
    /** As parts of a report. `comparedTo` is the last block that was compared; undefined: none. */
    report() {
      const listed = totals.list()
      const sumOf = (field: 'payments' | 'refunds') => listed.reduce((sum, total) => sum + total[field], 0)
      return {
        comparedTo,
        differences: differences(),
        unproven: unproven.list(),
        totals: listed,
        counts: { ...counts, payments: sumOf('payments'), refunds: sumOf('refunds'), requests: requests.size },
      }
    },
  }
}

function keyOf(difference: VerifyDifference): string {
  const { account = '', requestId } = difference
  return requestId === undefined ? JSON.stringify(difference) : requestKey(account, requestId)
}

function requestKey(account: string, requestId: string): string {
  return `${account} ${requestId}`
}

/**
 * Makes what knows SingleRequestProxies as the blocks that were read say, in place of what is stored of these blocks.
 *
 * @param chainId - CAIP-2
 * @param repairs - whether the proxies of the blocks are stored
 */
function knowProxies(knex: Knex, chainId: string, repairs: boolean) {
  const repository = createDetectionRepository(knex)
  const found = new Set<Address>()
  const invented = new Set<Address>()
  return {
    repository: {
      ...repository,
      async requestProxiesAmong(id: string, addresses: readonly Address[]): Promise<Set<Address>> {
        const stored = await repository.requestProxiesAmong(id, addresses)
        return new Set(addresses.filter((each) => found.has(each) || (stored.has(each) && !invented.has(each))))
      },
    },
    /** Takes the proxies that some blocks created, and stores them where it repairs. */
    async note(span: BlockRun, created: readonly CreatedProxy[]): Promise<void> {
      const stored = await findRequestProxiesBetween(knex, chainId, span)
      const addresses = new Set(created.map(({ address }) => address))
      const wrong = stored.filter((address) => !addresses.has(address))
      for (const address of wrong) invented.add(address)
      for (const address of addresses) found.add(address)
      if (!repairs) return
      await deleteRequestProxies(knex, chainId, wrong)
      await storeRequestProxies(knex, chainId, created)
    },
  }
}

/**
 * Makes the list of what could not be proved. Consecutive blocks with the same reason are one entry: of a chain with one node and unknown hashes no
 * block can be proved at all.
 */
export function createUnprovenList() {
  const byReason = new Map<string, Omit<Unproven, 'where'> & { readonly runs: readonly BlockRun[] }>()
  /** Each once. */
  const events = new Map<string, Unproven>()
  return {
    /** @param blocks - above those of the list, lowest first */
    add(blocks: readonly UnprovenBlock[], more: readonly Unproven[]): void {
      for (const [key, some] of Map.groupBy(blocks, ({ why, isInfo }) => `${isInfo === true} ${why}`)) {
        const [{ why, isInfo }] = some as [UnprovenBlock]
        // Once each: two URLs of one host give the same reason twice.
        const numbers = new Set(some.map(({ block }) => block))
        byReason.set(key, { why, isInfo, runs: withBlocks(byReason.get(key)?.runs ?? [], [...numbers]) })
      }
      for (const event of more) events.set(JSON.stringify(event), event)
    },
    /** Blocks first, lowest first. */
    list(): Unproven[] {
      const runs = [...byReason.values()].flatMap(({ runs: some, ...reason }) => some.map((run) => ({ run, reason })))
      const sorted = runs.toSorted((a, b) => a.run.from - b.run.from)
      return [...sorted.map(({ run, reason }) => ({ where: describeRun(run), ...reason })), ...events.values()]
    },
  }
}
