import type { Migration } from './migration.ts'

/**
 * Statistics and the change log of payments. All three tables hold an account's rows. Only `payment-changes.ts` writes them, in the
 * transaction that writes the payments.
 *
 * - `account_changes`: one row an account. Writers lock it, so the order of changes is the order of commits. `pruned_change` is the
 *   highest change that was pruned.
 * - `payment_changes`: the log; numbers have no gaps within an account. `old` is the row of `payments` before the change, null for an
 *   insert. `kind`: 1 insert, 2 update, 3 delete.
 * - `payment_statistics`: the exact number of payments of each combination, and times that bound them; the bounds are never narrowed.
 *   Unknown values: `source_network` and `invoice_currency` '', `type` -1.
 */
const statements = [
  `create table account_changes (
    account_id integer primary key,
    last_change bigint not null default 0,
    pruned_change bigint not null default 0
  ) with (fillfactor = 50)`,
  `create table payment_changes (
    account_id integer not null,
    change bigint not null,
    kind smallint not null,
    payment_id uuid not null,
    at timestamptz(3) not null,
    old jsonb,
    primary key (account_id, change)
  )`,
  `create index payment_changes_payment on payment_changes (account_id, payment_id, change) where old is not null`,
  `create table payment_statistics (
    account_id integer not null,
    network text collate "C" not null,
    source_network text collate "C" not null,
    currency text collate "C" not null,
    currency_symbol text collate "C" not null,
    invoice_currency text collate "C" not null,
    type smallint not null,
    status smallint not null,
    n bigint not null,
    first_at timestamptz(0) not null,
    last_at timestamptz(0) not null,
    primary key (account_id, network, source_network, currency, invoice_currency, type, status)
  ) with (fillfactor = 70)`,
  // No payment may be written between this count and the first writer that keeps it up to date
  `lock table payments in share row exclusive mode`,
  `insert into payment_statistics (account_id, network, source_network, currency, currency_symbol, invoice_currency, type, status,
    n, first_at, last_at)
  select account_id, network, coalesce(source_network, ''), currency, min(currency_symbol), coalesce(invoice_currency, ''),
    coalesce(type, -1), status, count(*), min(timestamp), max(timestamp)
  from payments group by 1, 2, 3, 4, 6, 7, 8`,
  `insert into account_changes (account_id) select distinct account_id from payment_statistics`,
]

export const paymentChanges: Migration = {
  name: '0002-payment-changes',
  async up(knex) {
    for (const statement of statements) await knex.raw(statement)
  },
}
