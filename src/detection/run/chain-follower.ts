import { setTimeout as sleep } from 'node:timers/promises'
import { caip2Of } from '../../domain/chain.ts'
import { inLane } from '../../nodes/node-policy.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { CHAIN_LEASE_MS, LeaseLostError } from '../../store/leases-repository.ts'
import { createBackfill } from '../backfill/backfill.ts'
import { type OpenChain, openChain } from '../chain/open-chain.ts'
import { createBlockFollower } from '../follow/block-follower.ts'
import type { Findings } from '../match/detected.ts'
import { repeat } from '../repair/due-queue.ts'
import { createChainReporter } from '../report/chain-reporter.ts'
import { createNodeTrust, type NodeTrust } from '../trust/node-trust.ts'
import { openNodes } from '../verify/chain-nodes.ts'
import { verifyChain } from '../verify/verify-chain.ts'
import { createChainHealth } from './chain-health.ts'
import {
  type FollowOutcome,
  followStep,
  noteFailure,
  type Pace,
  paceAfter,
  paceAfterError,
  pollIntervalOf,
} from './follow-step.ts'
import {
  ChainFollowedError,
  type ChainFollowerOptions,
  type FollowedChain,
  factsOf,
  giveUpLease,
  holdLease,
  keepLease,
  statusOf,
} from './followed-chain.ts'

export type ChainFollower = ReturnType<typeof createChainFollower>

/** Makes the follower of one configured chain. It follows while this process holds the lease, and watches what another process writes otherwise. */
export function createChainFollower(options: ChainFollowerOptions) {
  const follower = assemble(options)
  const { network, chainId, chain } = follower
  return {
    network,
    /** CAIP-2. */
    chainId,
    chain,
    status: () => statusOf(follower),
    /** Steps until there is nothing new and nothing left to back-fill. @throws what a step throws; ChainFollowedError */
    scan: () => scanOnce(follower),
    /** Removes what was found above a block, and reads the chain anew from there. @throws RangeError, RpcError, ChainFollowedError */
    restartFrom: (block: number, beforehand?: () => Promise<void>) => restartFrom(follower, block, beforehand),
    /** Steps and waits until the signal fires; never rejects. */
    run: (signal: AbortSignal) => runLoops(follower, signal),
  }
}

function assemble(options: ChainFollowerOptions): FollowedChain {
  const { knex, config, owner, logger, clock } = options
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
  const onReorg = (removed: number) => reporter.reorged(removed)
  const reading = { knex, config, lease, chain, logger, clock }
  const follower: FollowedChain = {
    ...options,
    network,
    chainId,
    lease,
    leaseTtlMs,
    pollMs: options.pollIntervalMs ?? pollIntervalOf(config.blockTimeSeconds),
    keepUnknown,
    chain: opened,
    trust,
    health: createChainHealth({ fields: { chain: network }, logger, clock }),
    backfillHealth: createChainHealth({ fields: { chain: network, lane: 'BACKFILL' }, logger, clock }),
    blocks: createBlockFollower({
      ...reading,
      onReorg,
      onCommitted(findings) {
        noteFound(options, findings)
        return onCommitted(findings)
      },
    }),
    backfill: createBackfill({ ...reading, onCommitted }),
    reporter,
    isFollowing: false,
    followingSince: clock(),
    heights: undefined,
    sweptAtMs: Number.NEGATIVE_INFINITY,
    unpruned: keepUnknown,
  }
  return follower
}

function openTrust(options: ChainFollowerOptions, chain: OpenChain): NodeTrust {
  const { config } = options
  return createNodeTrust({
    ...options,
    chain,
    openNodes: (signal) => openNodes(config, options, signal),
    async repair(blocks, signal) {
      const report = await verifyChain({ ...options, chain: config, ...blocks, repairer: 'service', signal })
      // It ends early where the lease is lost, and reaches only the last final block of a node whose head stands still.
      const isWhole = report.stopped === undefined && report.block.number >= blocks.to
      return isWhole && report.unproven.every(({ isInfo }) => isInfo)
    },
  })
}

function noteFound({ onFound, clock }: ChainFollowerOptions, { accounts }: Findings): void {
  if (onFound === undefined) return
  const nowMs = clock().getTime()
  for (const { payments } of accounts.values()) {
    for (const { timestamp } of payments) onFound(Math.max(0, nowMs - timestamp.getTime()) / 1_000)
  }
}

/** After findings were written: compares them with newer requests, and removes the oldest unmatched events. */
async function afterCommit(follower: FollowedChain, findings: Findings): Promise<void> {
  const { replays, chain, keepUnknown } = follower
  try {
    await replays.recheck(findings)
  } catch (error) {
    // The findings are stored, so the next step does not find them again.
    follower.sweptAtMs = Number.NEGATIVE_INFINITY
    throw error
  }
  follower.unpruned += findings.unmatched.length
  if (follower.unpruned < keepUnknown / 100) return
  await chain.writer.pruneUnmatched(keepUnknown)
  follower.unpruned = 0
}

/** Removes what was found above a block, and reads the chain anew from there. @throws RangeError, RpcError, ChainFollowedError */
async function restartFrom(follower: FollowedChain, block: number, beforehand?: () => Promise<void>): Promise<void> {
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

/** Steps in a row that come to nothing, after which a scan gives up. */
const MAX_FRUITLESS_STEPS = 50

/** Steps until there is nothing new and nothing left to back-fill. @throws what a step throws; ChainFollowedError */
async function scanOnce(follower: FollowedChain): Promise<void> {
  try {
    await stepAll(follower.network, () => followStep(follower))
    // The steps of a back-fill may be too short to renew the lease, and yet together take longer than it lasts.
    await stepAll(follower.network, async () =>
      (await holdLease(follower)) ? fillStep(follower) : { kind: 'ELSEWHERE' as const },
    )
  } finally {
    // A node that was found out may answer rightly by now.
    await compareNodes(follower)
  }
  await follower.reporter.write()
}

/** Steps until nothing is left to do. */
async function stepAll(network: string, takeStep: () => Promise<FollowOutcome>): Promise<void> {
  for (let fruitless = 0; ; ) {
    const outcome = await takeStep()
    if (outcome.kind === 'ELSEWHERE') throw new ChainFollowedError(network)
    if (outcome.kind !== 'MORE' && outcome.kind !== 'AGAIN') return
    fruitless = outcome.kind === 'AGAIN' ? fruitless + 1 : 0
    if (outcome.kind === 'AGAIN' && fruitless > MAX_FRUITLESS_STEPS) throw new Error(`${network}: ${outcome.reason}`)
  }
}

const COMPARE_EVERY_MS = 2_000
const REPORT_EVERY_MS = 3_000

/** Follows, back-fills, compares nodes and reports until the signal fires: in loops of their own, so that following never waits for the others. Never rejects. */
async function runLoops(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  const { reporter, pollMs } = follower
  await Promise.all([
    follow(follower, signal),
    fill(follower, signal),
    repeat(() => compareNodes(follower, signal), { everyMs: Math.max(pollMs, COMPARE_EVERY_MS), signal }),
    repeat(reporter.write, { everyMs: REPORT_EVERY_MS, signal }),
  ])
  await reporter.write()
  await giveUpLease(follower)
}

async function follow(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  const step = async () => (await followStep(follower, signal)).kind
  const onError = (error: unknown) => {
    follower.blocks.reset()
    noteFailure(follower, error)
  }
  await loop(follower, { step, onError, pause: (pace) => pause(follower, pace, signal) }, signal)
}

/** Reads what was left out, while this process follows the chain. */
async function fill(follower: FollowedChain, signal: AbortSignal): Promise<void> {
  const step = async () => (follower.isFollowing ? (await fillStep(follower, signal)).kind : 'CAUGHT_UP')
  const onError = (error: unknown) => {
    if (!(error instanceof LeaseLostError)) follower.backfillHealth.failed(error)
  }
  await loop(follower, { step, onError, pause: ({ waitMs }) => sleepUntil(waitMs, signal) }, signal)
}

interface LoopParts {
  readonly step: () => Promise<FollowOutcome['kind']>
  readonly onError: (error: unknown) => void
  /** Waits for the next step. */
  readonly pause: (pace: Pace) => Promise<unknown>
}

/** Takes step after step, whatever happens, until the signal fires. */
async function loop(follower: FollowedChain, { step, onError, pause }: LoopParts, signal: AbortSignal): Promise<void> {
  const { pollMs } = follower
  let failures = 0
  while (!signal.aborted) {
    const pace = await step().then(
      (kind) => paceAfter(kind, pollMs),
      (error: unknown) => {
        if (signal.aborted) return { waitMs: 0, failures: 0 }
        onError(error)
        const retryAfterMs = error instanceof RpcError ? error.retryAfterMs : undefined
        return paceAfterError(failures, { isFollowing: follower.isFollowing, pollMs, retryAfterMs })
      },
    )
    failures = pace.failures
    if (pace.waitMs > 0) await pause(pace)
  }
}

function sleepUntil(ms: number, signal: AbortSignal): Promise<unknown> {
  return sleep(ms, undefined, { signal }).catch(() => {})
}

/** Waits for the next step. A process that fails does not renew its lease meanwhile: perhaps another reaches the nodes. */
async function pause(follower: FollowedChain, { waitMs, failures }: Pace, signal: AbortSignal): Promise<void> {
  const wait = (ending: AbortSignal) => sleepUntil(waitMs, ending)
  if (follower.isFollowing && failures === 0) await keepLease(follower, wait, signal)
  else await wait(signal)
}

/** What is done beside following, while this process holds the lease of the chain. */

/** Compares the nodes of the chain and repairs what one got wrong, while this process follows it. Never rejects. */
async function compareNodes(follower: FollowedChain, signal?: AbortSignal): Promise<void> {
  const { blocks, trust, network, logger } = follower
  const [final] = blocks.position()?.blocks ?? []
  if (!follower.isFollowing || final === undefined) return
  try {
    await keepLease(follower, (ending) => inLane('ENRICHMENT', () => trust.tick(final, ending)), signal)
  } catch (error) {
    if (signal?.aborted || error instanceof LeaseLostError) return
    logger.warn({ chain: network, err: error }, 'the nodes of the chain could not be compared; it is tried again')
  }
}

/** Takes one step of back-fill. @throws what a step throws */
async function fillStep(follower: FollowedChain, signal?: AbortSignal) {
  const { backfill, backfillHealth } = follower
  const outcome = await inLane('BACKFILL', () => keepLease(follower, (ending) => backfill.step(ending), signal))
  if (outcome.kind === 'AGAIN' || outcome.kind === 'WAIT') backfillHealth.waits(outcome.reason)
  else backfillHealth.moved()
  return outcome
}
