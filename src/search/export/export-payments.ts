import type { Knex } from 'knex'
import type { Payment } from '../../domain/payment.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import { createPaymentRepository } from '../page/payment-repository.ts'
import type { PagePosition } from '../query/search-cursor.ts'

/** Which payments are exported. */
export interface ExportQuery {
  readonly knex: Knex
  readonly filter: PaymentFilter
  readonly signal?: AbortSignal | undefined
}

/** Payments read at a time. */
const PAGE_ROWS = 1_000

/**
 * Reads all payments that match, oldest first and by id within a second.
 *
 * They are read by keyset pages in one repeatable-read transaction, so that none is missed or doubled whatever changes meanwhile.
 * `confirmations` is known only of final payments.
 *
 * @param write - takes a page at a time; the next one is read when its promise resolves
 * @throws what `write` throws; the signal's reason when it fires
 */
export function exportPayments(
  { knex, filter, signal }: ExportQuery,
  write: (page: readonly Payment[]) => Promise<void>,
): Promise<void> {
  const ofSnapshot = { isolationLevel: 'repeatable read', readOnly: true } as const
  const readAll = async (snapshot: Knex.Transaction) => {
    const repository = createPaymentRepository(snapshot)
    let position: PagePosition | undefined
    do {
      const query = { filter, sortBy: 'date', sortOrder: 'asc', rows: PAGE_ROWS, position } as const
      const page = await repository.page(query, signal)
      await write(page)
      const last = page.length < PAGE_ROWS ? undefined : page.at(-1)
      position = last && positionAfter(last)
    } while (position !== undefined)
  }
  return inTransaction(knex, signal, readAll, ofSnapshot)
}

/** The position after a payment, in the order of time. */
export function positionAfter({ timestamp, id }: Pick<Payment, 'timestamp' | 'id'>): PagePosition {
  return { keys: [timestamp.toISOString()], id, inclusive: false, direction: 'forward' }
}
