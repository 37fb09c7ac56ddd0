import type { Migration } from './migration.ts'

/**
 * Wallets from which an account refunds, and events that an operator accepted for an account although the rules do not count them. A
 * removed wallet keeps its row, because a refund is judged by the wallets registered at its time. Entries of the audit log no longer need a
 * key.
 */
const statements = [
  `create table refund_wallets (
    account_id integer not null,
    address bytea not null,
    registration integer not null,
    registered_at timestamptz(3) not null,
    removed_at timestamptz(3),
    note text,
    primary key (account_id, address, registration)
  )`,
  `create unique index refund_wallets_in_force on refund_wallets (account_id, address) where removed_at is null`,
  `create table accepted_events (
    account_id integer not null,
    chain_id text collate "C" not null,
    tx_hash bytea not null,
    event_index integer not null,
    accepted_as text not null,
    topic bytea not null,
    event jsonb not null,
    accepted_by text not null,
    accepted_at timestamptz(3) not null,
    note text not null,
    primary key (account_id, chain_id, tx_hash, event_index)
  )`,
  `alter table audit_log alter column key_id drop not null`,
]

export const refundWallets: Migration = {
  name: '0008-refund-wallets',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
