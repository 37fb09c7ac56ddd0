import type { Knex } from 'knex'
import { type Hex, hexToBytes } from '../domain/hex.ts'
import type { UnmatchedEvent } from './detected.ts'

const ROWS_A_STATEMENT = 500

/** Stores events that change no balance; one that is stored already is replaced. */
export async function storeUnmatched(trx: Knex, chainId: string, events: readonly UnmatchedEvent[]): Promise<void> {
  const rows = events.map((event) => ({
    chain_id: chainId,
    tx_hash: hexToBytes(event.txHash),
    event_index: event.eventIndex,
    account_id: event.accountId,
    reason: event.reason,
    topic: hexToBytes(event.topic),
    block_number: event.blockNumber,
    timestamp: event.timestamp,
    event: JSON.stringify(event.event),
  }))
  for (let from = 0; from < rows.length; from += ROWS_A_STATEMENT) {
    await trx('unmatched_events')
      .insert(rows.slice(from, from + ROWS_A_STATEMENT))
      .onConflict(['chain_id', 'tx_hash', 'event_index', 'account_id'])
      .merge(['reason', 'topic', 'block_number', 'timestamp', 'event'])
  }
}

/** What an account no longer counts as unmatched: its own rows and nobody's, of these transactions and topics. */
export async function forgetUnmatched(
  trx: Knex,
  chainId: string,
  forgotten: { readonly accountId: number; readonly txHashes: Iterable<Hex>; readonly topics: Iterable<Hex> },
): Promise<void> {
  const { accountId, txHashes, topics } = forgotten
  await trx.raw(
    `delete from unmatched_events
     where chain_id = ? and tx_hash = any(?) and topic = any(?) and account_id = any(?)`,
    [chainId, [...txHashes].map(hexToBytes), [...topics].map(hexToBytes), [0, accountId]],
  )
}

/**
 * Keeps a chain's latest events of unknown topics, and as many that are unmatched for accounts: anybody can make either for the
 * price of a transaction. Those in blocks that are not final stay, whatever their number.
 */
export async function pruneUnmatched(knex: Knex, chainId: string, keep: number): Promise<void> {
  for (const whose of ['account_id = 0', 'account_id <> 0']) {
    await knex.raw(
      `delete from unmatched_events where chain_id = :chainId and ${whose}
         and block_number < (
           select block_number from unmatched_events where chain_id = :chainId and ${whose}
           order by block_number desc offset :before limit 1)
         and block_number <= (select final_block from chain_state where chain_id = :chainId)`,
      { chainId, before: keep - 1 },
    )
  }
}
