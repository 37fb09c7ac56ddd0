import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { raw, readRows } from '../../postgres/statement.ts'
import { conditionOf, MAX_UNPAID, type MatchingRequests } from './request-conditions.ts'

/** The sums of the requests of one invoice currency. Amounts are numerics as text, in human units of it. */
export interface CurrencySums {
  readonly invoice_currency: string
  readonly count: bigint
  readonly amount: string
  readonly paid: string
  readonly pending: string
  readonly outstanding: string
  readonly overpaid: string
}

/**
 * Adds up what matches, by invoice currency, in one statement, so that all sums are of one moment. Outstanding and overpaid are sums over each
 * request, as `balanceAt` has them.
 */
export async function sumRequests(
  knex: Knex,
  account: Account,
  { matching, rows }: { readonly matching: MatchingRequests; readonly rows: number },
  signal?: AbortSignal,
): Promise<CurrencySums[]> {
  const statement = raw(
    `select invoice_currency, count(*), sum(amount)::text as amount, sum(paid)::text as paid, sum(pending)::text as pending,
  coalesce(sum(amount - held) filter (where status <= ${MAX_UNPAID}), 0)::text as outstanding,
  sum(greatest(held - amount, 0))::text as overpaid
from requests where ?
group by invoice_currency limit ?::int`,
    [conditionOf(account, matching), rows],
  )
  return readRows(knex, statement, signal)
}
