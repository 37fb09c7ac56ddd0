import type { Knex } from 'knex'
import { raw, readRows } from '../../postgres/statement.ts'

/**
 * The earliest timestamp that a payment of an account has had, as far back as the change log is kept. An export that resumes there misses
 * nothing, even where the payment's timestamp was changed.
 *
 * @returns undefined when neither the payments nor the change log has that id
 */
export async function findEarliestTime(
  knex: Knex,
  { accountId, id }: { readonly accountId: number; readonly id: string },
  signal: AbortSignal | undefined,
): Promise<Date | undefined> {
  const statement = raw(EARLIEST_TIME, { accountId, id })
  const [row] = await readRows<{ earliest: Date | null }>(knex, statement, signal)
  return row?.earliest ?? undefined
}

const EARLIEST_TIME = `select min(timestamp) as earliest from (
  select timestamp from payments where account_id = :accountId and id = :id::uuid
  union all
  select (old->>'timestamp')::timestamptz from payment_changes where account_id = :accountId and payment_id = :id::uuid and old is not null
) as places`
