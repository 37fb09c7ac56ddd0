import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import type { Payment } from '../../domain/payment.ts'
import { parsePaymentId } from '../../domain/payment-id.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import type { SearchInput } from '../filter/search-input.ts'
import type { PagePosition } from '../page/search-cursor.ts'
import { findEarliestTime } from '../sql/export-position-repository.ts'
import { createPaymentRepository } from '../sql/payment-repository.ts'
import { positionBehind } from './export-payments.ts'

/** The filters of an export, and behind which payment it is to go on. */
export interface ExportInput extends SearchInput {
  readonly after?: string | undefined
}

/**
 * Reads all payments that match, oldest first, and by id within a second, a page at a time: the next one is read when it is asked for.
 *
 * Each page is a statement of its own, so that an export which takes an hour holds nothing in the database back. Payments that are there
 * throughout, with unchanged time and match, come exactly once; one that comes, moves or goes meanwhile may be missed. An export that
 * goes on behind a payment which has moved goes on at the earliest place that it had, so that some may come twice, and none is missed for it.
 * Confirmations stand only with payments that are final.
 *
 * @throws WaybillError of kind INVALID_INPUT for what cannot be read, EXPORT_POSITION_UNKNOWN; the signal's reason when it fires
 */
export type ExportPages = (
  account: Account,
  input: ExportInput,
  signal?: AbortSignal,
) => AsyncGenerator<readonly Payment[]>

export interface ExportPagesOptions {
  readonly knex: Knex
  readonly parseFilter: (account: Account, input: SearchInput, signal?: AbortSignal) => Promise<PaymentFilter>
  /** Payments read at a time; default 100. */
  readonly pageRows?: number
}

/** What outlives one page grows old before it is collected, and the process with it. */
const PAGE_ROWS = 100

export function createExportPages({ knex, parseFilter, pageRows = PAGE_ROWS }: ExportPagesOptions): ExportPages {
  const repository = createPaymentRepository(knex)

  async function begin(accountId: number, after: string | undefined, signal: AbortSignal | undefined) {
    if (after === undefined) return undefined
    const id = parsePaymentId(after)
    if (id === undefined) throw waybillError('INVALID_PAYMENT_ID', { field: 'after', value: after })
    const timestamp = await findEarliestTime(knex, { accountId, id }, signal)
    if (timestamp === undefined) throw waybillError('EXPORT_POSITION_UNKNOWN', { field: 'after', value: id })
    return positionBehind({ timestamp, id })
  }

  return async function* readPages(account, input, signal) {
    const filter = await parseFilter(account, input, signal)
    let position: PagePosition | undefined = await begin(account.id, input.after, signal)
    for (;;) {
      const query = { filter, sortBy: 'date', sortOrder: 'asc', rows: pageRows, position } as const
      const payments = await repository.page(query, signal)
      if (payments.length > 0) yield payments
      const last = payments.at(-1)
      if (last === undefined || payments.length < pageRows) return
      position = positionBehind(last)
    }
  }
}
