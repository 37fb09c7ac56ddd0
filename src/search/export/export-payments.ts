import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import type { Payment } from '../../domain/payment.ts'
import { requirePaymentId } from '../../domain/require-input.ts'
import { readAllInOrder } from '../../errors/gather-errors.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import type { PaymentFilter, SearchInput } from '../filter/payment-filter.ts'
import { createPaymentRepository } from '../page/payment-repository.ts'
import type { PaymentSearch } from '../page/payment-search.ts'
import type { PagePosition, PageQuery } from '../query/page-query.ts'
import { findEarliestTime } from '../sql/find-earliest-time.ts'
import { findGasElsewhere } from '../sql/gas-once.ts'

/** Which payments are exported. */
export interface ExportQuery {
  readonly knex: Knex
  readonly filter: PaymentFilter
  readonly signal?: AbortSignal | undefined
}

/** Payments read at a time in a snapshot. */
const SNAPSHOT_ROWS = 1_000

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
    const pages = readPages(createPaymentRepository(snapshot), { filter, rows: SNAPSHOT_ROWS }, undefined, signal)
    for await (const page of pages) await write(page)
  }
  return inTransaction(knex, signal, readAll, ofSnapshot)
}

/** The position after a payment, in the order of time. */
function positionAfter({ timestamp, id }: Pick<Payment, 'timestamp' | 'id'>): PagePosition {
  return { keys: [timestamp.toISOString()], id, inclusive: false, direction: 'forward' }
}

/** The pages of all payments that match, oldest first and by id within a second, from after a position. */
async function* readPages(
  repository: ReturnType<typeof createPaymentRepository>,
  terms: Pick<PageQuery, 'filter' | 'rows'>,
  start: PagePosition | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly Payment[]> {
  for (let position = start; ; ) {
    const page = await repository.page({ ...terms, sortBy: 'date', sortOrder: 'asc', position }, signal)
    if (page.length > 0) yield page
    const last = page.at(-1)
    if (last === undefined || page.length < terms.rows) return
    position = positionAfter(last)
  }
}

/** The filters of an export. */
export interface ExportInput extends SearchInput {
  /** The id of the payment after which the export resumes. */
  readonly after?: string | undefined
}

/** A payment of an export. */
export interface ExportedPayment extends Payment {
  /** Set where the gas of its transaction counts for another of the matching payments. */
  readonly gasStandsElsewhere?: true
}

interface ExportPagesOptions {
  readonly knex: Knex
  readonly parseFilter: PaymentSearch['parseFilter']
}

/** Reads where an export resumes. @throws WaybillError INVALID_PAYMENT_ID */
export function readAfter({ after }: ExportInput): string | undefined {
  return after === undefined ? undefined : requirePaymentId('after', after)
}

/** Marks the payments whose gas counts for another. Few have to be looked up: the first event of a transaction has its gas. */
async function markGas(
  knex: Knex,
  filter: PaymentFilter,
  payments: readonly Payment[],
  signal: AbortSignal | undefined,
): Promise<readonly ExportedPayment[]> {
  const uncertain = payments.filter(({ gas, txHash, eventIndex }) => gas && txHash !== undefined && eventIndex !== 0)
  if (uncertain.length === 0) return payments
  const ids = uncertain.map(({ id }) => id)
  const elsewhere = await findGasElsewhere(knex, filter, ids, signal)
  return payments.map((payment) => (elsewhere.has(payment.id) ? { ...payment, gasStandsElsewhere: true } : payment))
}

/** Small pages: what lives longer is promoted to V8's old generation, where it is collected late and the process grows. */
const PAGE_ROWS = 100

/**
 * Makes what reads all payments that match, oldest first and by id within a second, a page at a time. The next page is read when it is asked for.
 *
 * Each page is a statement of its own, so that an export of an hour keeps no snapshot open and vacuum can work. Payments that exist
 * throughout, with unchanged timestamp and match, come exactly once; a payment that is added, changed or deleted meanwhile may be missed.
 * An export that resumes after a payment whose timestamp was changed resumes at the earliest timestamp that it had: some payments may come
 * twice, but none is missed. `confirmations` is known only of final payments.
 *
 * @throws WaybillError of kind INVALID_INPUT for an invalid filter, EXPORT_POSITION_UNKNOWN; the signal's reason when it fires
 */
export function createExportPages({ knex, parseFilter }: ExportPagesOptions) {
  const repository = createPaymentRepository(knex)

  /** The position after which an export begins. */
  async function startOf(accountId: number, id: string, signal: AbortSignal | undefined) {
    const timestamp = await findEarliestTime(knex, { accountId, id }, signal)
    if (timestamp === undefined) throw waybillError('EXPORT_POSITION_UNKNOWN', { field: 'after', value: id })
    return positionAfter({ timestamp, id })
  }

  return async function* exportPages(
    account: Account,
    input: ExportInput,
    signal?: AbortSignal,
  ): AsyncGenerator<readonly ExportedPayment[]> {
    const { filter, after } = await readAllInOrder({
      filter: () => parseFilter(account, input, signal),
      after: () => readAfter(input),
    })
    const position = after === undefined ? undefined : await startOf(account.id, after, signal)
    for await (const page of readPages(repository, { filter, rows: PAGE_ROWS }, position, signal)) {
      yield await markGas(knex, filter, page, signal)
    }
  }
}
