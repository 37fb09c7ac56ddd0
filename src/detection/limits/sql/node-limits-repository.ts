import type { Knex } from 'knex'
import type { LearnedLimits } from '../../../nodes/node-limits.ts'
import type { Lease } from '../../../store/leases-repository.ts'

/** A URL of a chain, without what may be secret in it. */
export interface StoredUrl {
  /** CAIP-2. */
  readonly chainId: string
  /** Of the whole URL, hexadecimal. */
  readonly urlHash: string
  readonly host: string
}

/** What is stored of a URL's limits. */
export interface StoredLimits {
  readonly chainId: string
  readonly urlHash: string
  /** Null where nothing was learned. `learnedUnder` says with which other limits to continue from it. */
  readonly learned: (LearnedLimits & { readonly learnedUnder: string }) | null
  /** The day (UTC) of `used`, as `2026-11-22`; null where nothing was counted. */
  readonly day: string | null
  /** Requests or calls that all processes have stored of that day. */
  readonly used: number
}

/** Reads what is stored of the URLs of some chains. @param chainIds - CAIP-2 */
export async function readNodeLimits(knex: Knex, chainIds: readonly string[]): Promise<StoredLimits[]> {
  const { rows } = await knex.raw<{ rows: (Omit<StoredLimits, 'used'> & { readonly used: bigint })[] }>(
    `select chain_id as "chainId", url_hash as "urlHash", learned, to_char(day, 'YYYY-MM-DD') as day, used
     from node_limits where chain_id = any(?::text[])`,
    [[...chainIds]],
  )
  return rows.map((row) => ({ ...row, used: Number(row.used) }))
}

/** Adds to what was spent of a daily budget. Ignores an earlier day than the stored one. */
export async function addUse(
  knex: Knex,
  { chainId, urlHash, host }: StoredUrl,
  { day, amount }: { readonly day: string; readonly amount: number },
): Promise<void> {
  await knex.raw(
    `insert into node_limits as known (chain_id, url_hash, host, day, used)
     values (:chainId, :urlHash, :host, :day::date, :amount)
     on conflict (chain_id, url_hash) do update set
       used = case when known.day > excluded.day then known.used
                   when known.day = excluded.day then known.used + excluded.used
                   else excluded.used end,
       day = greatest(known.day, excluded.day)`,
    { chainId, urlHash, host, day, amount },
  )
}

/** Replaces what was learned of a URL, if the lease on following its chain is held. @returns whether it is */
export async function writeLearned(
  knex: Knex,
  lease: Lease,
  { chainId, urlHash, host }: StoredUrl,
  learned: string,
): Promise<boolean> {
  const { rowCount } = await knex.raw<{ rowCount: number }>(
    `insert into node_limits (chain_id, url_hash, host, learned)
     select :chainId, :urlHash, :host, :learned::jsonb
     where exists (select from leases where name = :name and owner = :owner and expires_at > clock_timestamp())
     on conflict (chain_id, url_hash) do update set learned = excluded.learned`,
    { ...lease, chainId, urlHash, host, learned },
  )
  return rowCount === 1
}
