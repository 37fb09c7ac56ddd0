import type { Knex } from 'knex'
import type { BudgetUse } from '../../../nodes/daily-budget.ts'

/** A URL of a chain, without what may be secret in it. */
export interface StoredUrl {
  /** CAIP-2. */
  readonly chainId: string
  /** Of the whole URL, hexadecimal. */
  readonly urlHash: string
  readonly host: string
}

/** Reads what all processes have stored of the budgets of some chains' URLs. @param chainIds - CAIP-2 */
export async function readUses(
  knex: Knex,
  chainIds: readonly string[],
): Promise<(Omit<StoredUrl, 'host'> & BudgetUse)[]> {
  const { rows } = await knex.raw<{ rows: { chainId: string; urlHash: string; day: string; used: bigint }[] }>(
    `select chain_id as "chainId", url_hash as "urlHash", to_char(day, 'YYYY-MM-DD') as day, used
     from node_limits where chain_id = any(?::text[]) and day is not null`,
    [[...chainIds]],
  )
  return rows.map(({ used, ...row }) => ({ ...row, amount: Number(used) }))
}

/** Adds to what was spent of a daily budget. Ignores an earlier day than the stored one. */
export async function addUse(
  knex: Knex,
  { chainId, urlHash, host }: StoredUrl,
  { day, amount }: BudgetUse,
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
