import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { rankOfStatus } from '../../domain/payment.ts'
import { rankOfRequestStatus } from '../../domain/payment-request.ts'
import { runCancellable } from '../../postgres/cancellable.ts'
import { bind, raw, type Statement, sql, unionAll } from '../../postgres/statement.ts'
import { COUNTED } from './request-repository.ts'
import { accountOf, conditionsOf, type MatchingRequests } from './request-shapes.ts'

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

/** Adds up what matches, by invoice currency, in one statement, so that all sums are of one moment. */
export async function sumRequests(
  knex: Knex,
  account: Account,
  { matching, rows }: { readonly matching: MatchingRequests; readonly rows: number },
  signal?: AbortSignal,
): Promise<CurrencySums[]> {
  const statement = summaryStatement(account, matching, rows)
  const query = knex.raw<{ rows: CurrencySums[] }>(statement.sql, statement.bindings as Knex.RawBinding[])
  return (await runCancellable(knex, query, signal)).rows
}

/**
 * Looks up the payments of each request, so that the time grows with the requests that match and not with the account. What is outstanding and
 * over-paid is of each request, as `balanceOf` has it. An OPEN request has no payment that counts, so none is looked for.
 */
function summaryStatement(account: Account, matching: MatchingRequests, rows: number): Statement {
  const found = conditionsOf(account, matching).map(
    (condition) =>
      sql`select request_id, invoice_currency, amount, surplus_returned, status from requests r where ${condition}`,
  )
  const paid = sql`select coalesce(sum(${COUNTED}) filter (where p.final), 0) as final,
    coalesce(sum(${COUNTED}) filter (where not p.final), 0) as pending
  from payments p
  where p.account_id = ${accountOf(account)} and p.request_id = r.request_id and p.status <> ${FAILED} and r.status <> ${OPEN}`
  return sql`select invoice_currency, count(*), sum(amount)::text as amount, sum(final)::text as paid, sum(pending)::text as pending,
  sum(greatest(amount - final - pending, 0))::text as outstanding,
  sum(greatest(final + pending - amount - surplus_returned, 0))::text as overpaid
from (${unionAll(found)}) r cross join lateral (${paid}) paid
group by invoice_currency limit ${bind(rows, 'int')}`
}

const OPEN = raw(rankOfRequestStatus('OPEN'))
const FAILED = raw(rankOfStatus('FAILED'))
