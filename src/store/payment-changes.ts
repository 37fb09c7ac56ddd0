import type { Knex } from 'knex'

/**
 * An account whose payments only this transaction can write until it ends. So the changes of an account are numbered in the order of their
 * commits. {@link lockAccounts} makes it.
 */
export interface LockedAccount {
  readonly trx: Knex.Transaction
  readonly accountId: number
  /** The time that the log gives for the changes of this transaction. */
  readonly at: Date
}

/** A statement that writes `payments`, without an alias for the table and without RETURNING. Each `?` is a binding. */
export interface PaymentStatement {
  readonly sql: string
  readonly bindings: readonly unknown[]
}

/**
 * Locks accounts for writing their payments, in ascending order. A writer calls it before it reads what it is going to change. To avoid
 * deadlocks, the state of a chain (which only detection locks) is locked before it, and everything else after it. A transaction may lock
 * an account again.
 *
 * @returns the locked accounts, ascending by id
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

/** Locks one account. A writer of several accounts calls {@link lockAccounts}, or this in ascending order. */
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
 * Runs an INSERT that updates nothing (it may have `on conflict do nothing`), and counts and logs the added rows. It is cheaper than
 * {@link changePayments}, because it reads no row again.
 *
 * @returns the ids of the added rows
 */
export function insertPayments(account: LockedAccount, statement: PaymentStatement): Promise<string[]> {
  return write(account, statement, INSERTED)
}

/**
 * Runs an UPDATE, or an INSERT that may update, and counts and logs the changed rows. A row that is written with its old values is not
 * logged.
 *
 * @returns the ids of all written rows
 */
export function changePayments(account: LockedAccount, statement: PaymentStatement): Promise<string[]> {
  return write(account, statement, CHANGED)
}

/**
 * Runs a DELETE, and counts and logs the removed rows.
 *
 * @returns their ids
 */
export function deletePayments(account: LockedAccount, statement: PaymentStatement): Promise<string[]> {
  return write(account, statement, DELETED)
}

/** New payments of one combination of the statistics. An unknown `sourceNetwork` or `invoiceCurrency` is '', an unknown `type` -1. */
export interface Arrivals {
  readonly network: string
  readonly sourceNetwork: string
  readonly currency: string
  readonly currencySymbol: string
  readonly invoiceCurrency: string
  readonly type: number
  readonly status: number
  readonly n: number
  /** Whether the value in US dollars is known for any of them. */
  readonly priced: boolean
  readonly firstAt: Date
  readonly lastAt: Date
}

/**
 * Counts and logs payments that were written by COPY, which cannot return rows. The caller gives all payments that the transaction copied
 * into the account, and no others.
 */
export async function logArrivals(
  { trx, accountId, at }: LockedAccount,
  ids: readonly string[],
  arrivals: readonly Arrivals[],
): Promise<void> {
  const columns = arrivalColumns.map(([name]) => arrivals.map((arrival) => arrival[name]))
  const bindings = [ids, accountId, at, accountId, ids.length, accountId, accountId, ...columns]
  await trx.raw(LOG_ARRIVALS, bindings as Knex.RawBinding[])
}

/** The columns of `payment_statistics` in which counts are written, without the account. */
const STATISTICS_COLUMNS = `network, source_network, currency, currency_symbol, invoice_currency, type, status, n, priced, first_at, last_at`

/** The fields of arrivals and their types, in the order of {@link STATISTICS_COLUMNS}. */
const arrivalColumns = [
  ['network', 'text'],
  ['sourceNetwork', 'text'],
  ['currency', 'text'],
  ['currencySymbol', 'text'],
  ['invoiceCurrency', 'text'],
  ['type', 'smallint'],
  ['status', 'smallint'],
  ['n', 'bigint'],
  ['priced', 'boolean'],
  ['firstAt', 'timestamptz'],
  ['lastAt', 'timestamptz'],
] as const satisfies readonly (readonly [keyof Arrivals, string])[]

/**
 * Adds counts to the stored ones. A combination that becomes priced gets a new `seq`, as a new combination does, because searches rely on
 * which combinations are not priced.
 */
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
  insert into payment_statistics as stored (account_id, ${STATISTICS_COLUMNS})
  select ?::int, added.* from unnest(${arrivalColumns.map(([, type]) => `?::${type}[]`).join(', ')}) as added
  ${ADD_TO_STORED}`

/** How the changes and moves of written rows are found. Both are parts of the statement that writes. */
interface WriteKind {
  readonly returning: string
  /** A query over `written`: a row for each change, with id, kind (1 insert, 2 update, 3 delete) and the row before it. */
  readonly changes: string
  /** A query over `written` or `changes`: a row for each payment that a combination of the statistics gained (n = 1) or lost (n = -1). */
  readonly moves: string
  /** How often `changes` binds the account. */
  readonly accountBindings: number
}

/** The columns that decide how a payment is counted: the combination, the time that bounds it, and whether it is priced. */
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
const listKeys = (write: (key: string) => string) => KEYS.map(write).join(', ')

/** Returns the keys alone, because the rows of a large batch would be spooled to a file. */
const INSERTED: WriteKind = {
  returning: `payments.id, ${listKeys((key) => `payments.${key}`)}`,
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

const KEYS_MOVED = `row(${listKeys((key) => `old_${key}`)}) is distinct from row(${listKeys((key) => `new_${key}`)})`

/**
 * All parts of a statement see the rows as they were before it, so a second look at a written row reads its old values. `offset 0` keeps
 * the planner from reading all payments of the account for it.
 */
const CHANGED: WriteKind = {
  returning: 'payments.*',
  changes: `
    select w.id, case when p.id is null then 1 else 2 end as kind, case when p.id is not null then to_jsonb(p) end as old,
      ${listKeys((key) => `p.${key} as old_${key}, w.${key} as new_${key}`)}
    from written w
    left join lateral (select * from payments where account_id = ? and id = w.id offset 0) p on true
    where p.id is null or row(p.*) is distinct from row(w.*)`,
  moves: `
    select ${listKeys((key) => `new_${key} as ${key}`)}, 1 as n from changes where ${KEYS_MOVED}
    union all
    select ${listKeys((key) => `old_${key}`)}, -1 from changes where kind = 2 and ${KEYS_MOVED}`,
  accountBindings: 1,
}

/** What every write adds to its statement. Binds what `changes` binds, then the account, the time, and the account three times. */
const logAndCount = ({ changes, moves }: WriteKind) => `
  changes as materialized (${changes}
  ), logged as (
    insert into payment_changes (account_id, change, kind, payment_id, at, old)
    select ?, last_change + row_number() over (), kind, id, ?, old
    from changes, (select last_change from account_changes where account_id = ?) account
  ), moves as (${moves}
  ), counted as (
    insert into payment_statistics as stored (account_id, ${STATISTICS_COLUMNS})
    select ?, network, coalesce(source_network, ''), currency, min(currency_symbol), coalesce(invoice_currency, ''),
      coalesce(type, -1), status, sum(n), bool_or(amount_in_usd is not null and n > 0), min(timestamp), max(timestamp)
    from moves group by 2, 3, 4, 6, 7, 8 order by 2, 3, 4, 6, 7, 8
    ${ADD_TO_STORED}
  ), numbered as (
    update account_changes set last_change = last_change + (select count(*) from changes)
    where account_id = ? and exists (select from changes)
  )`

/** Writes, counts and logs in one statement, which is one round trip and cannot be done in part. */
async function write(account: LockedAccount, { sql, bindings }: PaymentStatement, kind: WriteKind): Promise<string[]> {
  const { trx, accountId, at } = account
  const ofChanges = Array.from({ length: kind.accountBindings }, () => accountId)
  const { rows } = await trx.raw<{ rows: { id: string }[] }>(
    `with written as (${sql} returning ${kind.returning}), ${logAndCount(kind)} select id from written`,
    [...bindings, ...ofChanges, accountId, at, accountId, accountId, accountId] as Knex.RawBinding[],
  )
  return rows.map(({ id }) => id)
}
