import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import type { Payment } from '../domain/payment.ts'
import { readAllInTurn } from '../errors/gather-errors.ts'
import type { ReadPools } from '../postgres/replicas/read-pools.ts'
import { createExportPages, type ExportInput, type ExportPages, readAfter } from './export/export-pages.ts'
import type { SearchInput } from './filter/search-input.ts'
import { createPaymentSearch, type PaymentSearch, type PaymentSearchOptions } from './page/payment-search.ts'
import { searchSeal, seenOfCursor } from './page/search-cursor.ts'
import {
  type CheckSummary,
  createCheckSummary,
  createSummarizePayments,
  type SummarizePayments,
} from './totals/summarize-payments.ts'

/** The read operations on payments. */
export interface PaymentReads {
  readonly search: PaymentSearch['search']
  readonly getPayment: (account: Account, id: string, signal?: AbortSignal) => Promise<Payment>
  readonly summarize: SummarizePayments
  readonly readExport: ExportPages
  /** Reads what was sent for a search or an export, and does nothing else. @throws WaybillError of kind INVALID_INPUT */
  readonly check: (account: Account, input: ExportInput, signal?: AbortSignal) => Promise<unknown>
  readonly checkSummary: CheckSummary
}

/** The read operations on one pool. */
export function createPaymentReads(options: PaymentSearchOptions): PaymentReads {
  const { knex } = options
  const payments = createPaymentSearch(options)
  const parseFilter: PaymentSearch['parseFilter'] = (...asked) => payments.parseFilter(...asked)
  return {
    search: (...asked) => payments.search(...asked),
    getPayment: (...asked) => payments.get(...asked),
    summarize: createSummarizePayments({ knex, parseFilter }),
    readExport: createExportPages({ knex, parseFilter }),
    check: (account, input, signal) =>
      readAllInTurn({ search: () => payments.check(account, input, signal), after: () => readAfter(input) }),
    checkSummary: createCheckSummary({ parseFilter }),
  }
}

/**
 * The read operations on a primary and its replicas. A search cursor carries the WAL position that its caller has seen, so that no page
 * comes from an older state than the one before it.
 */
export function createPooledReads(pools: ReadPools, options: Omit<PaymentSearchOptions, 'knex'>): PaymentReads {
  const readsByPool = new Map(pools.pools.map((knex) => [knex, createPaymentReads({ ...options, knex })]))
  const on = (pool: Knex): PaymentReads => {
    const reads = readsByPool.get(pool)
    if (reads === undefined) throw new TypeError('the pool is not one of the read pools')
    return reads
  }
  const seenInCursor = (accountId: number, { cursor }: SearchInput): bigint | undefined => {
    const seen = cursor === undefined ? undefined : seenOfCursor(searchSeal(options.cursorSecret, accountId), cursor)
    return seen === undefined ? undefined : BigInt(seen)
  }
  return {
    search: (account, input, signal) =>
      pools.read({ accountId: account.id, signal, atLeast: seenInCursor(account.id, input) }, (pool, until, position) =>
        on(pool).search(account, input, until, position),
      ),
    getPayment: (account, id, signal) =>
      pools.read({ accountId: account.id, signal }, (pool, until) => on(pool).getPayment(account, id, until)),
    summarize: (account, input, signal) =>
      pools.read({ accountId: account.id, signal }, (pool, until) => on(pool).summarize(account, input, until)),
    check: (account, input, signal) =>
      pools.read({ accountId: account.id, signal }, (pool, until) => on(pool).check(account, input, until)),
    checkSummary: (account, input, signal) =>
      pools.read({ accountId: account.id, signal }, (pool, until) => on(pool).checkSummary(account, input, until)),
    readExport: (account, input, signal) =>
      pools.readPieces({ accountId: account.id, signal }, (pool, until, lastPage: readonly Payment[] | undefined) =>
        on(pool).readExport(account, resumed(input, lastPage), until),
      ),
  }
}

/** The same export, resumed after the last payment of a page. */
function resumed(input: ExportInput, lastPage: readonly Payment[] | undefined): ExportInput {
  const last = lastPage?.at(-1)
  return last === undefined ? input : { ...input, after: last.id }
}
