import type { Migration } from './migration.ts'

/**
 * `priced`: whether the US dollars of any payment of a combination may be known. A superset, as the times are: it is never taken back, but
 * where nothing is known of it, it is so. Where it comes to be, the combination has a new `seq`, since whoever relies on it knows all up to
 * a `seq`.
 *
 * The index of months gets what is asked most beside dates, so that a range of dates by US dollars is walked whatever the network.
 */
const statements = [
  // Nobody writes between what is found here and the first writer that keeps it. Whoever reads or writes both tables begins with this one:
  // were it taken second, a search would hold it and wait for the other, and the index would wait for the search.
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
