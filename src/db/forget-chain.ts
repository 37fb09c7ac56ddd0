import type { Knex } from 'knex'
import { inTransaction } from './cancellable.ts'

/** A chain whose rows are to go. */
export interface ForgottenChain {
  /** Canonical name. */
  readonly name: string
  /** CAIP-2. */
  readonly chainId: string
}

/**
 * Removes everything that was stored of a chain, requests included. For the demo alone, when its chain has begun anew:
 * a real chain's rows are repaired, never dropped.
 *
 * @returns how many rows of accounts went
 */
export function forgetChain(knex: Knex, { name, chainId }: ForgottenChain): Promise<number> {
  return inTransaction(knex, undefined, async (trx) => {
    const payments = await trx('payments').where({ network: name, imported: false }).delete()
    const refunds = await trx('refunds').where({ network: name }).delete()
    const requests = await trx('requests').where({ network: name }).delete(['account_id', 'topic', 'refund_topic'])
    for (const { account_id, topic, refund_topic } of requests) {
      await trx('reference_topics')
        .where({ account_id })
        .whereIn('topic', [topic, refund_topic].filter(Boolean))
        .delete()
    }
    for (const table of ['unmatched_events', 'chain_blocks', 'chain_contracts', 'chain_state']) {
      await trx(table).where({ chain_id: chainId }).delete()
    }
    return payments + refunds + requests.length
  })
}
