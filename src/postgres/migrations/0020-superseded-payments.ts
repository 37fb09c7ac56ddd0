import type { Migration } from './migration.ts'

/** Whether an imported payment counts nowhere. Those are few, and sums leave them out by their ids. */
export const supersededPayments: Migration = {
  name: '0020-superseded-payments',
  locks: [{ table: 'payments', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  async up(knex) {
    await knex.raw('alter table payments add column superseded boolean default false')
  },
}

export const supersededIndex: Migration = {
  name: '0020-superseded-payments-index',
  indexes: [{ build: 'payments_superseded', table: 'payments', definition: '(account_id, id) where superseded' }],
}

/** The `updatedAt` of the line that a payment was written from. Settling moves the payment's own. */
export const lineTimes: Migration = {
  name: '0020-superseded-payments-lines',
  locks: [{ table: 'payments', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  async up(knex) {
    await knex.raw('alter table payments add column line_updated_at timestamptz(3)')
  },
}

/** Transactions in which detection had counted an event of a request that a reorg removed: imported payments of them count nothing. */
export const removedEvents: Migration = {
  name: '0020-superseded-payments-removed',
  async up(knex) {
    await knex.raw(`create table removed_events (
      account_id integer not null,
      network text collate "C" not null,
      tx_hash bytea not null,
      request_id bytea not null,
      primary key (account_id, tx_hash, network, request_id)
    )`)
  },
}
