import type { Knex } from 'knex'
import { addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { copyText } from '../../postgres/copy-rows.ts'
import { classifyDatabaseError } from '../../postgres/database-error.ts'
import { lockAccount, logArrivals } from '../../store/payment-changes.ts'
import { encodePaymentRow } from '../../store/payment-copy.ts'
import { paymentColumns } from '../../store/payment-row.ts'
import { settleStored } from '../../store/request-ledger.ts'
import { type NewPayments, originOf, type Unnamed } from '../new-payments.ts'

/**
 * Stores payments in one transaction by COPY.
 *
 * @returns false when nothing was stored, because the id or event of a payment is stored already
 */
export async function storeNewPayments(knex: Knex, payments: NewPayments, now: Date): Promise<boolean> {
  try {
    await inTransaction(knex, undefined, (trx) => copyAndSettle(trx, payments, now))
    return true
  } catch (error) {
    const kind = classifyDatabaseError(error)
    if (kind === 'unique' || kind === 'serialization') return false
    throw error
  }
}

async function copyAndSettle(trx: Knex.Transaction, payments: NewPayments, now: Date): Promise<void> {
  const { accountId, ids, chunks, unnamed, requestIds, arrivals } = payments
  const account = await lockAccount(trx, accountId, now)
  const hasRequests = (requestIds.size > 0 || unnamed.length > 0) && (await findAnyRequest(trx, accountId))
  const names = hasRequests ? await findNames(trx, accountId, unnamed) : NONE
  await copyText(trx, { table: 'payments', columns: paymentColumns }, [...chunks, rowsOf(accountId, unnamed, names)])
  await logArrivals(account, ids, arrivals)
  if (hasRequests) await settleStored(account, [...new Set([...requestIds, ...names.values()])].map(hexToBytes))
}

const NONE: ReadonlyMap<number, string> = new Map()

function rowsOf(accountId: number, unnamed: readonly Unnamed[], names: ReadonlyMap<number, string>): Buffer {
  const rows = unnamed.map(({ payment, row }, at) => {
    const requestId = names.get(at)
    return requestId === undefined ? row : encodePaymentRow({ ...payment, requestId }, originOf(accountId, payment))
  })
  return Buffer.from(rows.join(''))
}

/** Many accounts have no requests; this saves them the queries below. */
async function findAnyRequest(trx: Knex, accountId: number): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: unknown[] }>('select from requests where account_id = ? limit 1', [accountId])
  return rows.length > 0
}

/** @returns request ids by the payment's index in `unnamed` */
async function findNames(
  trx: Knex,
  accountId: number,
  unnamed: readonly Unnamed[],
): Promise<ReadonlyMap<number, string>> {
  if (unnamed.length === 0) return NONE
  const bindings: unknown[] = [
    unnamed.map(({ payment }) => hexToBytes(payment.paymentReference ?? '')),
    unnamed.map(({ payment }) => payment.network),
    unnamed.map(({ payment }) => (payment.payee === undefined ? null : addressToBytes(payment.payee))),
    accountId,
  ]
  const found = await trx.raw<{ rows: { nth: bigint; request_id: Buffer }[] }>(
    FIND_NAMES,
    bindings as Knex.RawBinding[],
  )
  return new Map(found.rows.map(({ nth, request_id: id }) => [Number(nth) - 1, id.toString('hex')]))
}

/** The rules by which an event counts for a request, as far as a payment has their fields. Of several requests the oldest counts. */
const FIND_NAMES = `
  select k.nth, r.request_id
  from unnest(?::bytea[], ?::text[], ?::bytea[]) with ordinality as k(payment_reference, network, payee, nth)
  cross join lateral (
    select request_id from requests
    where account_id = ? and payment_reference = k.payment_reference and network = k.network
      and (k.payee is null or payee = k.payee)
    order by created_at, request_id limit 1) r`
