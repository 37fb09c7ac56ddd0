import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import type { TokenDirectory } from '../../chains/token-directory.ts'
import { caip2Of } from '../../domain/chain.ts'
import type { Logger } from '../../domain/logger.ts'
import { createRpcClient } from '../../nodes/rpc-client.ts'
import {
  acquireLease,
  CHAIN_LEASE_MS,
  LeaseLostError,
  releaseLease,
  renewLease,
} from '../../store/leases-repository.ts'
import type { Findings } from '../match/detected.ts'
import type { FindingTools } from '../match/find-payments.ts'
import { createPriceReader } from '../read/block-prices.ts'
import { createCallReader } from '../read/call-reader.ts'
import { createChainReader } from '../read/chain-reader.ts'
import { sortContracts } from '../read/followed-contracts.ts'
import { createMarketReader } from '../read/market.ts'
import { createRateReader } from '../read/path-rates.ts'
import type { ReplayChain } from '../repair/replay.ts'
import type { ReplayQueue } from '../repair/replay-queue.ts'
import { createChainContractsRepository } from '../sql/chain-contracts-repository.ts'
import type { DetectionRepository } from '../sql/detection-repository.ts'
import { CheckpointMovedError, createPaymentWriter } from '../sql/payment-writer.ts'
import { createBlockFollower, type FollowerState, type StepOutcome } from './block-follower.ts'
import { createChainHealth, type HealthStatus } from './chain-health.ts'
import { keepLease } from './keep-lease.ts'

/** Where a chain stands, as far as this process knows. Block numbers are absent until it has looked. */
export interface ChainStatus extends HealthStatus {
  readonly network: string
  readonly scanned?: number
  readonly head?: number
  readonly final?: number
  /** Whether this process is the one that follows the chain. */
  readonly following: boolean
}

/** Another process holds the lease on the chain. */
export class ChainFollowedError extends Error {
  override readonly name = 'ChainFollowedError'

  constructor(network: string) {
    super(`another process follows ${network}`)
  }
}

/** One chain: the lease on it, the loop, and what goes wrong. */
export interface ChainFollower {
  readonly network: string
  /** CAIP-2. */
  readonly chainId: string
  readonly replayChain: ReplayChain
  status(): ChainStatus
  /** Steps until there is nothing new. @throws what a step throws; ChainFollowedError */
  scan(): Promise<void>
  /** Forgets what was found above a block and begins anew there. @throws RpcError, ChainFollowedError */
  restartFrom(block: number, beforehand?: () => Promise<void>): Promise<void>
  /** Steps and waits until the signal fires; never rejects. */
  run(signal: AbortSignal): Promise<void>
}

export interface ChainFollowerOptions {
  readonly knex: Knex
  readonly config: ChainConfig
  readonly owner: string
  readonly tokens: TokenDirectory
  readonly repository: DetectionRepository
  readonly replays: ReplayQueue
  readonly logger: Logger
  readonly clock: () => Date
  readonly onExchange?: () => void
  readonly leaseTtlMs?: number
  readonly pollIntervalMs?: number
  readonly rpcTimeoutMs?: number
  readonly keepUnknown?: number
}

const FIRST_BACKOFF_MS = 500
const LONGEST_BACKOFF_MS = 30_000
const WATCH_EVERY_MS = 2_000
const SWEEP_EVERY_MS = 300_000
const LONG_STEP_MS = 60_000
/** Looks that come to nothing at one place, after which who waits for a scan is told. */
const LOOKS_IN_VAIN = 50

/** Makes the follower of one configured chain. */
export function createChainFollower(options: ChainFollowerOptions): ChainFollower {
  const { knex, config, owner, repository, replays, logger, clock } = options
  const { leaseTtlMs = CHAIN_LEASE_MS, keepUnknown = 100_000 } = options
  const network = config.name
  const chainId = caip2Of(config.chainId)
  const lease = { name: `follow:${chainId}`, owner }
  const pollMs = options.pollIntervalMs ?? Math.min(2_000, Math.max(250, config.blockTimeSeconds * 500))
  const replayChain = createReplayChain(options, chainId)
  const { tools, reader, writer } = replayChain
  const contracts = createChainContractsRepository(knex, chainId)
  const health = createChainHealth({ network, logger, clock })
  const parts = { config, lease, tools, reader, repository, contracts, writer, logger, clock, onCommitted }
  const follower = createBlockFollower(parts)

  let isFollowing = false
  let lastState: FollowerState | undefined
  let sweptAtMs = Number.NEGATIVE_INFINITY
  let unpruned = keepUnknown

  async function onCommitted(findings: Findings): Promise<void> {
    await replays.recheck(findings)
    unpruned += findings.unmatched.length
    if (unpruned < keepUnknown / 100) return
    await writer.pruneUnmatched(keepUnknown)
    unpruned = 0
  }

  async function holdLease(): Promise<boolean> {
    const held = isFollowing ? await renewLease(knex, lease, leaseTtlMs) : false
    const acquired = held || (await acquireLease(knex, lease, leaseTtlMs))
    if (!held) follower.reset()
    isFollowing = acquired
    return acquired
  }

  async function giveUpLease(): Promise<void> {
    if (isFollowing) await releaseLease(knex, lease).catch(() => {})
    isFollowing = false
  }

  /** A process may die between storing a request, or an event, and bringing the two together. */
  async function sweepWhenDue(): Promise<void> {
    if (clock().getTime() - sweptAtMs < SWEEP_EVERY_MS) return
    await replays.sweep(chainId)
    sweptAtMs = clock().getTime()
  }

  /** What another process that follows the chain has written. */
  async function watch(): Promise<void> {
    const stored = await repository.chain(chainId)
    health.alarmed(stored?.alarm)
    if (stored === undefined) return
    const { scannedBlock, scannedHash, headBlock, finalBlock } = stored
    lastState = { scanned: { number: scannedBlock, hash: scannedHash }, blocks: [], headBlock, finalBlock }
  }

  async function step(signal?: AbortSignal): Promise<StepOutcome | { readonly kind: 'ELSEWHERE' }> {
    if (!(await holdLease())) {
      await watch()
      health.moved()
      return { kind: 'ELSEWHERE' }
    }
    await sweepWhenDue()
    const held = { knex, lease, ttlMs: leaseTtlMs }
    const outcome = await keepLease(held, (ending) => follower.step(ending), { signal, onRenewal: noteLength })
    lastState = follower.state() ?? lastState
    await noteOutcome(outcome)
    return outcome
  }

  function noteLength(elapsedMs: number): void {
    if (elapsedMs >= LONG_STEP_MS) health.waits(`one look has been going on for ${Math.round(elapsedMs / 1_000)} s`)
  }

  async function noteOutcome(outcome: StepOutcome): Promise<void> {
    const stored = outcome.kind === 'ALARM' ? await repository.chain(chainId) : undefined
    health.alarmed(stored?.alarm)
    if (outcome.kind === 'AGAIN' || outcome.kind === 'WAIT') health.waits(outcome.reason)
    else health.moved()
  }

  function noteFailure(error: unknown): void {
    if (!(error instanceof LeaseLostError || error instanceof CheckpointMovedError)) return health.failed(error)
    logger.warn({ network, err: error }, 'the chain was taken over while it was looked at')
    isFollowing = false
    health.waits(error.message)
  }

  /** @returns how long to wait before the next step, in ms */
  async function stepSafely(signal: AbortSignal, failures: number): Promise<{ waitMs: number; failed: boolean }> {
    try {
      const { kind } = await step(signal)
      if (kind === 'ELSEWHERE') return { waitMs: Math.max(pollMs, WATCH_EVERY_MS), failed: false }
      return { waitMs: kind === 'MORE' ? 0 : pollMs, failed: false }
    } catch (error) {
      if (signal.aborted) return { waitMs: 0, failed: false }
      follower.reset()
      noteFailure(error)
      if (!isFollowing) return { waitMs: pollMs, failed: false }
      return { waitMs: Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** failures), failed: true }
    }
  }

  return {
    network,
    chainId,
    replayChain,
    status() {
      const state = lastState
      return {
        network,
        ...(state && { scanned: state.scanned.number, head: state.headBlock, final: state.finalBlock }),
        ...health.status(),
        following: isFollowing,
      }
    },
    async scan() {
      for (let inVain = 0; ; ) {
        const outcome = await step()
        if (outcome.kind === 'ELSEWHERE') throw new ChainFollowedError(network)
        if (outcome.kind !== 'MORE' && outcome.kind !== 'AGAIN') return
        inVain = outcome.kind === 'AGAIN' ? inVain + 1 : 0
        if (outcome.kind === 'AGAIN' && inVain > LOOKS_IN_VAIN) throw new Error(`${network}: ${outcome.reason}`)
      }
    },
    async restartFrom(block, beforehand) {
      const wasFollowing = isFollowing
      if (!(await holdLease())) throw new ChainFollowedError(network)
      try {
        const [header] = await reader.headers([block])
        if (header === undefined) throw new RangeError(`${network} has no block ${block}`)
        await beforehand?.()
        await writer.restart(lease, header)
      } finally {
        follower.reset()
        if (!wasFollowing) await giveUpLease()
      }
    },
    async run(signal) {
      let failures = 0
      while (!signal.aborted) {
        const { waitMs, failed } = await stepSafely(signal, failures)
        failures = failed ? failures + 1 : 0
        if (waitMs > 0) await sleep(waitMs, undefined, { signal }).catch(() => {})
      }
      await giveUpLease()
    },
  }
}

function createReplayChain(options: ChainFollowerOptions, chainId: string): ReplayChain {
  const { knex, config, tokens, repository, clock, logger, onExchange, rpcTimeoutMs } = options
  const client = createRpcClient({
    urls: config.rpcUrls,
    chainId: config.chainId,
    clock,
    onNodeChange(node, change) {
      // Of the only URL there is, the chain's health tells.
      if (config.rpcUrls.length === 1) return
      const name = { chain: config.name, node }
      if (change.open) logger.warn({ ...name, detail: change.detail }, 'the node fails and is left alone for a while')
      else logger.info(name, 'the node answers again')
    },
    ...(onExchange && { onExchange }),
    ...(rpcTimeoutMs === undefined ? {} : { timeoutMs: rpcTimeoutMs }),
  })
  const addresses = followedContracts(config).map(({ address }) => address)
  const reader = createChainReader(client, addresses)
  const native = tokens.native(config.name)
  if (native === undefined) throw new Error(`the chain ${config.name} is not in the directory of tokens`)
  const tools: FindingTools = {
    chain: { name: config.name, chainId, native, followed: sortContracts(config) },
    tokens,
    repository,
    market: createMarketReader({
      reader,
      native,
      prices: createPriceReader(reader),
      rates: createRateReader({ reader, conversion: config.conversion, native, tokens }),
    }),
    calls: createCallReader({ client, network: config.name, logger, clock }),
  }
  return { tools, reader, writer: createPaymentWriter({ knex, chain: { chainId, network: config.name }, clock }) }
}
