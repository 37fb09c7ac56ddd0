import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import type { Payment } from '../domain/payment.ts'
import { readAllInOrder } from '../errors/gather-errors.ts'
import type { ReadPools } from '../postgres/replicas/read-pools.ts'
import { createExportPages, type ExportInput, readAfter } from './export/export-payments.ts'
import { createPaymentSearch, type PaymentSearchOptions } from './page/payment-search.ts'
import { createSummarizePayments, readSummaryInput, type SummaryInput } from './totals/summarize-payments.ts'

/** The read operations on payments. */
export type PaymentReads = ReturnType<typeof createPaymentReads>

/** The read operations on one pool. */
export function createPaymentReads(options: PaymentSearchOptions) {
  const { knex } = options
  const { search, get, check, parseFilter } = createPaymentSearch(options)
  return {
    search,
    getPayment: get,
    summarize: createSummarizePayments({ knex, parseFilter }),
    readExport: createExportPages({ knex, parseFilter }),
    /** Reads what was sent for a search or an export, and does nothing else. @throws WaybillError of kind INVALID_INPUT */
    check: (account: Account, input: ExportInput, signal?: AbortSignal): Promise<unknown> =>
      readAllInOrder({ search: () => check(account, input, signal), after: () => readAfter(input) }),
    /** Reads what was sent for a summary, and does nothing else. @throws WaybillError of kind INVALID_INPUT */
    checkSummary: (account: Account, input: SummaryInput, signal?: AbortSignal): Promise<unknown> =>
      readSummaryInput(parseFilter, account, input, signal),
  }
}

/**
 * The read operations on a primary and its replicas. A replica may lag by some seconds, so the primary reads
 *
 * - a single payment: the caller may have its id from a newer answer
 * - a search that asks for the newest, or is in the order of changes: its caller stores up to which change it has all
 * - a page for which the replica is too old, by {@link PaymentPage.isOlderThanCursor}
 * - an export that resumes after a payment
 */
export function createPooledReads(pools: ReadPools, options: Omit<PaymentSearchOptions, 'knex'>): PaymentReads {
  const onPrimary = createPaymentReads({ ...options, knex: pools.primary })
  const onReplicas = new Map(
    pools.replicas.map((knex) => [knex, createPaymentReads({ ...options, knex, namesKnex: pools.primary })]),
  )
  const on = (pool: Knex) => onReplicas.get(pool) ?? onPrimary
  return {
    ...onPrimary,
    async search(account, input, signal) {
      if (input.noCache === true || input.sortBy === 'changed') return onPrimary.search(account, input, signal)
      // a replica may have been restarted in an older state since its progress was read, so that is not remembered
      const search = (pool: Knex, until: AbortSignal | undefined) =>
        on(pool).search(account, { ...input, noCache: onReplicas.has(pool) }, until)
      return pools.read(search, { signal, isTooOld: ({ isOlderThanCursor }) => isOlderThanCursor === true })
    },
    summarize: (account, input, signal) =>
      pools.read((pool, until) => on(pool).summarize(account, input, until), { signal }),
    readExport(account, input, signal) {
      if (input.after !== undefined) return onPrimary.readExport(account, input, signal)
      return pools.readPieces(
        (pool, until, lastPage: readonly Payment[] | undefined) =>
          on(pool).readExport(account, resumed(input, lastPage), until),
        signal,
      )
    },
  }
}

/** The same export, resumed after the last payment of a page. */
function resumed(input: ExportInput, lastPage: readonly Payment[] | undefined): ExportInput {
  const last = lastPage?.at(-1)
  return last === undefined ? input : { ...input, after: last.id }
}
