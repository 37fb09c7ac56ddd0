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
