import type { Knex } from 'knex'
import { inTransaction } from '../postgres/cancellable.ts'
import { deletePayments, lockAccounts, readPayments } from './payment-changes.ts'

/** A chain whose rows are to be deleted. */
export interface ForgottenChain {
  /** Canonical name. */
  readonly name: string
  /** CAIP-2. */
  readonly chainId: string
}

/**
 * Deletes everything that is stored of a chain, including requests. Only for the demo, when its chain starts again from nothing: the rows of
 * a real chain are repaired, never deleted.
 *
 * @returns how many rows of accounts were deleted
 */
export function forgetChain(knex: Knex, { name, chainId }: ForgottenChain, now: Date): Promise<number> {
  return inTransaction(knex, undefined, async (trx) => {
    await trx('chain_state').where({ chain_id: chainId }).forUpdate().first()
    const ofChain = { network: name, imported: false }
    const accountIds = await trx('payments').distinct().where(ofChain).pluck<number[]>('account_id')
    let payments = 0
    for (const account of await lockAccounts(trx, accountIds, now)) {
      const gone = await readPayments(account, trx('payments').where({ ...ofChain, account_id: account.accountId }))
      await deletePayments(account, gone)
      payments += gone.size
    }
    const refunds = await trx('refunds').where({ network: name }).delete()
    await trx('removed_events').where({ network: name }).delete()
    const requests = await trx('requests').where({ network: name }).delete(['account_id', 'topic', 'refund_topic'])
    for (const { account_id, topic, refund_topic } of requests) {
      await trx('reference_topics')
        .where({ account_id })
        .whereIn('topic', [topic, refund_topic].filter(Boolean))
        .delete()
    }
    for (const table of [
      'carried_payments',
      'node_limits',
      'unproven_blocks',
      'pending_enrichments',
      'accepted_events',
      'reported_payers',
      'unmatched_events',
      'single_request_proxies',
      'chain_blocks',
      'chain_spans',
      'chain_contracts',
      'chain_reports',
      'chain_state',
    ]) {
      await trx(table).where({ chain_id: chainId }).delete()
    }
    return payments + refunds + requests.length
  })
}
