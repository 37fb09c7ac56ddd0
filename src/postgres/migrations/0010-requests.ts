import type { TransactionMigration } from './migration.ts'

/**
 * Expiry, cancelling and filters of requests, in three steps, so that no step holds the lock of another while it works.
 *
 * `status` is the rank of the request's status (`requestStatuses`, from 1). It is derived from the payments and written when they are
 * settled, so that lists are filtered by it without reading payments. A process of an older version does not write it; after such a process
 * ran beside newer ones, `waybill check --repair` corrects it.
 */

/** Locks the table for milliseconds: nothing is rewritten. */
export const requestColumns: TransactionMigration = {
  name: '0010-requests',
  async up(knex) {
    await knex.raw(`alter table requests
      add column expires_at timestamptz(3),
      add column cancelled_at timestamptz(3),
      add column status smallint not null default 1`)
  },
}

/**
 * Writers of payments and requests wait; reads continue. The lock is the one that writers of an account take first, so that nothing a
 * status is derived from changes until it is written.
 */
export const requestStatus: TransactionMigration = {
  name: '0010-requests-backfill',
  async up(knex) {
    await knex.raw('lock table account_changes in exclusive mode')
    await knex.raw(`
      update requests set status = s.status
      from (
        select r.account_id, r.request_id, case
          when sum(counted) > 0 and bool_and(p.status = 4) filter (where counted > 0) then 5
          when coalesce(sum(counted) filter (where final), 0) >= r.amount then 4
          when sum(counted) >= r.amount then 3
          when sum(counted) > 0 then 2
          else 1 end as status
        from requests r
        join payments p on p.account_id = r.account_id and p.request_id = r.request_id and p.status <> 5
        cross join lateral (
          select coalesce(p.invoice_amount, case when p.currency = r.invoice_currency then p.amount end, 0) as counted
        ) worth
        group by r.account_id, r.request_id, r.amount
      ) s
      where requests.account_id = s.account_id and requests.request_id = s.request_id and s.status <> 1`)
  },
}

/** Storing and settling requests waits until the indexes are built; reads continue. */
export const requestIndexes: TransactionMigration = {
  name: '0010-requests-indexes',
  async up(knex) {
    for (const statement of indexes) await knex.raw(statement)
  },
}

/**
 * The status comes before the time, so that a list of one or more statuses is read in the order of the answer. In the indexes by network
 * and by payee the combinations of network and currencies follow one another: a list jumps from one to the next and reads the newest
 * requests of each.
 */
const indexes = [
  `create index requests_status on requests (account_id, status, created_at, request_id)`,
  `create index requests_cell on requests
   (account_id, network, payment_currency, invoice_currency, status, created_at, request_id)`,
  `create index requests_payee on requests
   (account_id, payee, network, payment_currency, invoice_currency, status, created_at, request_id)`,
  `create index requests_merchant_reference on requests (account_id, reference, status, created_at, request_id)
   where reference is not null`,
]
