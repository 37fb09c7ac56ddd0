import type { Knex } from 'knex'
import { inTransaction } from '../postgres/cancellable.ts'
import { requestPages } from './check-account.ts'
import { lockAccount } from './payment-changes.ts'
import { claimPayments, settleStored } from './request-ledger.ts'

/**
 * Makes anew what is derived of an account's payments: requests are settled, and then everything is counted. Its writers wait until that is
 * done.
 *
 * @param isLogWrong - the log of changes is dropped, so that nobody is told half of what happened
 */
export function repairAccount(
  knex: Knex,
  accountId: number,
  {
    now,
    isLogWrong,
    signal,
  }: { readonly now: Date; readonly isLogWrong: boolean; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  return inTransaction(knex, signal, async (trx) => {
    const account = await lockAccount(trx, accountId, now)
    for await (const page of requestPages(trx, accountId)) {
      const ids = page.map(({ request_id }) => request_id)
      await claimPayments(account, ids)
      await settleStored(account, ids)
    }
    await trx('payment_statistics').where({ account_id: accountId }).delete()
    await trx.raw(COUNT, [accountId])
    if (!isLogWrong) return
    await trx('payment_changes').where({ account_id: accountId }).delete()
    await trx.raw('update account_changes set pruned_change = last_change where account_id = ?', [accountId])
  })
}

const COUNT = `
  insert into payment_statistics (account_id, network, source_network, currency, currency_symbol, invoice_currency, type, status,
    n, priced, first_at, last_at)
  select account_id, network, coalesce(source_network, ''), currency, min(currency_symbol), coalesce(invoice_currency, ''),
    coalesce(type, -1), status, count(*), bool_or(amount_in_usd is not null), min(timestamp), max(timestamp)
  from payments where account_id = ? group by 1, 2, 3, 4, 6, 7, 8`
