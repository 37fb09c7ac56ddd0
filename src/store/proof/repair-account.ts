import type { Knex } from 'knex'
import { inTransaction } from '../../postgres/cancellable.ts'
import { lockAccount, STORE_ENTRIES } from '../payment-changes.ts'
import { claimPayments, requestPages, settleStored } from '../request-ledger.ts'
import { COUNT_PAYMENTS } from './check-account.ts'

export interface RepairOptions {
  readonly now: Date
  /** Whether the log of changes is wrong. It is then dropped, so that no reader gets a part of what happened. */
  readonly isLogWrong: boolean
  readonly signal?: AbortSignal | undefined
}

/** Rebuilds an account's derived rows: settles its requests, then counts its payments and indexes their metadata. The account's writers wait until it is done. */
export function repairAccount(
  knex: Knex,
  accountId: number,
  { now, isLogWrong, signal }: RepairOptions,
): Promise<void> {
  return inTransaction(knex, signal, async (trx) => {
    const account = await lockAccount(trx, accountId, now)
    for await (const page of requestPages(trx, accountId)) {
      const ids = page.map(({ request_id }) => request_id)
      await claimPayments(account, ids)
      await settleStored(account, ids)
    }
    await trx('payment_statistics').where({ account_id: accountId }).delete()
    await trx.raw(STORE_COUNTS, [accountId, accountId])
    await trx('payment_metadata').where({ account_id: accountId }).delete()
    await trx.raw(STORE_ENTRIES, [accountId])
    if (!isLogWrong) return
    await trx('payment_changes').where({ account_id: accountId }).delete()
    await trx.raw('update account_changes set pruned_change = last_change where account_id = ?', [accountId])
  })
}

/** Binds the account twice. */
const STORE_COUNTS = `
  insert into payment_statistics (account_id, network, source_network, currency, currency_symbol, invoice_currency, type, status,
    n, first_at, last_at)
  select ?::int, counted.* from (${COUNT_PAYMENTS}) counted`
