import type { Migration } from './migration.ts'

/**
 * What the process that follows a chain last told about it, so that any process can answer how the chain does. The indexes are for lists of
 * unmatched events, which are read from the newest, in all or of one account.
 */
const statements = [
  `create table chain_reports (
    chain_id text collate "C" primary key,
    owner text not null,
    written_at timestamptz(3) not null,
    report jsonb not null
  )`,
  `create index unmatched_events_time on unmatched_events (timestamp, chain_id, block_number, tx_hash, event_index, account_id)`,
  `create index unmatched_events_account on unmatched_events (account_id, timestamp, chain_id, block_number, tx_hash, event_index)`,
]

export const chainReports: Migration = {
  name: '0013-chain-reports',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
