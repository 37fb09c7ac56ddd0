import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { ChainConfig } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import { type Meter, silentMeter } from '../../domain/meter.ts'
import { inLane } from '../../nodes/lanes.ts'
import type { NodeLimits } from '../../nodes/node-limits.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import {
  acquireLease,
  CHAIN_LEASE_MS,
  isLeaseFree,
  type Lease,
  LeaseLostError,
  releaseLease,
  renewLease,
} from '../../store/leases-repository.ts'
import { type Backfill, createBackfill } from '../backfill/backfill.ts'
import type { BackfillProgress } from '../backfill/backfill-progress.ts'
import type { Findings } from '../match/detected.ts'
import { type OpenChain, type OpenChainOptions, openChain } from '../open-chain.ts'
import type { ReplayQueue } from '../repair/replay-queue.ts'
import { rereadRange } from '../repair/reread-range.ts'
import { type ChainReporter, createChainReporter, type FollowerFacts } from '../report/chain-reporter.ts'
import { findChain, type StoredChain } from '../sql/chain-state-repository.ts'
import { createNodeTrust, type NodeTrust } from '../trust/node-trust.ts'
import type { SuspectStatus } from '../trust/suspects.ts'
import { CheckpointMovedError } from '../write/payment-writer.ts'
import { type BlockFollower, createBlockFollower, type StepOutcome } from './block-follower.ts'
import { type ChainHealth, createChainHealth, type HealthStatus } from './chain-health.ts'
import { keepLease } from './keep-lease.ts'
import { type Pace, paceAfter, paceAfterError, pollIntervalOf } from './step-pace.ts'

/** The status of a chain, as far as this process knows. Block numbers are absent until it has looked at the chain. */
export interface ChainStatus extends HealthStatus {
  readonly network: string
  readonly scanned?: number | undefined
  readonly head?: number | undefined
  readonly final?: number | undefined
  /** Whether this process is the one that follows the chain. */
  readonly following: boolean
  /** Old blocks that this process reads beside following; absent where none are left, or another process reads them. */
  readonly backfill?: BackfillProgress | undefined
  /** Nodes that were found to answer wrongly and are asked last; empty in a process that does not follow the chain. */
  readonly suspects: readonly SuspectStatus[]
}

/** Another process holds the lease on the chain. */
export class ChainFollowedError extends Error {
  override readonly name = 'ChainFollowedError'

  constructor(network: string) {
    super(`another process follows ${network}`)
  }
}

/** Follows one chain while this process holds its lease; watches what another process writes otherwise. */
export interface ChainFollower {
  readonly network: string
  /** CAIP-2. */
  readonly chainId: string
  readonly config: ChainConfig
  readonly chain: OpenChain
  status(): ChainStatus
  /** Steps until there is nothing new and nothing left to back-fill. @throws what a step throws; ChainFollowedError */
  scan(): Promise<void>
  /** Removes what was found above a block, and reads the chain anew from there. @throws RangeError, RpcError, ChainFollowedError */
  restartFrom(block: number, beforehand?: () => Promise<void>): Promise<void>
  /** Steps and waits until the signal fires; never rejects. */
  run(signal: AbortSignal): Promise<void>
}

interface ChainFollowerOptions extends OpenChainOptions {
  /** Unique to one run of one process. */
  readonly owner: string
  /** Host and process id, for operators. */
  readonly process: string
  readonly replays: ReplayQueue
  /** Default CHAIN_LEASE_MS. */
  readonly leaseTtlMs?: number
  /** Default by the chain's block time. */
  readonly pollIntervalMs?: number
  /** Default 100,000. */
  readonly keepUnknown?: number
  /** Default `silentMeter`. */
  readonly meter?: Meter
  /** How often the heads of all URLs are compared; default 60,000. */
  readonly checkNodesEveryMs?: number | undefined
  /** After which a node that was found out is tried again, the first time; default 30,000. */
  readonly suspectMs?: number | undefined
}

/** How often topics are looked for whose events were stored before their request, or the other way round. */
const SWEEP_EVERY_MS = 300_000
/** A step that takes longer shows in the health of the chain. */
const LONG_STEP_MS = 60_000
const COMPARE_EVERY_MS = 2_000
/** Steps in a row that come to nothing, after which a scan gives up. */
const MAX_FRUITLESS_STEPS = 50

interface Follower {
  readonly limits: NodeLimits | undefined
  readonly knex: Knex
  readonly config: ChainConfig
  readonly network: string
  readonly chainId: string
  readonly lease: Lease
  readonly leaseTtlMs: number
  readonly pollMs: number
  readonly keepUnknown: number
  readonly chain: OpenChain
  readonly replays: ReplayQueue
  readonly health: ChainHealth
  /** What keeps back-fill from moving. */
  readonly backfillHealth: ChainHealth
  readonly blocks: BlockFollower
  readonly backfill: Backfill
  readonly trust: NodeTrust
  readonly reporter: ChainReporter
  readonly meter: Meter
  readonly logger: Logger
  readonly clock: () => Date
  isFollowing: boolean
  followingSince: Date
  /** The newest block numbers that this process knows. */
  heights: ChainHeights | undefined
  sweptAtMs: number
  /** Unmatched events that were stored since the last pruning. */
  unpruned: number
}

interface ChainHeights {
  readonly scanned: number
  readonly head: number
  readonly final: number
}

/** Makes the follower of one configured chain. */
export function createChainFollower(options: ChainFollowerOptions): ChainFollower {
  const follower = assemble(options)
  const { network, chainId, config, chain } = follower
  return {
    network,
    chainId,
    config,
    chain,
    status: () => statusOf(follower),
    scan: () => scan(follower),
    restartFrom: (block, beforehand) => restartFrom(follower, block, beforehand),
    run: (signal) => run(follower, signal),
  }
}

function assemble(options: ChainFollowerOptions): Follower {
  const { knex, config, owner, replays, logger, clock } = options
  const { leaseTtlMs = CHAIN_LEASE_MS, keepUnknown = 100_000 } = options
  const network = config.name
  const chainId = caip2Of(config.chainId)
  const lease = { name: `follow:${chainId}`, owner }
  const opened = openChain(options)
  const trust = openTrust(options, opened)
  const { backfill } = opened
  const chain = {
    ...opened,
    reader: trust.guard(opened, 'FOLLOW'),
    backfill: { ...backfill, reader: trust.guard(backfill, 'FILL') },
  }
  const onCommitted = (findings: Findings) => afterCommit(follower, findings)
  const facts = () => factsOf(follower)
  const reporter = createChainReporter({ knex, lease, chainId, process: options.process, logger, clock, facts })
  const { meter = silentMeter } = options
  const onReorg = (removed: number) => {
    meter.count('waybill_chain_reorgs_total', { chain: network })
    reporter.reorged(removed)
  }
  const follower: Follower = {
    limits: options.limits,
    knex,
    config,
    network,
    chainId,
    lease,
    leaseTtlMs,
    pollMs: options.pollIntervalMs ?? pollIntervalOf(config.blockTimeSeconds),
    keepUnknown,
    chain: opened,
    trust,
    replays,
    health: createChainHealth({ network, logger, clock }),
    backfillHealth: createChainHealth({ network: `${network} (back-fill)`, logger, clock }),
    blocks: createBlockFollower({ knex, config, lease, chain, logger, clock, onCommitted, onReorg }),
    backfill: createBackfill({
      knex,
      config,
      lease,
      chain,
      logger,
      clock,
      meter,
      onCommitted,
    }),
    reporter,
    meter,
    logger,
    clock,
    isFollowing: false,
    followingSince: clock(),
    heights: undefined,
    sweptAtMs: Number.NEGATIVE_INFINITY,
    unpruned: keepUnknown,
  }
  return follower
}

function openTrust(options: ChainFollowerOptions, chain: OpenChain): NodeTrust {
  const { knex, replays, logger, clock, config, meter = silentMeter } = options
  return createNodeTrust({
    ...options,
    peers: chain.peers,
    readings: [chain, chain.backfill],
    meter,
    reread({ from, to }, rpcUrls, wrap, signal) {
      const { reader, ...others } = openChain({ ...options, config: { ...config, rpcUrls } })
      const rereading = { knex, chain: { ...others, reader: wrap(reader) }, replays, logger, clock }
      return rereadRange(rereading, { from, to, isTrial: false, actor: 'service', signal })
    },
  })
}

function statusOf(follower: Follower): ChainStatus {
  const { network, heights, health, backfill, backfillHealth, isFollowing } = follower
  const status = health.status()
  return {
    network,
    ...heights,
    ...status,
    failing: status.failing ?? backfillHealth.status().failing,
    following: isFollowing,
    backfill: isFollowing ? backfill.progress() : undefined,
    suspects: isFollowing ? follower.trust.suspects() : [],
  }
}

/** What operators are told; undefined while another process follows the chain. */
function factsOf(follower: Follower): FollowerFacts | undefined {
  const { network, limits, isFollowing, followingSince, health, backfill, backfillHealth, trust } = follower
  if (!isFollowing) return undefined
  const progress = backfill.progress()
  const failing = health.status().failing ?? backfillHealth.status().failing
  return {
    followingSince: followingSince.toISOString(),
    trouble: failing && { since: failing.since.toISOString(), reason: failing.reason },
    backfill: progress && {
      blocksDone: progress.done,
      blocksTotal: progress.done + progress.left,
      blocksPerSecond: progress.blocksPerSecond,
      secondsLeft: progress.secondsLeft,
    },
    suspects: trust.suspects().map(({ node, reason, since }) => ({ host: node, reason, at: since.toISOString() })),
    nodes: limits?.figures().filter(({ chain }) => chain === network) ?? [],
  }
}

async function afterCommit(follower: Follower, findings: Findings): Promise<void> {
  const { replays, chain, keepUnknown } = follower
  try {
    await replays.recheck(findings)
  } catch (error) {
    // The findings are stored, so the next step does not find them again.
    follower.sweptAtMs = Number.NEGATIVE_INFINITY
    throw error
  }
  countFindings(follower, findings)
  follower.unpruned += findings.unmatched.length
  if (follower.unpruned < keepUnknown / 100) return
  await chain.writer.pruneUnmatched(keepUnknown)
  follower.unpruned = 0
}

function countFindings({ meter, network: chain }: Follower, { accounts, unmatched }: Findings): void {
  const payments = [...accounts.values()].reduce((sum, each) => sum + each.payments.length, 0)
  if (payments > 0) meter.count('waybill_payments_found_total', { chain }, payments)
  for (const { reason } of unmatched) meter.count('waybill_unmatched_events_total', { chain, reason })
}

/** Loops of their own, so that following never waits for back-fill or for nodes that are compared. */
async function run(follower: Follower, signal: AbortSignal): Promise<void> {
  const stopReporting = follower.reporter.start()
  await Promise.all([follow(follower, signal), fill(follower, signal), watchNodes(follower, signal)])
  await stopReporting()
  await giveUpLease(follower)
}

async function follow(follower: Follower, signal: AbortSignal): Promise<void> {
  let failures = 0
  while (!signal.aborted) {
    const pace = await turn(follower, failures, signal)
    failures = pace.failures
    if (pace.waitMs > 0) await pause(follower, pace, signal)
  }
}

/** Reads what was left out, while this process follows the chain. */
async function fill(follower: Follower, signal: AbortSignal): Promise<void> {
  const { pollMs, backfillHealth } = follower
  let failures = 0
  while (!signal.aborted) {
    let pace: Pace = { waitMs: pollMs, failures: 0 }
    try {
      if (follower.isFollowing) pace = paceAfter((await fillStep(follower, signal)).kind, pollMs)
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof LeaseLostError)) backfillHealth.failed(error)
      pace = paceAfterError(failures, { isFollowing: follower.isFollowing, pollMs, retryAfterMs: retryAfterOf(error) })
    }
    failures = pace.failures
    if (pace.waitMs > 0) await sleep(pace.waitMs, undefined, { signal }).catch(() => {})
  }
}

function retryAfterOf(error: unknown): number | undefined {
  return error instanceof RpcError ? error.retryAfterMs : undefined
}

async function watchNodes(follower: Follower, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await compareNodes(follower, signal)
    await sleep(Math.max(follower.pollMs, COMPARE_EVERY_MS), undefined, { signal }).catch(() => {})
  }
}

/** Compares the nodes of the chain and repairs what one got wrong, while this process follows it. Never rejects. */
async function compareNodes(follower: Follower, signal?: AbortSignal): Promise<void> {
  const { knex, lease, leaseTtlMs, blocks, trust, network, logger } = follower
  const [final] = blocks.position()?.blocks ?? []
  if (!follower.isFollowing || final === undefined) return
  try {
    await keepLease(
      { knex, lease, ttlMs: leaseTtlMs },
      (ending) => inLane('ENRICHMENT', () => trust.tick(final, ending)),
      {
        signal,
      },
    )
  } catch (error) {
    if (signal?.aborted || error instanceof LeaseLostError) return
    logger.warn({ network, err: error }, 'the nodes of the chain could not be compared; it is tried again')
  }
}

async function fillStep({ knex, lease, leaseTtlMs, backfill, backfillHealth }: Follower, signal?: AbortSignal) {
  const outcome = await inLane('BACKFILL', () =>
    keepLease({ knex, lease, ttlMs: leaseTtlMs }, (ending) => backfill.step(ending), { signal }),
  )
  if (outcome.kind === 'AGAIN' || outcome.kind === 'WAIT') backfillHealth.waits(outcome.reason)
  else backfillHealth.moved()
  return outcome
}

/** Waits for the next step. A process that fails does not renew its lease meanwhile: perhaps another reaches the nodes. */
async function pause(follower: Follower, { waitMs, failures }: Pace, signal: AbortSignal): Promise<void> {
  const { knex, lease, leaseTtlMs, isFollowing } = follower
  const wait = (ending: AbortSignal) => sleep(waitMs, undefined, { signal: ending }).catch(() => {})
  if (isFollowing && failures === 0) await keepLease({ knex, lease, ttlMs: leaseTtlMs }, wait, { signal })
  else await wait(signal)
}

/** Takes one step, whatever happens. */
async function turn(follower: Follower, failures: number, signal: AbortSignal): Promise<Pace> {
  const { pollMs } = follower
  try {
    return paceAfter((await step(follower, signal)).kind, pollMs)
  } catch (error) {
    if (signal.aborted) return { waitMs: 0, failures: 0 }
    follower.blocks.reset()
    noteFailure(follower, error)
    return paceAfterError(failures, { isFollowing: follower.isFollowing, pollMs, retryAfterMs: retryAfterOf(error) })
  }
}

async function scan(follower: Follower): Promise<void> {
  try {
    await repeat(follower.network, () => step(follower))
    // The steps of a back-fill may be too short to renew the lease, and yet together take longer than it lasts.
    await repeat(follower.network, async () =>
      (await holdLease(follower)) ? fillStep(follower) : { kind: 'ELSEWHERE' as const },
    )
  } finally {
    // A node that was found out may answer rightly by now.
    await compareNodes(follower)
  }
  await follower.reporter.write()
}

/** Steps until nothing is left to do. */
async function repeat(network: string, takeStep: () => Promise<Outcome>): Promise<void> {
  for (let fruitless = 0; ; ) {
    const outcome = await takeStep()
    if (outcome.kind === 'ELSEWHERE') throw new ChainFollowedError(network)
    if (outcome.kind !== 'MORE' && outcome.kind !== 'AGAIN') return
    fruitless = outcome.kind === 'AGAIN' ? fruitless + 1 : 0
    if (outcome.kind === 'AGAIN' && fruitless > MAX_FRUITLESS_STEPS) throw new Error(`${network}: ${outcome.reason}`)
  }
}

type Outcome = StepOutcome | { readonly kind: 'ELSEWHERE' }

async function step(follower: Follower, signal?: AbortSignal): Promise<Outcome> {
  const { knex, lease, leaseTtlMs, blocks, health } = follower
  if (!(await holdLease(follower))) {
    await watch(follower)
    health.moved()
    return { kind: 'ELSEWHERE' }
  }
  await sweepWhenDue(follower)
  const held = { knex, lease, ttlMs: leaseTtlMs }
  const onRenewal = (elapsedMs: number) => noteDuration(health, elapsedMs)
  const outcome = await keepLease(held, (ending) => blocks.step(ending), { signal, onRenewal })
  const position = blocks.position()
  if (position !== undefined) {
    follower.heights = { scanned: position.scanned.number, head: position.headBlock, final: position.finalBlock }
  }
  await noteOutcome(follower, outcome)
  return outcome
}

async function holdLease(follower: Follower): Promise<boolean> {
  const { knex, lease, leaseTtlMs } = follower
  const isRenewed = follower.isFollowing && (await renewLease(knex, lease, leaseTtlMs))
  const isHeld = isRenewed || ((await isLeaseFree(knex, lease)) && (await acquireLease(knex, lease, leaseTtlMs)))
  // Another process may have written meanwhile, and died before it compared new events with new requests.
  if (!isRenewed) follower.blocks.reset()
  if (isHeld && !isRenewed) follower.sweptAtMs = Number.NEGATIVE_INFINITY
  if (isHeld && !follower.isFollowing) follower.followingSince = follower.clock()
  follower.isFollowing = isHeld
  return isHeld
}

async function giveUpLease(follower: Follower): Promise<void> {
  if (follower.isFollowing) await releaseLease(follower.knex, follower.lease).catch(() => {})
  follower.isFollowing = false
}

/** Reads what the process that follows the chain has written. */
async function watch(follower: Follower): Promise<void> {
  const stored = await findChain(follower.knex, follower.chainId)
  follower.health.alarmed(stored?.alarm)
  if (stored !== undefined) follower.heights = heightsOf(stored)
}

function heightsOf({ scannedBlock, headBlock, finalBlock }: StoredChain): ChainHeights {
  return { scanned: scannedBlock, head: headBlock, final: finalBlock }
}

/** A process may have died after it stored a request or an event and before it matched the two. */
async function sweepWhenDue(follower: Follower): Promise<void> {
  const { clock, replays, chainId } = follower
  if (clock().getTime() - follower.sweptAtMs < SWEEP_EVERY_MS) return
  await replays.sweep(chainId)
  follower.sweptAtMs = clock().getTime()
}

function noteDuration(health: ChainHealth, elapsedMs: number): void {
  if (elapsedMs >= LONG_STEP_MS) health.waits(`one look has taken ${Math.round(elapsedMs / 1_000)} s so far`)
}

async function noteOutcome({ knex, chainId, health }: Follower, outcome: StepOutcome): Promise<void> {
  const stored = outcome.kind === 'ALARM' ? await findChain(knex, chainId) : undefined
  health.alarmed(stored?.alarm)
  if (outcome.kind === 'AGAIN' || outcome.kind === 'WAIT') health.waits(outcome.reason)
  else health.moved()
}

function noteFailure(follower: Follower, error: unknown): void {
  const { network, health, logger } = follower
  if (!(error instanceof LeaseLostError || error instanceof CheckpointMovedError)) return health.failed(error)
  logger.warn({ network, err: error }, 'another process took the chain over while it was read')
  follower.isFollowing = false
  health.waits(error.message)
}

async function restartFrom(follower: Follower, block: number, beforehand?: () => Promise<void>): Promise<void> {
  const { network, lease, chain, blocks } = follower
  const wasFollowing = follower.isFollowing
  if (!(await holdLease(follower))) throw new ChainFollowedError(network)
  try {
    const [header] = await chain.reader.headers([block])
    if (header === undefined) throw new RangeError(`${network} has no block ${block}`)
    await beforehand?.()
    await chain.writer.restart(lease, header)
  } finally {
    blocks.reset()
    if (!wasFollowing) await giveUpLease(follower)
  }
}
