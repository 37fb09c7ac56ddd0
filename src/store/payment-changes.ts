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

/** A statement that writes `payments`, without RETURNING. Each `?` is a binding. */
export interface PaymentStatement {
  readonly sql: string
  readonly bindings: readonly unknown[]
}

/** Payments as they are stored before a write: each row as JSON, by id. */
export type StoredPayments = ReadonlyMap<string, string>

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
 * Reads the payments that a write is going to change or delete. It is a statement of its own, because a distributed PostgreSQL runs the parts of
 * one statement one after another, and the later ones would see what the earlier have written.
 *
 * @param rows - a query on `payments` that binds the account, without columns
 */
export async function readPayments({ trx }: LockedAccount, rows: Knex.QueryBuilder): Promise<StoredPayments> {
  const read = await rows.transacting(trx).select<StoredRow[]>('payments.id', trx.raw(`${ROW_AS_JSON} as row`))
  return new Map(read.map(({ id, row }) => [id, row]))
}

/** The same for some ids. `offset 0` has each looked up: of thousands, the planner would rather read all payments of the account. */
export async function readPaymentsById(
  { trx, accountId }: LockedAccount,
  ids: readonly string[],
): Promise<StoredPayments> {
  if (ids.length === 0) return new Map()
  const { rows } = await trx.raw<{ rows: StoredRow[] }>(
    `select payments.id, ${ROW_AS_JSON} as row from unnest(?::uuid[]) as asked (id) cross join lateral
       (select * from payments where account_id = ? and id = asked.id offset 0) payments`,
    [[...ids], accountId],
  )
  return new Map(rows.map(({ id, row }) => [id, row]))
}

const ROW_AS_JSON = 'to_jsonb(payments)::text'

interface StoredRow {
  readonly id: string
  readonly row: string
}

/**
 * Runs an UPDATE, a DELETE, or an INSERT that may update, and counts and logs the changed rows. A row that is written with its old values is
 * not logged.
 *
 * @param before - the rows that it may update or delete, and that {@link readPayments} read under the account's lock. Others may be among them
 * @returns the ids of all written rows
 */
export async function changePayments(
  account: LockedAccount,
  before: StoredPayments,
  { sql, bindings }: PaymentStatement,
): Promise<string[]> {
  const written = await account.trx.raw<{ rows: { id: string }[] }>(
    `${sql} returning payments.id`,
    bindings as Knex.RawBinding[],
  )
  const ids = written.rows.map(({ id }) => id)
  await logChanges(account, before, ids)
  return ids
}

/** Deletes payments, and counts and logs them. */
export async function deletePayments(account: LockedAccount, before: StoredPayments): Promise<void> {
  await removePayments(account, [...before.keys()])
  await logChanges(account, before, [...before.keys()])
}

/** Replaces payments by rows that `store` writes, and counts and logs what changed. */
export async function replacePayments(
  account: LockedAccount,
  before: StoredPayments,
  store: () => Promise<void>,
): Promise<void> {
  await removePayments(account, [...before.keys()])
  await store()
  await logChanges(account, before, [...before.keys()])
}

async function removePayments({ trx, accountId }: LockedAccount, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await trx.raw('delete from payments where account_id = ? and id = any(?::uuid[])', [accountId, [...ids]])
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

const KEYS_MOVED = `row(${listKeys((key) => `old_${key}`)}) is distinct from row(${listKeys((key) => `new_${key}`)})`

/**
 * Compares rows that were written with what they were before. Binds ids, rows before, account, account, time, account, account, account.
 *
 * `changes` has a row for each change, with kind (1 insert, 2 update, 3 delete) and the row before it. `offset 0` keeps the planner from reading
 * all payments of the account for it. `moves` has a row for each payment that a combination of the statistics gained (n = 1) or lost (n = -1).
 */
const LOG_CHANGES = `
  with changes as materialized (
    select given.nth, given.id, given.old, case when given.old is null then 1 when p.id is null then 3 else 2 end as kind,
      ${listKeys((key) => `o.${key} as old_${key}, p.${key} as new_${key}`)}
    from unnest(?::uuid[], ?::jsonb[]) with ordinality as given (id, old, nth)
    cross join lateral jsonb_populate_record(null::payments, given.old) o
    left join lateral (select * from payments where account_id = ? and id = given.id offset 0) p on true
    where row(p.*) is distinct from row(o.*)
  ), logged as (
    insert into payment_changes (account_id, change, kind, payment_id, at, old)
    select ?, last_change + row_number() over (order by nth), kind, id, ?, old
    from changes, (select last_change from account_changes where account_id = ?) account
  ), moves as (
    select ${listKeys((key) => `new_${key} as ${key}`)}, 1 as n from changes where kind <> 3 and ${KEYS_MOVED}
    union all
    select ${listKeys((key) => `old_${key}`)}, -1 from changes where kind <> 1 and ${KEYS_MOVED}
  ), counted as (
    insert into payment_statistics as stored (account_id, ${STATISTICS_COLUMNS})
    select ?, network, coalesce(source_network, ''), currency, min(currency_symbol), coalesce(invoice_currency, ''),
      coalesce(type, -1), status, sum(n), bool_or(amount_in_usd is not null and n > 0), min(timestamp), max(timestamp)
    from moves group by 2, 3, 4, 6, 7, 8 order by 2, 3, 4, 6, 7, 8
    ${ADD_TO_STORED}
  ), numbered as (
    update account_changes set last_change = last_change + (select count(*) from changes)
    where account_id = ? and exists (select from changes)
  )
  select count(*) from changes`

async function logChanges(
  { trx, accountId, at }: LockedAccount,
  before: StoredPayments,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  const olds = ids.map((id) => before.get(id) ?? null)
  const bindings = [ids, olds, accountId, accountId, at, accountId, accountId, accountId]
  await trx.raw(LOG_CHANGES, bindings as Knex.RawBinding[])
}
