import type { Migration } from './migration.ts'

/** A local queue: payments delivered by a bridge whose payer, source network and source transaction are not known yet. */
const statements = [
  `create table carried_payments (
    account_id integer not null,
    payment_id uuid not null,
    chain_id text collate "C" not null,
    tx_hash bytea not null,
    attempts integer not null default 0,
    due_at timestamptz(3) not null,
    primary key (account_id, payment_id)
  )`,
  `create index carried_payments_due on carried_payments (due_at)`,
]

export const carriedPayments: Migration = {
  name: '0007-carried-payments',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
