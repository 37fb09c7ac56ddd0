import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import { networkOfCurrency, symbolOfCurrency } from '../domain/currency.ts'
import { type Decimal, readStoredDecimal } from '../domain/decimal.ts'
import { MAX_GROUPS, requireFewGroups, SUMMARY_TIMEOUT_MS, withinTime } from '../postgres/summary-limits.ts'
import { findMatching, type ListOptions } from './list-requests.ts'
import type { FilterInput } from './rules/request-filter.ts'
import { type CurrencySums, sumRequests } from './sql/request-list-repository.ts'

/** The requests of one invoice currency. Amounts are exact sums, in human units of it. */
export interface RequestGroup {
  /** Currency id, or ISO 4217 code. */
  readonly invoiceCurrency: string
  /** `USDC`, `EUR` */
  readonly symbol: string
  /** Undefined for fiat. */
  readonly network: string | undefined
  readonly count: number
  readonly amount: Decimal
  readonly paidAmount: Decimal
  readonly pendingAmount: Decimal
  /** The sum of what each request has left to pay. */
  readonly outstandingAmount: Decimal
  readonly overpaidAmount: Decimal
}

export type SummarizeRequests = ReturnType<typeof createSummarizeRequests>

/** What summaries are made of. */
export interface SummaryOptions extends Omit<ListOptions, 'cursorSecret'> {
  readonly knex: Knex
}

/**
 * Creates what adds up an account's requests that match all filters, by invoice currency. Groups are in the order of its name.
 *
 * @throws WaybillError as `parseRequestFilter`; TOO_MANY_GROUPS, SUMMARY_TIMEOUT; the signal's reason when it fires
 */
export function createSummarizeRequests(options: SummaryOptions) {
  const { knex } = options
  return async (account: Account, input: FilterInput, signal?: AbortSignal) => {
    const matching = await findMatching(options, account, input, signal)
    const query = { matching, rows: MAX_GROUPS + 1 }
    const rows = await withinTime(SUMMARY_TIMEOUT_MS, signal, (bounded) => sumRequests(knex, account, query, bounded))
    requireFewGroups(rows)
    const groups = rows.map(groupOf).toSorted((a, b) => (a.invoiceCurrency < b.invoiceCurrency ? -1 : 1))
    return { groups, count: groups.reduce((sum, { count }) => sum + count, 0) }
  }
}

function groupOf({ invoice_currency: invoiceCurrency, ...sums }: CurrencySums): RequestGroup {
  return {
    invoiceCurrency,
    symbol: symbolOfCurrency(invoiceCurrency),
    network: networkOfCurrency(invoiceCurrency) || undefined,
    count: Number(sums.count),
    amount: readStoredDecimal(sums.amount),
    paidAmount: readStoredDecimal(sums.paid),
    pendingAmount: readStoredDecimal(sums.pending),
    outstandingAmount: readStoredDecimal(sums.outstanding),
    overpaidAmount: readStoredDecimal(sums.overpaid),
  }
}
