import type { Knex } from 'knex'
import { runCancellable } from '../../postgres/cancellable.ts'
import type { Lease } from '../../store/leases-repository.ts'
import type { UnmatchedReason } from '../match/match-event.ts'
import type { ChainReport } from './chain-report.ts'

/** What is stored of a chain, for operators. */
export interface ChainFacts {
  /** CAIP-2. */
  readonly chainId: string
  /** Absent until a block is read. */
  readonly heights?: ChainHeights | undefined
  /** Why the chain is stopped. */
  readonly alarm?: string | undefined
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

interface FactsRow {
  readonly chain_id: string
  readonly scanned_block: bigint | null
  readonly scanned_time: Date
  readonly head_block: bigint
  readonly final_block: bigint
  readonly alarm: string | null
  readonly written_at: Date
  readonly report: ChainReport | null
  readonly is_followed: boolean
}

/** Reads what is stored of these chains. @param chainIds - CAIP-2; the answer is in their order */
export async function readChainFacts(
  knex: Knex,
  chainIds: readonly string[],
  signal?: AbortSignal,
): Promise<ChainFacts[]> {
  const query = knex.raw<{ rows: FactsRow[] }>(
    `select c.chain_id, s.scanned_block, s.scanned_time, s.head_block, s.final_block, s.alarm, r.written_at, r.report,
       l.name is not null as is_followed
     from unnest(?::text[]) with ordinality as c (chain_id, place)
     left join chain_state s on s.chain_id = c.chain_id
     left join chain_reports r on r.chain_id = c.chain_id
     left join leases l on l.name = 'follow:' || c.chain_id and l.expires_at > clock_timestamp()
     order by c.place`,
    [[...chainIds]],
  )
  const { rows } = await runCancellable(knex, query, signal)
  return rows.map(toFacts)
}

function toFacts(row: FactsRow): ChainFacts {
  return {
    chainId: row.chain_id,
    heights:
      row.scanned_block === null
        ? undefined
        : {
            scanned: Number(row.scanned_block),
            scannedTime: row.scanned_time,
            head: Number(row.head_block),
            final: Number(row.final_block),
          },
    alarm: row.alarm ?? undefined,
    report: row.report === null ? undefined : { ...row.report, writtenAt: row.written_at },
    isFollowed: row.is_followed,
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
