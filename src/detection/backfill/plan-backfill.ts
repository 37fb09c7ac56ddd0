import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { decodeFeeProxyLog, type RpcLog } from '../../contracts/decode-events.ts'
import { caip2Of } from '../../domain/chain.ts'
import { createNodeLimits } from '../../nodes/node-limits.ts'
import { createRpcClient } from '../../nodes/rpc-client.ts'
import { isTransportFailure, RpcError } from '../../nodes/rpc-error.ts'
import { type ChainReader, createChainReader } from '../read/chain-reader.ts'
import { readContracts } from '../sql/chain-contracts-repository.ts'
import { readSpans } from '../sql/chain-spans-repository.ts'
import { findChain, type StoredChain } from '../sql/chain-state-repository.ts'
import { findAccountsOfTopics } from '../sql/topics-repository.ts'
import { findStart, isStartOpen } from './find-start.ts'

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
  /** HTTP requests. */
  readonly requests: number
  /** Requests a second that the time is computed with: those that the chains file allows, or fewer where the node answers more slowly. */
  readonly requestsPerSecond: number
  readonly seconds: number
}

interface PlanOptions {
  readonly knex: Knex
  readonly config: ChainConfig
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
const CALLS_A_REQUEST = 100

/**
 * Finds out what back-fill of a chain will take. Only reads, with some 40 requests.
 *
 * @throws RpcError where no node answers, or refuses even the logs of one block
 */
export async function planBackfill(options: PlanOptions): Promise<BackfillPlan> {
  const { knex, config, clock, signal } = options
  const client = createRpcClient({
    urls: config.rpcUrls,
    chainId: config.chainId,
    clock,
    limits: createNodeLimits([config]),
  })
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
  const requests = steps + Math.ceil(knownEvents / CALLS_A_REQUEST)
  const measured = sample.requests === 0 ? 0 : sample.requests / sample.seconds
  const requestsPerSecond = Math.min(config.requestsPerSecond ?? Number.POSITIVE_INFINITY, measured)
  return {
    network: config.name,
    from: ranges.length === 0 ? undefined : Math.min(...ranges.map(({ from }) => from)),
    to: ranges.length === 0 ? undefined : Math.max(...ranges.map(({ to }) => to)),
    blocks,
    blocksPerCall: sample.range,
    events,
    knownEvents,
    // Each step asks for the logs of a range and for its last block.
    calls: 2 * steps + knownEvents,
    requests,
    requestsPerSecond,
    seconds: blocks === 0 ? 0 : Math.ceil(requests / requestsPerSecond),
  }
}

/** The blocks that are left to read: those of spans, those below that the configuration wants, and those above that are final by now. */
async function findUnread({ knex, config, signal }: PlanOptions, reader: ChainReader): Promise<Range[]> {
  const chainId = caip2Of(config.chainId)
  const view = await reader.view(0, config.finality.useFinalizedTag, signal)
  const byDepth = Math.max(0, view.head.number - config.finality.depth)
  const final = typeof view.finalized === 'object' ? Math.min(view.finalized.number, view.head.number) : byDepth
  const stored =
    (await findChain(knex, chainId)) ?? notFollowed(config, final, new Date(view.head.timestampSec * 1_000))
  const wanted = isStartOpen(stored, config)
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

/** A chain of which nothing is read. Following would begin at its last final block. */
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
  /** The widest range that was answered. */
  readonly range: number
  /** Blocks whose logs were read. */
  readonly blocks: number
  readonly logs: readonly RpcLog[]
  readonly requests: number
  readonly seconds: number
}

/** Reads the logs of some ranges, evenly spread over the blocks. What is refused is asked again half as wide. */
async function takeSamples(reader: ChainReader, ranges: readonly Range[], signal: AbortSignal): Promise<Sampled> {
  let range = WIDEST_TRIED
  let blocks = 0
  let requests = 0
  let seconds = 0
  const logs: RpcLog[] = []
  for (const place of spread(ranges)) {
    for (;;) {
      const to = Math.min(place.to, place.from + range - 1)
      const startedMs = performance.now()
      const read = await readUnlessRefused(reader, { from: place.from, to }, signal)
      if (read === 'REFUSED') {
        range = Math.max(1, Math.floor((to - place.from + 1) / 2))
        continue
      }
      seconds += (performance.now() - startedMs) / 1_000
      requests++
      blocks += to - place.from + 1
      logs.push(...read)
      break
    }
  }
  return { range, blocks, logs, requests, seconds }
}

/** Where to take samples: the beginning of each of eight equal parts. */
function* spread(ranges: readonly Range[]): Generator<Range> {
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

/** @throws RpcError for one block, and when no node answers */
async function readUnlessRefused(reader: ChainReader, { from, to }: Range, signal: AbortSignal) {
  try {
    return (await reader.logsInRange({ from, to }, signal)).logs
  } catch (error) {
    const isAnswer = error instanceof RpcError && (error.kind === 'TIMEOUT' || !isTransportFailure(error))
    if (from < to && isAnswer) return 'REFUSED'
    throw error
  }
}

async function countKnown(knex: Knex, logs: readonly RpcLog[]): Promise<number> {
  const topics = logs.flatMap((log) => decodeFeeProxyLog(log)?.topic ?? [])
  const accounts = await findAccountsOfTopics(knex, [...new Set(topics)])
  return topics.filter((topic) => accounts.has(topic)).length
}
