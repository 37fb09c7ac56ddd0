import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import type { Meter } from '../../domain/meter.ts'
import type { ChainReading, NodePeer } from '../open-chain.ts'
import type { ChainReader } from '../read/chain-reader.ts'
import type { StoredBlock } from '../sql/chain-state-repository.ts'
import { type BloomCheck, createBloomCheck } from './bloom-check.ts'
import { compareFollowed } from './compare-followed.ts'
import { compareHeads } from './compare-heads.ts'
import type { ComparedNodes } from './compared-nodes.ts'
import { createFollowedBlocks } from './followed-blocks.ts'
import { guardReader } from './guarded-reader.ts'
import { createReadingLedger } from './reading-ledger.ts'
import { type RepairBlocks, rereadPending } from './reread-pending.ts'
import { createSampleTurns } from './sample-turns.ts'
import type { ReadingLane } from './sql/node-readings-repository.ts'
import { createSuspects, type SuspectStatus } from './suspects.ts'

/** Finds nodes of a chain that answer wrongly, leaves them alone, and has the blocks that they gave read again. */
export interface NodeTrust {
  /** Wraps the reader of a lane so that its logs are checked. */
  guard(reading: ChainReading, lane: ReadingLane): ChainReader
  /** Does what is due beside following: compares heads and final logs, checks suspects again, reads blocks again. @param final - the last final block */
  tick(final: StoredBlock, signal?: AbortSignal): Promise<void>
  suspects(): SuspectStatus[]
}

export interface NodeTrustOptions {
  readonly knex: Knex
  readonly config: ChainConfig
  /** One for each URL, in their order. */
  readonly peers: readonly NodePeer[]
  /** Readings that must not use a suspect. */
  readonly readings: readonly ChainReading[]
  readonly logger: Logger
  readonly clock: () => Date
  readonly meter: Meter
  readonly repair: RepairBlocks
  /** Milliseconds between two comparisons of heads; default 60,000. */
  readonly checkNodesEveryMs?: number | undefined
  /** Milliseconds until a suspect is checked for the first time; default 30,000. */
  readonly suspectMs?: number | undefined
}

interface Trust extends NodeTrustOptions, ComparedNodes {
  readonly network: string
  /** CAIP-2. */
  readonly chainId: string
  readonly sampleLogs: number
  readonly blooms: BloomCheck
  readonly compared: Set<number>
  checkedAtMs: number
  areLeftoversQueued: boolean
  rereadAfterMs: number
}

const DEFAULT_SAMPLE = 50
const CHECK_EVERY_MS = 60_000
const REREAD_AGAIN_MS = 30_000

/** Makes the trust in the nodes of one chain. */
export function createNodeTrust(options: NodeTrustOptions): NodeTrust {
  const trust = assemble(options)
  return {
    guard: (reading, lane) => guardReader(trust, reading, lane),
    tick: (final, signal) => tick(trust, final, signal),
    suspects: () => trust.suspected.list(),
  }
}

function assemble(options: NodeTrustOptions): Trust {
  const { knex, config, peers, readings, clock } = options
  const chainId = caip2Of(config.chainId)
  const addresses = followedContracts(config).map(({ address }) => address)
  const hosts = peers.map(({ host }) => host)
  const sampleLogs = config.sampleLogs ?? DEFAULT_SAMPLE
  const suspected = createSuspects({
    ...options,
    network: config.name,
    hosts,
    firstWaitMs: options.suspectMs,
    leave(index, untilMs) {
      for (const { client } of readings) client.avoid(index, untilMs)
    },
  })
  return {
    ...options,
    network: config.name,
    chainId,
    addresses,
    sampleLogs,
    suspected,
    ledger: createReadingLedger({ knex, chainId, hosts }),
    samples: createSampleTurns(sampleLogs),
    followed: createFollowedBlocks(),
    blooms: createBloomCheck(addresses),
    compared: new Set(),
    checkedAtMs: clock().getTime(),
    areLeftoversQueued: false,
    rereadAfterMs: 0,
  }
}

async function tick(trust: Trust, final: StoredBlock, signal: AbortSignal | undefined): Promise<void> {
  const { config, clock, checkNodesEveryMs = CHECK_EVERY_MS } = trust
  await queueLeftovers(trust)
  await compareFollowed(trust, final, signal)
  const nowMs = clock().getTime()
  if (nowMs - trust.checkedAtMs >= checkNodesEveryMs) {
    trust.checkedAtMs = nowMs
    await compareHeads(trust, { ...config, clock }, final, signal)
  }
  await trust.suspected.tryAgain()
  if (clock().getTime() < trust.rereadAfterMs) return
  const isDone = await rereadPending(trust, final, signal)
  if (!isDone) trust.rereadAfterMs = clock().getTime() + REREAD_AGAIN_MS
}

/** Has the blocks read again that an earlier process followed last: it may have been killed before it compared them. */
async function queueLeftovers(trust: Trust): Promise<void> {
  const { ledger, peers, sampleLogs } = trust
  if (trust.areLeftoversQueued || sampleLogs === 0 || peers.length === 1) return
  await ledger.queueLeftovers()
  trust.areLeftoversQueued = true
}
