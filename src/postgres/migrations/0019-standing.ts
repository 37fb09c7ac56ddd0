import type { Migration } from './migration.ts'

/**
 * What payments and refunds make of a request, beside its status: `paid` by final payments, `pending` by others, `held` of all less what was
 * returned. In rows of before it they are 0 until their request is settled again: `waybill check --repair` settles all.
 */
export const requestStanding: Migration = {
  name: '0019-standing',
  locks: [{ table: 'requests', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  async up(knex) {
    await knex.raw(`alter table requests
      add column paid numeric default 0,
      add column pending numeric default 0,
      add column held numeric default 0`)
  },
}

/** Who received a refund, and where its event stands in its block. */
export const refundRecipients: Migration = {
  name: '0019-standing-refunds',
  locks: [{ table: 'refunds', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  async up(knex) {
    await knex.raw('alter table refunds add column recipient bytea, add column log_index integer')
  },
}

/** Where the event of a payment stands in its block: the order of the chain. */
export const paymentPlaces: Migration = {
  name: '0019-standing-payments',
  locks: [{ table: 'payments', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  async up(knex) {
    await knex.raw('alter table payments add column log_index integer')
  },
}

/** `held` says what was returned. */
export const droppedSurplus: Migration = {
  name: '0019-standing-surplus',
  locks: [{ table: 'requests', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  contract: { unusedSince: '0019-standing' },
  async up(knex) {
    await knex.raw('alter table requests drop column surplus_returned')
  },
}

/** For searches by the hash of a refund. Few payments have one. */
export const refundHashes: Migration = {
  name: '0019-standing-refund-hashes',
  indexes: [
    {
      build: 'payments_refund_tx',
      table: 'payments',
      definition: "using gin (refunds jsonb_path_ops) where refunds <> '[]'",
    },
  ],
}

/** Who paid what a bridge delivered, as the bridge told it, by event. */
export const toldPayers: Migration = {
  name: '0019-standing-told-payers',
  async up(knex) {
    await knex.raw(`create table told_payers (
      account_id int not null,
      chain_id text collate "C" not null,
      tx_hash bytea not null,
      event_index int not null,
      payment_id uuid not null,
      topic bytea not null,
      payer bytea not null,
      source_tx_hash bytea not null,
      is_proven boolean not null,
      primary key (account_id, chain_id, tx_hash, event_index)
    )`)
  },
}
