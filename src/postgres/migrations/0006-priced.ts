import type { Migration } from './migration.ts'

/**
 * `priced`: whether any payment of a combination may have an amount in US dollars. Like the times it is only ever widened: it becomes true
 * and stays true. When it becomes true the combination gets a new `seq`, because readers rely on it up to the `seq` that they know.
 *
 * The index by month gets status and networks, so that a date range ordered by US dollars can be walked with those filters.
 */
const statements = [
  // No payment may be written between this update and the first writer that keeps `priced`. Everybody who uses both tables takes this one
  // first; locked second, a search could hold it and wait for the other while the index waits for the search: a deadlock
  `lock table payments in access exclusive mode`,
  `alter table payment_statistics add column priced boolean not null default true`,
  `update payment_statistics s set priced = false
  from (
    select account_id, network, coalesce(source_network, '') as source_network, currency, coalesce(invoice_currency, '') as invoice_currency,
      coalesce(type, -1) as type, status
    from payments group by 1, 2, 3, 4, 5, 6, 7 having count(amount_in_usd) = 0
  ) u
  where s.account_id = u.account_id and s.network = u.network and s.source_network = u.source_network and s.currency = u.currency
    and s.invoice_currency = u.invoice_currency and s.type = u.type and s.status = u.status`,
  `drop index payments_month_usd`,
  `create index payments_month_usd on payments
   (account_id, date_bin('30 days', timestamp, '2000-01-01 00:00:00+00'::timestamptz), amount_in_usd, id)
   include (timestamp, status, network, source_network)`,
]

export const priced: Migration = {
  name: '0006-priced',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
