import { copyRows } from '../postgres/copy-rows.ts'
import { type LockedAccount, logArrivals } from './payment-changes.ts'
import { type PaymentRow, paymentColumns } from './payment-row.ts'
import { countMoves } from './payment-statistics.ts'

/** Stores payments whose ids and events are not stored yet, by COPY: a third of the time that INSERT takes. */
export async function copyNewPayments(account: LockedAccount, rows: readonly PaymentRow[]): Promise<void> {
  const target = { table: 'payments', columns: paymentColumns }
  await copyRows(
    account.trx,
    target,
    rows.map((row) => paymentColumns.map((column) => row[column])),
  )
  const ids = rows.map(({ id }) => id)
  const arrivals = countMoves(rows.map((after) => ({ id: after.id, before: undefined, after })))
  await logArrivals(account, ids, arrivals)
}
