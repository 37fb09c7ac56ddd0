import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type ExplainRow, planOf } from '../../postgres/planned-rows.ts'
import { raw, readRows, type Statement } from '../../postgres/statement.ts'
import { type AttemptOptions, attemptsAt, DEFAULT_ATTEMPTS, type PageQuery, pageStatement } from './request-attempts.ts'
import { conditionOf, type MatchingRequests } from './request-conditions.ts'
import { type BalanceRow, type RequestWithBalance, requestWithBalanceOf } from './request-repository.ts'

export type RequestListRepository = ReturnType<typeof createRequestListRepository>

/** Creates the lists of the requests of one account. Every statement binds the account for each table that it reads. */
export function createRequestListRepository(knex: Knex, attempts: AttemptOptions = DEFAULT_ATTEMPTS) {
  return {
    /** The payment currencies of the account's requests. */
    async currencies(account: Account, signal?: AbortSignal): Promise<string[]> {
      const rows = await readRows<{ payment_currency: string }>(knex, currenciesStatement(account), signal)
      return rows.map(({ payment_currency }) => payment_currency)
    },
    /** Reads a page, in the direction of its position; newest first without one. */
    async page(account: Account, query: PageQuery, signal?: AbortSignal): Promise<RequestWithBalance[]> {
      for (const attempt of attemptsAt(query, attempts)) {
        const rows = await readRows<PageRow>(knex, pageStatement(account, query, attempt), signal)
        const found = rows.filter((row): row is PageRow & BalanceRow => row.request_id !== null)
        if (rows[0]?.is_cut && found.length < query.rows) continue
        return found.map((row) => requestWithBalanceOf(row, query.matching.now))
      }
      throw new Error('the last attempt at a page had a limit')
    },
    /** Counts the matches, at most `cap`. */
    async count(account: Account, matching: MatchingRequests, cap: number, signal?: AbortSignal): Promise<number> {
      const counted = 'select count(*) from (select from requests where ? limit ?::int) matches'
      const statement = raw(counted, [conditionOf(account, matching), cap])
      const [row] = await readRows<{ count: bigint }>(knex, statement, signal)
      return Number(row?.count ?? 0n)
    },
    /** How many matches the database's planner expects. No request is read. */
    async estimate(account: Account, matching: MatchingRequests, signal?: AbortSignal): Promise<number> {
      const explain = raw('explain (format json) select from requests where ?', [conditionOf(account, matching)])
      const [row] = await readRows<ExplainRow>(knex, explain, signal)
      return planOf(row)?.['Plan Rows'] ?? 0
    },
  }
}

/** The columns of a request are null in the one row of a page without any. */
type PageRow = { readonly is_cut: boolean } & (BalanceRow | { readonly request_id: null })

/** Skips through the index from one currency to the next, so that the cost grows with the currencies and not with the requests. */
function currenciesStatement(account: Account): Statement {
  const next = (than: string) =>
    `select payment_currency from requests where account_id = :id${than} order by payment_currency limit 1`
  return raw(
    `with recursive currencies as (
  (${next('')})
  union all
  select next.* from currencies c cross join lateral (${next(' and payment_currency > c.payment_currency')}) next
) select * from currencies`,
    { id: account.id },
  )
}
