import type { Migration } from './migration.ts'

/**
 * A local queue: transactions with payments of which a figure is unknown that may be readable later (a price, a trace, a fee). `due_at` is null where it
 * is not looked up any more. Beside it, where on a source chain the origin of a bridge payment was seen, until that block is final.
 */
const statements = [
  `create table pending_enrichments (
    chain_id text collate "C" not null,
    account_id integer not null,
    tx_hash bytea not null,
    block_number bigint not null,
    lacks text[] not null,
    attempts integer not null default 0,
    queued_at timestamptz(3) not null,
    due_at timestamptz(3),
    primary key (chain_id, account_id, tx_hash)
  )`,
  `create index pending_enrichments_due on pending_enrichments (chain_id, due_at) where due_at is not null`,
  `create index pending_enrichments_block on pending_enrichments (chain_id, block_number)`,
  `alter table carried_payments add column source_chain_id text collate "C"`,
  `alter table carried_payments add column source_tx_hash bytea`,
  `alter table carried_payments add column source_block_number bigint`,
  `alter table carried_payments add column source_block_hash bytea`,
]

export const pendingEnrichments: Migration = {
  name: '0014-pending-enrichments',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
