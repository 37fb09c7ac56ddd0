import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { decodeFeeProxyLog, type RpcLog } from '../../contracts/decode-events.ts'
import { caip2Of } from '../../domain/chain.ts'
import { rangeFromStored } from '../../nodes/learned-limits.ts'
import type { NodeLimits } from '../../nodes/node-limits.ts'
import { createRpcClient } from '../../nodes/rpc-client.ts'
import { isTransportFailure, RpcError } from '../../nodes/rpc-error.ts'
import type { UrlLimits } from '../../nodes/url-limits.ts'
import { startLogRange, widthOf } from '../follow/log-range.ts'
import { type ChainReader, createChainReader } from '../read/chain-reader.ts'
import { pollIntervalOf } from '../run/step-pace.ts'
import { readContracts } from '../sql/chain-contracts-repository.ts'
import { readSpans } from '../sql/chain-spans-repository.ts'
import { findChain, type StoredChain } from '../sql/chain-state-repository.ts'
import { findAccountsOfTopics } from '../sql/topics-repository.ts'
import { findStart, isStartOutdated } from './find-start.ts'

/** What reading a chain's old blocks will take. All but blocks are estimates from a few ranges that were read. */
export interface BackfillPlan {
  readonly network: string
  /** The first and the last block to read; absent where none is left. */
  readonly from?: number | undefined
  readonly to?: number | undefined
  readonly blocks: number
  /** The widest range of logs that the nodes answered, at most that which was tried. */
  readonly blocksPerCall: number
  /** Payment events in these blocks. */
  readonly events: number
  /** Of those, events of references that an account knows: each costs a receipt. */
  readonly knownEvents: number
  /** JSON-RPC calls. Traces and prices, which few payments need, come on top. */
  readonly calls: number
  /** HTTP requests, in batches as large as the node takes. */
  readonly requests: number
  /** Requests a second that the time is computed with: those of the chains file, or learned ones, or fewer where the node answers more slowly. */
  readonly requestsPerSecond: number
  /** What following is expected to leave of the daily budget. Absent: the chains file sets none. */
  readonly requestsPerDay?: number | undefined
  /** Which of them decides the time: the rate or the daily budget. */
  readonly boundBy: 'RATE' | 'BUDGET'
  /** Absent: following uses the whole daily budget, so that the blocks are never read. */
  readonly seconds?: number | undefined
}

interface PlanOptions {
  readonly knex: Knex
  readonly config: ChainConfig
  /** What is known of the nodes' limits: declared ones, and learned ones that were stored. */
  readonly limits: NodeLimits
  readonly clock: () => Date
  readonly signal: AbortSignal
}

/** Blocks, both ends included. */
interface Range {
  readonly from: number
  readonly to: number
}

const SAMPLES = 8
const WIDEST_TRIED = 10_000
/** Receipts in one request, where the node takes as many. */
const CALLS_A_REQUEST = 100
const SECONDS_A_DAY = 86_400
/** The service keeps this much more of a daily budget for following than following was measured to use. */
const FOLLOWING_MARGIN = 1.2

/**
 * Finds out what back-fill of a chain will take. Only reads, with some 40 requests.
 *
 * @throws RpcError where no node answers, or refuses even the logs of one block
 */
export async function planBackfill(options: PlanOptions): Promise<BackfillPlan> {
  const { knex, config, limits, clock, signal } = options
  const client = createRpcClient({ urls: config.rpcUrls, chainId: config.chainId, clock, limits })
  const reader = createChainReader(
    client,
    followedContracts(config).map(({ address }) => address),
  )
  const ranges = await findUnread(options, reader)
  const blocks = ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0)
  const sample = await takeSamples(reader, ranges, signal)
  const density = sample.blocks === 0 ? 0 : 1 / sample.blocks
  const events = Math.round(sample.logs.length * density * blocks)
  const known = await countKnown(knex, sample.logs)
  const knownEvents = Math.round(known * density * blocks)
  const steps = Math.ceil(blocks / sample.range)
  const limitsOfNode = client.limitsOf(sample.node)
  const batch = Math.min(CALLS_A_REQUEST, limitsOfNode.batchSize())
  const work = {
    // Each step asks for the logs of a range and for its last block.
    calls: 2 * steps + knownEvents,
    requests: steps * (batch > 1 ? 1 : 2) + Math.ceil(knownEvents / batch),
  }
  const measured = sample.requests === 0 ? 0 : sample.requests / sample.seconds
  const requestsPerSecond = Math.min(limitsOfNode.rate()?.perSecond ?? Number.POSITIVE_INFINITY, measured)
  return {
    network: config.name,
    from: ranges.length === 0 ? undefined : Math.min(...ranges.map(({ from }) => from)),
    to: ranges.length === 0 ? undefined : Math.max(...ranges.map(({ to }) => to)),
    blocks,
    blocksPerCall: sample.range,
    events,
    knownEvents,
    ...work,
    requestsPerSecond,
    ...(blocks === 0 ? NO_TIME : estimateTime(work, { config, requestsPerSecond, limits: limitsOfNode })),
  }
}

const NO_TIME = { boundBy: 'RATE', seconds: 0 } as const

/** Estimates how long reading takes, by the rate and by what following leaves of the daily budget. */
export function estimateTime(
  { calls, requests }: { readonly calls: number; readonly requests: number },
  {
    config,
    requestsPerSecond,
    limits,
  }: {
    readonly config: Pick<ChainConfig, 'blockTimeSeconds'>
    readonly requestsPerSecond: number
    readonly limits: Pick<UrlLimits, 'declared' | 'rate' | 'batchSize'>
  },
): Pick<BackfillPlan, 'requestsPerDay' | 'boundBy' | 'seconds'> {
  const countsCalls = limits.rate()?.unit === 'CALLS'
  const work = countsCalls ? calls : requests
  const byRate = Math.ceil(work / requestsPerSecond)
  const perDay = limits.declared.requestsPerDay
  if (perDay === undefined) return { boundBy: 'RATE', seconds: byRate }
  const kept = FOLLOWING_MARGIN * followingPerDay(config, countsCalls || limits.batchSize() === 1)
  const left = Math.max(0, Math.floor(perDay - kept))
  if (left === 0) return { requestsPerDay: 0, boundBy: 'BUDGET' }
  const byBudget = work <= left ? 0 : Math.ceil((work / left) * SECONDS_A_DAY)
  return { requestsPerDay: left, boundBy: byBudget > byRate ? 'BUDGET' : 'RATE', seconds: Math.max(byRate, byBudget) }
}

/** Requests, or calls, that following makes a day: two calls for each look at the head, and two for each new block. */
function followingPerDay({ blockTimeSeconds }: Pick<ChainConfig, 'blockTimeSeconds'>, countsCalls: boolean): number {
  const looks = (SECONDS_A_DAY * 1_000) / pollIntervalOf(blockTimeSeconds)
  return looks * (countsCalls ? 2 : 1) + (2 * SECONDS_A_DAY) / blockTimeSeconds
}

/** The blocks that are left to read: stored spans, blocks below that the configuration asks for, and blocks above that are final by now. */
async function findUnread({ knex, config, signal }: PlanOptions, reader: ChainReader): Promise<Range[]> {
  const chainId = caip2Of(config.chainId)
  const view = await reader.view(0, config.finality.useFinalizedTag, signal)
  const byDepth = Math.max(0, view.head.number - config.finality.depth)
  const final = typeof view.finalized === 'object' ? Math.min(view.finalized.number, view.head.number) : byDepth
  const stored =
    (await findChain(knex, chainId)) ?? notFollowed(config, final, new Date(view.head.timestampSec * 1_000))
  const wanted = isStartOutdated(stored, config)
    ? (await findStart({ knex, config, reader }, stored, signal)).block
    : (stored.startBlock ?? 0)
  const lowest = Math.min(...followedContracts(config).map(({ fromBlock }) => fromBlock))
  const from = Math.max(1, wanted, lowest)
  const readFrom = Math.min(
    stored.scannedBlock + 1,
    ...(await readContracts(knex, chainId)).map((each) => each.fromBlock),
  )
  const spans = (await readSpans(knex, chainId)).map(({ next, until }) => ({ from: Math.max(next, from), to: until }))
  const ranges = [{ from, to: readFrom - 1 }, ...spans, { from: stored.scannedBlock + 1, to: final }]
  return ranges.filter((range) => range.from <= range.to)
}

/** Stands for a chain of which nothing is read yet: following would begin at its last final block. */
function notFollowed({ name, chainId }: ChainConfig, final: number, now: Date): StoredChain {
  return {
    chainId: caip2Of(chainId),
    network: name,
    genesisHash: '0x',
    scannedBlock: final,
    scannedHash: '0x',
    scannedTime: now,
    headBlock: final,
    finalBlock: final,
    hasFinalizedTag: false,
  }
}

interface Sampled {
  /** The node that answered, by its place among the URLs. */
  readonly node: number
  /** The widest range that it answered. */
  readonly range: number
  /** Blocks whose logs were read. */
  readonly blocks: number
  readonly logs: readonly RpcLog[]
  readonly requests: number
  readonly seconds: number
}

/** Reads the logs of some ranges, evenly spread over the blocks. What is refused is asked again half as wide. */
async function takeSamples(reader: ChainReader, ranges: readonly Range[], signal: AbortSignal): Promise<Sampled> {
  const widths = new Map<number, number>()
  const blocksAt = (node: number) => widths.get(node) ?? firstWidth(reader.limitsOf(node))
  let [node, blocks, requests, seconds] = [0, 0, 0, 0]
  const logs: RpcLog[] = []
  for (const place of samplePlaces(ranges)) {
    for (;;) {
      const startedMs = performance.now()
      const read = await reader.logsFrom({ from: place.from, until: place.to, blocksAt }, signal)
      node = read.node
      const asked = read.to - place.from + 1
      if (read.logs instanceof RpcError) {
        if (asked === 1 || !mayTakeFewer(read.logs)) throw read.logs
        widths.set(node, Math.max(1, Math.floor(asked / 2)))
        continue
      }
      seconds += (performance.now() - startedMs) / 1_000
      requests++
      blocks += asked
      logs.push(...read.logs)
      break
    }
  }
  return { node, range: blocksAt(node), blocks, logs, requests, seconds }
}

/** The width that the service has learned, else that of the chains file, else the widest that is tried. */
function firstWidth(limits: UrlLimits): number {
  const { maxLogRange = WIDEST_TRIED } = limits.declared
  const kept = limits.storedRange()
  return kept?.blocks === undefined ? maxLogRange : widthOf(rangeFromStored(startLogRange(maxLogRange), kept))
}

/** Whether the node may answer for fewer blocks: it did not fail as a whole. */
function mayTakeFewer(error: RpcError): boolean {
  return error.kind === 'TIMEOUT' || !isTransportFailure(error)
}

/** Where to take samples: the beginning of each of eight equal parts of the blocks. */
function* samplePlaces(ranges: readonly Range[]): Generator<Range> {
  const total = ranges.reduce((sum, { from, to }) => sum + to - from + 1, 0)
  const count = Math.min(SAMPLES, total)
  for (let nth = 0; nth < count; nth++) {
    let skip = Math.floor((nth * total) / count)
    for (const { from, to } of ranges) {
      const length = to - from + 1
      if (skip < length) {
        yield { from: from + skip, to }
        break
      }
      skip -= length
    }
  }
}

async function countKnown(knex: Knex, logs: readonly RpcLog[]): Promise<number> {
  const topics = logs.flatMap((log) => decodeFeeProxyLog(log)?.topic ?? [])
  const accounts = await findAccountsOfTopics(knex, [...new Set(topics)])
  return topics.filter((topic) => accounts.has(topic)).length
}
