import type { Knex } from 'knex'
import { hexToBytes } from '../../domain/hex.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { classifyDatabaseError } from '../../postgres/database-error.ts'
import { copyPaymentTexts } from '../../store/copy-new-payments.ts'
import { lockAccount, logArrivals } from '../../store/payment-changes.ts'
import { encodePaymentRow } from '../../store/payment-copy.ts'
import { findRequestsOfTransactions, settleStored } from '../../store/request-ledger.ts'
import { type NewPayments, originOf, type Unnamed } from '../new-payments.ts'
import { findNames, hasAnyRequest } from './request-names-repository.ts'

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

async function copyAndSettle(trx: Knex.Transaction, stored: NewPayments, now: Date): Promise<void> {
  const { accountId, ids, chunks, unnamed, requestIds, hashes, arrivals } = stored
  const account = await lockAccount(trx, accountId, now)
  const hasRequests = (requestIds.size > 0 || unnamed.length > 0) && (await hasAnyRequest(trx, accountId))
  const payments = unnamed.map(({ payment }) => payment)
  const names = hasRequests ? await findNames(trx, accountId, payments) : NONE
  await copyPaymentTexts(account, [...chunks, rowsOf(accountId, unnamed, names)])
  await logArrivals(account, ids, arrivals)
  if (!hasRequests) return
  const found = await findRequestsOfTransactions(trx, accountId, [...hashes])
  const named = [...new Set([...requestIds, ...names.values()])].map(hexToBytes)
  await settleStored(account, [...named, ...found], new Set(ids))
}

const NONE: ReadonlyMap<number, string> = new Map()

function rowsOf(accountId: number, unnamed: readonly Unnamed[], names: ReadonlyMap<number, string>): Buffer {
  const rows = unnamed.map(({ payment, row }, at) => {
    const requestId = names.get(at)
    return requestId === undefined ? row : encodePaymentRow({ ...payment, requestId }, originOf(accountId, payment))
  })
  return Buffer.from(rows.join(''))
}
