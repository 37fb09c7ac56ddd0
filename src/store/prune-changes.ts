import { setTimeout as sleep } from 'node:timers/promises'
import type { Knex } from 'knex'
import { inTransaction } from '../postgres/cancellable.ts'
import { acquireLease, releaseLease } from './leases-repository.ts'
import { lockAccount } from './payment-changes.ts'

export interface PruningOptions {
  readonly knex: Knex
  readonly now: () => Date
  /** Unique to this run of this process. Of the processes on a database, one prunes at a time. */
  readonly owner: string
  readonly signal?: AbortSignal
  /** Default {@link STEP}. */
  readonly step?: number
}

/** How long changes are kept. A watcher that was away for longer has to start again. */
const KEPT_MS = 7 * 86_400_000

/** Changes removed in one transaction, for which the account's writers wait about 20 ms. */
const STEP = 5_000

const LEASE = 'prune:payment_changes'

/** How long the lease of a killed process keeps others from pruning. */
const LEASE_TTL_MS = 60_000

/**
 * Removes the changes of all accounts that are older than the time for which they are kept. It works in steps, between which the account's
 * writers can write.
 *
 * @returns how many were removed; 0 when another process is pruning
 * @throws the signal's reason
 */
export async function pruneDueChanges({ knex, now, owner, signal, step = STEP }: PruningOptions): Promise<number> {
  const lease = { name: LEASE, owner }
  let pruned = 0
  if (!(await acquireLease(knex, lease, LEASE_TTL_MS))) return pruned
  const before = new Date(now().getTime() - KEPT_MS)
  for (const accountId of await findDueAccounts(knex, before)) {
    for (let isMore = true; isMore; ) {
      const startedMs = performance.now()
      const count = await inTransaction(knex, signal, async (trx) => {
        await lockAccount(trx, accountId, before)
        const { rows } = await trx.raw<{ rows: { count: bigint }[] }>(PRUNE, { accountId, before, step })
        return Number(rows[0]?.count ?? 0)
      })
      pruned += count
      isMore = count === step
      if (!(await acquireLease(knex, lease, LEASE_TTL_MS))) return pruned
      // It waits as long as the step took, so it uses at most half of the server.
      if (isMore) await sleep(performance.now() - startedMs, undefined, { signal })
    }
  }
  return pruned
}

/** Lets another process prune. Call it when this one has ended. */
export async function endPruning(knex: Knex, owner: string): Promise<void> {
  await releaseLease(knex, { name: LEASE, owner })
}

/**
 * Accounts whose oldest change is due. The log has no gaps, so the oldest change is the one after the last pruned. The lateral join makes the
 * planner look it up by its key instead of reading the whole log.
 */
async function findDueAccounts(knex: Knex, before: Date): Promise<number[]> {
  const { rows } = await knex.raw<{ rows: { account_id: number }[] }>(
    `select a.account_id from account_changes a
     cross join lateral (
       select at from payment_changes where account_id = a.account_id and change = a.pruned_change + 1 offset 0) c
     where c.at < ? order by a.account_id`,
    [before],
  )
  return rows.map(({ account_id }) => account_id)
}

/**
 * Deletes up to the first change that is kept, even if later ones are older: the clocks of processes differ, and the log must not get a gap. It
 * starts after the last pruned change, because deleted entries stay in the index until it is vacuumed.
 */
const PRUNE = `
  with oldest as (
    select change, at from payment_changes
    where account_id = :accountId and change > (select pruned_change from account_changes where account_id = :accountId)
    order by change limit :step
  ), bound as (
    select coalesce(min(change) filter (where at >= :before) - 1, max(change)) as change from oldest
  ), gone as (
    delete from payment_changes c using bound
    where c.account_id = :accountId and c.change <= bound.change
      and c.change > (select pruned_change from account_changes where account_id = :accountId)
    returning c.change
  ), noted as (
    update account_changes a set pruned_change = greatest(a.pruned_change, bound.change) from bound
    where a.account_id = :accountId and bound.change is not null
  )
  select count(*) from gone`
