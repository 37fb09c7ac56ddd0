import type { Migration } from './migration.ts'

/**
 * Whether more was paid than a request asked for; null where that is not decided: before something covers the request, and in rows that an older
 * process has settled. Lists compute it for those rows, and the service decides them in batches. A process of an older version that adds a
 * payment to a request that is decided does not change it; the next settling does, or `waybill check --repair`.
 */
export const overpaidRequests: Migration = {
  name: '0018-overpaid-requests',
  locks: [{ table: 'requests', mode: 'ACCESS EXCLUSIVE', passes: 0 }],
  async up(knex) {
    await knex.raw('alter table requests add column overpaid boolean')
  },
}

/**
 * For filters of which few requests are left: over-paid ones with those that are not decided yet, cancelled ones, and those of unpaid requests
 * (status OPEN or PARTIALLY_PAID) by their expiry. What else lists are filtered by is in the index, so that other rows are passed over without
 * being read.
 */
export const requestFlagIndexes: Migration = {
  name: '0018-overpaid-requests-indexes',
  indexes: [
    {
      build: 'requests_overpaid',
      table: 'requests',
      definition: '(account_id, status, created_at, request_id) where overpaid is not false and status > 2',
    },
    {
      build: 'requests_cancelled',
      table: 'requests',
      definition: `(account_id, status, created_at, request_id) include (payee, network, payment_currency, invoice_currency)
        where cancelled_at is not null`,
    },
    {
      build: 'requests_unpaid',
      table: 'requests',
      definition: '(account_id, status, created_at, request_id) include (expires_at, cancelled_at) where status <= 2',
    },
  ],
}
