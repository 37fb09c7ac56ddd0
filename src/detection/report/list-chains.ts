import type { Knex } from 'knex'
import { type ChainConfig, followedContracts } from '../../chains/chains-file.ts'
import { caip2Of } from '../../domain/chain.ts'
import {
  type ChainFacts,
  type ChainHeights,
  type ChainReport,
  type Condition,
  countUnmatched,
  type NodeSuspect,
  type ReorgCount,
  readChainFacts,
  type UnmatchedCount,
} from '../sql/chain-reports-repository.ts'
import { countLacking, type LackCount } from '../sql/enrichments-repository.ts'

/**
 * How following a chain goes.
 * - `NOT_STARTED`: no block is read yet
 * - `CATCHING_UP`: blocks that are final already are still being read
 * - `FOLLOWING`: each new block is read as it comes
 * - `FAILING`: something keeps it from moving
 * - `STOPPED`: it has an alarm
 * - `NOT_FOLLOWED`: no process follows it
 */
export type ChainState = 'NOT_STARTED' | 'CATCHING_UP' | 'FOLLOWING' | 'FAILING' | 'STOPPED' | 'NOT_FOLLOWED'

/** A chain as operators see it. */
export interface ListedChain
  extends Pick<ChainFacts, 'chainId' | 'heights' | 'alarm' | 'listChangedAt'>,
    Pick<ChainReport, 'nodes' | 'backfill'> {
  /** Canonical name. */
  readonly network: string
  readonly state: ChainState
  readonly lag?: { readonly blocks: number; readonly seconds: number } | undefined
  readonly trouble?: Condition | undefined
  /** Why what is stored is not proven; absent where it is. */
  readonly unproven?: Condition | undefined
  readonly reorgs?: ReorgCount | undefined
  readonly suspects: readonly NodeSuspect[]
  /** The process that follows the chain, or did last. */
  readonly follower?:
    | { readonly process: string; readonly since: Date; readonly reportedAt: Date; readonly isStale: boolean }
    | undefined
  /** By reason. */
  readonly unmatched: readonly Pick<UnmatchedCount, 'reason' | 'events'>[]
  readonly unpricedPayments?: number | undefined
}

/** A living process reports at least every 15 s. */
const STALE_AFTER_MS = 30_000

/**
 * Lists the chains that are followed, from what the processes have stored, in the order of the configuration.
 *
 * @param configs - chains without payment contracts are left out
 * @param options.accountId - count only the unmatched events of this account, and no unpriced payments
 */
export async function listChains(
  knex: Knex,
  configs: readonly ChainConfig[],
  options: { readonly now: Date; readonly accountId?: number | undefined; readonly signal?: AbortSignal | undefined },
): Promise<ListedChain[]> {
  const { now, accountId, signal } = options
  const [chains, counts, lacking] = await Promise.all([
    readChains(knex, configs, now, signal),
    countUnmatched(knex, accountId, signal),
    accountId === undefined ? countLacking(knex) : undefined,
  ])
  return chains.map((chain) => ({
    ...chain,
    unmatched: counts.flatMap(({ chainId, ...counted }) => (chainId === chain.chainId ? [counted] : [])),
    unpricedPayments: lacking && unpricedOf(lacking, chain.chainId),
  }))
}

/** As {@link listChains}, without what has to be counted. */
export async function readChains(
  knex: Knex,
  configs: readonly ChainConfig[],
  now: Date,
  signal?: AbortSignal,
): Promise<ListedChain[]> {
  const followed = configs.filter((config) => followedContracts(config).length > 0)
  const chainIds = followed.map(({ chainId }) => caip2Of(chainId))
  const facts = await readChainFacts(knex, chainIds, signal)
  return facts.map((each, place) => describeChain(followed[place]?.name ?? each.chainId, each, now))
}

/** Also those whose price is not looked up any more. */
function unpricedOf(lacking: readonly LackCount[], chainId: string): number {
  const found = lacking.find((each) => each.chainId === chainId && each.lack === 'PRICE')
  return found === undefined ? 0 : found.pending + found.givenUp
}

/** Puts together what is stored of a chain. */
export function describeChain(network: string, facts: ChainFacts, now: Date): ListedChain {
  const { chainId, heights, alarm, listChangedAt, report } = facts
  const isStale = report === undefined || now.getTime() - report.writtenAt.getTime() > STALE_AFTER_MS
  return {
    network,
    chainId,
    state: stateOf(facts, isStale),
    heights,
    lag: heights && lagOf(heights, now),
    alarm,
    listChangedAt,
    trouble: troubleOf(report?.trouble),
    unproven: troubleOf(report?.unproven),
    reorgs: report?.reorgs,
    backfill: report?.backfill,
    nodes: report?.nodes ?? [],
    suspects: report?.suspects ?? [],
    follower: report && {
      process: report.process,
      since: new Date(report.followingSince),
      reportedAt: report.writtenAt,
      isStale,
    },
    unmatched: [],
  }
}

function troubleOf(reported: Condition<string> | undefined): Condition | undefined {
  return reported && { reason: reported.reason, since: new Date(reported.since) }
}

function stateOf({ heights, alarm, report, isFollowed }: ChainFacts, isStale: boolean): ChainState {
  if (alarm !== undefined) return 'STOPPED'
  // A process that fails lets its lease run out between two tries, since another may reach the nodes.
  if (report?.trouble !== undefined && (isFollowed || !isStale)) return 'FAILING'
  if (!isFollowed) return heights === undefined ? 'NOT_STARTED' : 'NOT_FOLLOWED'
  if (heights === undefined) return 'NOT_STARTED'
  return heights.scanned < heights.final || report?.backfill !== undefined ? 'CATCHING_UP' : 'FOLLOWING'
}

/** The clocks of chains and of this machine differ by some seconds. */
function lagOf({ scanned, scannedTime, head }: ChainHeights, now: Date) {
  return {
    blocks: Math.max(0, head - scanned),
    seconds: Math.max(0, Math.floor((now.getTime() - scannedTime.getTime()) / 1_000)),
  }
}
