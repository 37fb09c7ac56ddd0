import type { Knex } from 'knex'
import type { NodeFigures } from '../../nodes/node-limits.ts'
import { runCancellable } from '../../postgres/cancellable.ts'
import type { Lease } from '../../store/leases-repository.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import { readRows } from './read-rows.ts'

/**
 * What the process that follows a chain reports about it. Stored as JSON, so times are ISO 8601 texts. Leaves out what `chain_state` holds.
 */
export interface ChainReport {
  /** Host and process id. */
  readonly process: string
  readonly followingSince: string
  /** What keeps the chain from moving; absent while it moves. */
  readonly trouble?: Condition<string> | undefined
  /** Why what is stored is not proven; absent where it is. */
  readonly unproven?: Condition<string> | undefined
  readonly reorgs: ReorgCount
  /** In the order of the configuration. */
  readonly nodes: readonly NodeReport[]
  /** Absent where no old blocks are left to read. */
  readonly backfill?: BackfillReport | undefined
  /** Nodes that are suspected to answer wrongly. */
  readonly suspects?: readonly NodeSuspect[] | undefined
}

/** Something that lasts. */
export interface Condition<Time = Date> {
  readonly since: Time
  readonly reason: string
}

/** The reorgs of a chain that were seen, also by earlier processes. */
export interface ReorgCount {
  readonly count: number
  /** In blocks that were removed. */
  readonly deepest: number
  readonly lastAt?: string | undefined
}

export const NO_REORGS: ReorgCount = { count: 0, deepest: 0 }

/** A node of the chain, as this process knows it. */
export type NodeReport = Omit<NodeFigures, 'chain' | 'place'>

/** How far back-fill has come. */
export interface BackfillReport {
  readonly blocksDone: number
  readonly blocksTotal: number
  readonly blocksPerSecond?: number | undefined
  readonly secondsLeft?: number | undefined
}

export interface NodeSuspect {
  readonly host: string
  readonly reason: string
  readonly at: string
}

/** What is stored of a chain, for operators. */
export interface ChainFacts {
  /** CAIP-2. */
  readonly chainId: string
  /** Absent until a block is read. */
  readonly heights?: ChainHeights | undefined
  /** Why the chain is stopped. */
  readonly alarm?: string | undefined
  /** When the list of the chain's oracle last changed; absent where no change was read. */
  readonly listChangedAt?: Date | undefined
  /** What the process that follows the chain, or followed it last, has reported. */
  readonly report?: (ChainReport & { readonly writtenAt: Date }) | undefined
  /** Whether a process holds the chain's lease. */
  readonly isFollowed: boolean
}

export interface ChainHeights {
  readonly scanned: number
  readonly scannedTime: Date
  readonly head: number
  readonly final: number
}

interface FactsRow extends Omit<ChainFacts, 'heights' | 'report'>, ChainHeights {
  readonly report?: ChainReport
  readonly writtenAt: Date
}

/** Reads what is stored of these chains. @param chainIds - CAIP-2; the answer is in their order */
export async function readChainFacts(
  knex: Knex,
  chainIds: readonly string[],
  signal?: AbortSignal,
): Promise<ChainFacts[]> {
  const query = knex.raw<{ rows: object[] }>(
    `select c.chain_id, s.scanned_block as scanned, s.scanned_time, s.head_block as head, s.final_block as final, s.alarm, s.list_changed_at, r.written_at, r.report,
       l.name is not null as is_followed
     from unnest(?::text[]) with ordinality as c (chain_id, place)
     left join chain_state s on s.chain_id = c.chain_id
     left join chain_reports r on r.chain_id = c.chain_id
     left join leases l on l.name = 'follow:' || c.chain_id and l.expires_at > clock_timestamp()
     order by c.place`,
    [[...chainIds]],
  )
  const { rows } = await runCancellable(knex, query, signal)
  return readRows<FactsRow>(rows).map(toFacts)
}

function toFacts(row: FactsRow): ChainFacts {
  const { chainId, alarm, listChangedAt, report, writtenAt, isFollowed, ...heights } = row
  return {
    chainId,
    heights: heights.scanned === undefined ? undefined : heights,
    alarm,
    listChangedAt,
    report: report && { ...report, writtenAt },
    isFollowed,
  }
}

/** The last report of a chain, whoever wrote it. @param chainId - CAIP-2 */
export async function readChainReport(knex: Knex, chainId: string): Promise<ChainReport | undefined> {
  const row = await knex('chain_reports')
    .where({ chain_id: chainId })
    .first<{ report: ChainReport } | undefined>('report')
  return row?.report
}

/** Replaces the report of a chain, if its lease is held. @param lease - the one on following the chain */
export async function writeChainReport(
  knex: Knex,
  lease: Lease,
  { chainId, report, at }: { readonly chainId: string; readonly report: ChainReport; readonly at: Date },
): Promise<void> {
  await knex.raw(
    `insert into chain_reports (chain_id, owner, written_at, report)
     select :chainId, :owner, :at::timestamptz, :report::jsonb
     where exists (select from leases where name = :name and owner = :owner and expires_at > clock_timestamp())
     on conflict (chain_id) do update set owner = excluded.owner, written_at = excluded.written_at, report = excluded.report`,
    { ...lease, chainId, at, report: JSON.stringify(report) },
  )
}

/** How many unmatched events of a reason a chain has, over all accounts. */
export interface UnmatchedCount {
  readonly chainId: string
  readonly reason: UnmatchedReason
  readonly events: number
}

/** Counts unmatched events, of each chain some 200,000 at most. @param accountId - only those of this account; undefined: all */
export async function countUnmatched(
  knex: Knex,
  accountId: number | undefined,
  signal?: AbortSignal,
): Promise<UnmatchedCount[]> {
  const query = knex('unmatched_events')
    .select<UnmatchedCount[]>({ chainId: 'chain_id', reason: 'reason' }, knex.raw('count(*)::integer as events'))
    .groupBy('chain_id', 'reason')
    .orderBy(['chain_id', 'reason'])
  if (accountId !== undefined) void query.where('account_id', accountId)
  return runCancellable<UnmatchedCount[]>(knex, query, signal)
}
