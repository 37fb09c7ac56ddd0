import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { type ExplainRow, planOf } from '../../postgres/planned-rows.ts'
import { raw, readRows, type Statement } from '../../postgres/statement.ts'
import { type AttemptOptions, attemptsAt, DEFAULT_ATTEMPTS, type PageQuery, pageStatement } from './request-attempts.ts'
import { conditionOf, MAX_UNPAID, type MatchingRequests } from './request-conditions.ts'
import {
  type BalanceRow,
  type RequestRow,
  type RequestWithBalance,
  requestOfRow,
  requestWithBalanceOf,
} from './request-repository.ts'

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

/** Requests held in memory at once. */
const ROWS_A_PAGE = 1_000

/**
 * Reads all requests of an account in one snapshot, oldest first, one page at a time.
 *
 * @throws the signal's reason when it fires
 */
export function exportRequests(
  { knex, accountId, signal }: { readonly knex: Knex; readonly accountId: number; readonly signal?: AbortSignal },
  onPage: (page: readonly PaymentRequest[]) => Promise<void>,
): Promise<void> {
  return inTransaction(
    knex,
    signal,
    async (trx) => {
      let last: PaymentRequest | undefined
      for (;;) {
        const page = await readPage(trx, accountId, last)
        last = page.at(-1)
        if (last === undefined) return
        await onPage(page)
      }
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  )
}

async function readPage(trx: Knex, accountId: number, after: PaymentRequest | undefined): Promise<PaymentRequest[]> {
  const place = [after?.createdAt ?? '-infinity', hexToBytes(after?.requestId ?? '')]
  const rows = await trx<RequestRow>('requests')
    .where({ account_id: accountId })
    .whereRaw('(created_at, request_id) > (?, ?)', place)
    .orderBy(['created_at', 'request_id'])
    .limit(ROWS_A_PAGE)
  return rows.map(requestOfRow)
}
