import type { Knex } from 'knex'
import { hexToBytes } from '../../domain/hex.ts'
import type { PaymentRequest } from '../../domain/payment-request.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { type RequestRow, requestOfRow } from './request-repository.ts'

/** Requests held in memory at once. */
const ROWS_A_PAGE = 1_000

/**
 * Reads all requests of an account in one snapshot, oldest first, one page at a time.
 *
 * @throws the signal's reason when it fires
 */
export function exportRequests(
  { knex, accountId, signal }: { readonly knex: Knex; readonly accountId: number; readonly signal?: AbortSignal },
  onPage: (page: readonly PaymentRequest[]) => Promise<void>,
): Promise<void> {
  return inTransaction(
    knex,
    signal,
    async (trx) => {
      let last: PaymentRequest | undefined
      for (;;) {
        const page = await readPage(trx, accountId, last)
        last = page.at(-1)
        if (last === undefined) return
        await onPage(page)
      }
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  )
}

async function readPage(trx: Knex, accountId: number, after: PaymentRequest | undefined): Promise<PaymentRequest[]> {
  const rows = await trx<RequestRow>('requests')
    .where({ account_id: accountId })
    .modify((query) => {
      if (after === undefined) return
      void query.whereRaw('(created_at, request_id) > (?, ?)', [after.createdAt, hexToBytes(after.requestId)])
    })
    .orderBy(['created_at', 'request_id'])
    .limit(ROWS_A_PAGE)
  return rows.map(requestOfRow)
}
