import { caip2Of } from '../../domain/chain.ts'
import { CHAIN_LEASE_MS } from '../../store/leases-repository.ts'
import { createBackfill } from '../backfill/backfill.ts'
import { type OpenChain, openChain } from '../chain/open-chain.ts'
import { createBlockFollower } from '../follow/block-follower.ts'
import type { Findings } from '../match/detected.ts'
import { createChainReporter } from '../report/chain-reporter.ts'
import { createNodeTrust, type NodeTrust } from '../trust/node-trust.ts'
import { openNodes } from '../verify/chain-nodes.ts'
import { verifyChain } from '../verify/verify-chain.ts'
import { afterCommit } from './after-commit.ts'
import { createChainHealth } from './chain-health.ts'
import { factsOf, statusOf } from './chain-status.ts'
import type { ChainFollowerOptions, FollowedChain } from './followed-chain.ts'
import { restartFrom } from './restart-from.ts'
import { runLoops } from './run-loops.ts'
import { scanOnce } from './scan-once.ts'
import { pollIntervalOf } from './step-pace.ts'

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
  const reading = { knex, config, lease, chain, logger, clock, onCommitted }
  const follower: FollowedChain = {
    ...options,
    recallLimits: () => options.recallLimits(chainId),
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
    blocks: createBlockFollower({ ...reading, onReorg }),
    backfill: createBackfill(reading),
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
