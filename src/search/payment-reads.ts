import type { Knex } from 'knex'
import type { Account } from '../domain/account.ts'
import type { Payment } from '../domain/payment.ts'
import type { ReadPools } from '../postgres/replicas/read-pools.ts'
import { createExportPages, type ExportInput, type ExportPages } from './export/export-pages.ts'
import type { SearchInput } from './filter/search-input.ts'
import { createPaymentSearch, type PaymentSearch, type PaymentSearchOptions } from './page/payment-search.ts'
import { searchSeal, seenOfCursor } from './page/search-cursor.ts'
import { createSummarizePayments, type SummarizePayments } from './totals/summarize-payments.ts'

/** All that reads payments for callers and changes nothing. */
export interface PaymentReads {
  readonly search: PaymentSearch['search']
  readonly getPayment: (account: Account, id: string, signal?: AbortSignal) => Promise<Payment>
  readonly summarize: SummarizePayments
  readonly readExport: ExportPages
}

/** Reads from one pool. */
export function createPaymentReads(options: PaymentSearchOptions): PaymentReads {
  const { knex } = options
  const payments = createPaymentSearch(options)
  const parseFilter: PaymentSearch['parseFilter'] = (...asked) => payments.parseFilter(...asked)
  return {
    search: (...asked) => payments.search(...asked),
    getPayment: (...asked) => payments.get(...asked),
    summarize: createSummarizePayments({ knex, parseFilter }),
    readExport: createExportPages({ knex, parseFilter }),
  }
}

/** Reads from a primary or its replicas; cursors carry what their callers have seen. */
export function createPooledReads(pools: ReadPools, options: Omit<PaymentSearchOptions, 'knex'>): PaymentReads {
  const readsByPool = new Map(pools.pools.map((knex) => [knex, createPaymentReads({ ...options, knex })]))
  const on = (pool: Knex): PaymentReads => {
    const reads = readsByPool.get(pool)
    if (reads === undefined) throw new TypeError('the pool is none of those that there are')
    return reads
  }
  const seenIn = (accountId: number, { cursor }: SearchInput): bigint | undefined => {
    const seen = cursor === undefined ? undefined : seenOfCursor(searchSeal(options.cursorSecret, accountId), cursor)
    return seen === undefined ? undefined : BigInt(seen)
  }
  return {
    search: (account, input, signal) =>
      pools.read({ accountId: account.id, signal, atLeast: seenIn(account.id, input) }, (pool, until, position) =>
        on(pool).search(account, input, until, position),
      ),
    getPayment: (account, id, signal) =>
      pools.read({ accountId: account.id, signal }, (pool, until) => on(pool).getPayment(account, id, until)),
    summarize: (account, input, signal) =>
      pools.read({ accountId: account.id, signal }, (pool, until) => on(pool).summarize(account, input, until)),
    readExport: (account, input, signal) =>
      pools.readPieces({ accountId: account.id, signal }, (pool, until, behind: readonly Payment[] | undefined) =>
        on(pool).readExport(account, goingOn(input, behind), until),
      ),
  }
}

function goingOn(input: ExportInput, behind: readonly Payment[] | undefined): ExportInput {
  const last = behind?.at(-1)
  return last === undefined ? input : { ...input, after: last.id }
}
