import type { Knex } from 'knex'

/**
 * An account whose payments nobody else can write until the transaction ends, and whose changes are therefore in the order of commits.
 * {@link lockAccounts} makes it.
 */
export interface LockedAccount {
  readonly trx: Knex.Transaction
  readonly accountId: number
  /** What the log says of when its changes were made. */
  readonly at: Date
}

/** A statement on `payments` (named so, without alias) that ends before its RETURNING. Bindings stand at `?`. */
export interface PaymentStatement {
  readonly sql: string
  readonly bindings: readonly unknown[]
}

/**
 * Locks accounts for writing their payments, in ascending order. Whoever writes payments calls it before it reads what it is going to
 * change, after the state of a chain (which only detection locks) and before any other lock; so writers never wait for one another in
 * a circle. An account that is locked already may be locked again.
 *
 * @returns the locked accounts, ascending
 */
export async function lockAccounts(
  trx: Knex.Transaction,
  accountIds: readonly number[],
  at: Date,
): Promise<LockedAccount[]> {
  const locked: LockedAccount[] = []
  for (const accountId of [...new Set(accountIds)].toSorted((a, b) => a - b)) {
    locked.push(await lockAccount(trx, accountId, at))
  }
  return locked
}

/** Locks one account. One that writes to several takes {@link lockAccounts}, or this in ascending order. */
export async function lockAccount(trx: Knex.Transaction, accountId: number, at: Date): Promise<LockedAccount> {
  if (!(await takeLock(trx, accountId))) {
    await trx.raw('insert into account_changes (account_id) values (?) on conflict do nothing', [accountId])
    await takeLock(trx, accountId)
  }
  return { trx, accountId, at }
}

async function takeLock(trx: Knex, accountId: number): Promise<boolean> {
  const lock = 'select from account_changes where account_id = ? for update'
  const { rowCount } = await trx.raw<{ rowCount: number }>(lock, [accountId])
  return rowCount === 1
}

/**
 * Runs an INSERT that updates nothing (`on conflict do nothing` at most), and counts and logs what it added. The cheapest way in: no row
 * is read again.
 *
 * @returns the ids of what was added
 */
export function insertPayments(account: LockedAccount, statement: PaymentStatement): Promise<string[]> {
  return write(account, statement, INSERTED)
}

/**
 * Runs an UPDATE, or an INSERT that may update, and counts and logs what it changed. A row that stays as it was is not logged.
 *
 * @returns the ids of the rows that it wrote, also of those that stay as they were
 */
export function changePayments(account: LockedAccount, statement: PaymentStatement): Promise<string[]> {
  return write(account, statement, CHANGED)
}

/**
 * Runs a DELETE, and counts and logs what it removed.
 *
 * @returns the ids of what is gone
 */
export function deletePayments(account: LockedAccount, statement: PaymentStatement): Promise<string[]> {
  return write(account, statement, DELETED)
}

/** Payments of one combination of the statistics. Unknown: `sourceNetwork` and `invoiceCurrency` '', `type` -1. */
export interface Arrivals {
  readonly network: string
  readonly sourceNetwork: string
  readonly currency: string
  readonly currencySymbol: string
  readonly invoiceCurrency: string
  readonly type: number
  readonly status: number
  readonly n: number
  /** Whether the US dollars of any of them are known. */
  readonly priced: boolean
  readonly firstAt: Date
  readonly lastAt: Date
}

/**
 * Counts and logs payments that came by COPY, which tells nothing of what it added. The caller knows it: all that the transaction copied into
 * the account, and nothing else.
 */
export async function logArrivals(
  { trx, accountId, at }: LockedAccount,
  ids: readonly string[],
  arrivals: readonly Arrivals[],
): Promise<void> {
  const texts = (name: 'network' | 'sourceNetwork' | 'currency' | 'currencySymbol' | 'invoiceCurrency') =>
    arrivals.map((arrival) => arrival[name])
  const bindings: unknown[] = [ids, accountId, at, accountId, ids.length, accountId, accountId]
  bindings.push(texts('network'), texts('sourceNetwork'), texts('currency'), texts('currencySymbol'))
  bindings.push(
    texts('invoiceCurrency'),
    arrivals.map(({ type }) => type),
    arrivals.map(({ status }) => status),
  )
  bindings.push(
    arrivals.map(({ n }) => n),
    arrivals.map(({ priced }) => priced),
    arrivals.map(({ firstAt }) => firstAt),
    arrivals.map(({ lastAt }) => lastAt),
  )
  await trx.raw(LOG_ARRIVALS, bindings as Knex.RawBinding[])
}

/** Searches rely on what is not priced, so a combination that comes to be is as one that is new. */
const ADD_TO_STORED = `
  on conflict (account_id, network, source_network, currency, invoice_currency, type, status) do update set
    n = stored.n + excluded.n,
    first_at = least(stored.first_at, excluded.first_at),
    last_at = greatest(stored.last_at, excluded.last_at),
    priced = stored.priced or excluded.priced,
    seq = case when excluded.priced and not stored.priced then excluded.seq else stored.seq end`

const LOG_ARRIVALS = `
  with logged as (
    insert into payment_changes (account_id, change, kind, payment_id, at, old)
    select account_id, last_change + nth, 1, id, at, null
    from unnest(?::uuid[]) with ordinality as added(id, nth),
      (select ?::int as account_id, ?::timestamptz as at, last_change from account_changes where account_id = ?) account
  ), numbered as (
    update account_changes set last_change = last_change + ? where account_id = ?
  )
  insert into payment_statistics as stored (account_id, network, source_network, currency, currency_symbol, invoice_currency,
    type, status, n, priced, first_at, last_at)
  select ?::int, added.*
  from unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::smallint[], ?::smallint[], ?::bigint[], ?::boolean[],
    ?::timestamptz[], ?::timestamptz[]) as added
  ${ADD_TO_STORED}`

/** What makes changes and moves of the rows that were written; both are read within the one statement. */
interface WriteKind {
  readonly returning: string
  /** `written` -> a row a change: id, kind, and the row before it. */
  readonly changes: string
  /** -> a row for all that came to a combination (n = 1) or went from it (n = -1). */
  readonly moves: string
  /** How often `changes` binds the account. */
  readonly accountBindings: number
}

/** The columns by which statistics are kept, the time that they bound, and what says whether they are priced. */
const KEYS = [
  'network',
  'source_network',
  'currency',
  'currency_symbol',
  'invoice_currency',
  'type',
  'status',
  'timestamp',
  'amount_in_usd',
]
const keysOf = (table: string) => KEYS.map((key) => `${table}.${key}`).join(', ')

/** Narrow, since a batch of whole rows would go through a file. */
const INSERTED: WriteKind = {
  returning: `payments.id, ${keysOf('payments')}`,
  changes: 'select id, 1 as kind, null::jsonb as old from written',
  moves: 'select *, 1 as n from written',
  accountBindings: 0,
}

const DELETED: WriteKind = {
  returning: 'payments.*',
  changes: 'select id, 3 as kind, to_jsonb(written) as old from written',
  moves: 'select *, -1 as n from written',
  accountBindings: 0,
}

/**
 * All parts of a statement see the rows as they were before it, so to look up once more what was written is to see what it was. The
 * offset keeps the planner from reading all payments of the account for it.
 */
const CHANGED: WriteKind = {
  returning: 'payments.*',
  changes: `
    select w.id, case when p.id is null then 1 else 2 end as kind, case when p.id is not null then to_jsonb(p) end as old,
      ${KEYS.map((key) => `p.${key} as old_${key}, w.${key} as new_${key}`).join(', ')}
    from written w
    left join lateral (select * from payments where account_id = ? and id = w.id offset 0) p on true
    where p.id is null or row(p.*) is distinct from row(w.*)`,
  moves: `
    select ${KEYS.map((key) => `new_${key} as ${key}`).join(', ')}, 1 as n from changes where IS_MOVED
    union all
    select ${KEYS.map((key) => `old_${key}`).join(', ')}, -1 from changes where kind = 2 and IS_MOVED`.replaceAll(
    'IS_MOVED',
    `row(${KEYS.map((key) => `old_${key}`).join(', ')}) is distinct from row(${KEYS.map((key) => `new_${key}`).join(', ')})`,
  ),
  accountBindings: 1,
}

/** One statement, so that nothing of it can be forgotten and a batch costs one way to the server. */
async function write(account: LockedAccount, { sql, bindings }: PaymentStatement, kind: WriteKind): Promise<string[]> {
  const { trx, accountId, at } = account
  const ofChanges = Array.from({ length: kind.accountBindings }, () => accountId)
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `with written as (
      ${sql}
      returning ${kind.returning}
    ), changes as materialized (${kind.changes}
    ), logged as (
      insert into payment_changes (account_id, change, kind, payment_id, at, old)
      select ?, last_change + row_number() over (), kind, id, ?, old
      from changes, (select last_change from account_changes where account_id = ?) account
    ), moves as (${kind.moves}
    ), counted as (
      insert into payment_statistics as stored (account_id, network, source_network, currency, currency_symbol, invoice_currency,
        type, status, n, priced, first_at, last_at)
      select ?, network, coalesce(source_network, ''), currency, min(currency_symbol), coalesce(invoice_currency, ''),
        coalesce(type, -1), status, sum(n), bool_or(amount_in_usd is not null and n > 0), min(timestamp), max(timestamp)
      from moves group by 2, 3, 4, 6, 7, 8 order by 2, 3, 4, 6, 7, 8
      ${ADD_TO_STORED}
    ), numbered as (
      update account_changes set last_change = last_change + (select count(*) from changes)
      where account_id = ? and exists (select from changes)
    )
    select id from written`,
    [...bindings, ...ofChanges, accountId, at, accountId, accountId, accountId] as Knex.RawBinding[],
  )
  return rows.map(({ id }) => id)
}
