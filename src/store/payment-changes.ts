import type { Knex } from 'knex'
import { copyText, encodeCopyRow } from '../postgres/copy-rows.ts'
import { type PaymentRow, paymentColumns } from './payment-row.ts'
import { addCounts, COUNTED_COLUMNS, type CountedRow, countMoves } from './payment-statistics.ts'

/**
 * An account whose payments only this transaction can write until it ends. So the changes of an account are numbered in the order of their
 * commits. {@link lockAccounts} makes it.
 */
export interface LockedAccount {
  readonly trx: Knex.Transaction
  readonly accountId: number
  /**
   * The stamp of what this transaction changes: later than that of every transaction before, so that a reader who has seen everything up to a stamp
   * never misses a change of an earlier one.
   */
  readonly at: Date
}

/** A statement that writes `payments`, without RETURNING. Each `?` is a binding. */
export interface PaymentStatement {
  readonly sql: string
  readonly bindings: readonly unknown[]
}

/** What is kept of a payment to tell whether a write has changed it. */
export interface StoredPayment extends CountedRow {
  readonly id: string
  readonly request_id: Buffer | null
  readonly changed_at: Date
  readonly has_metadata: boolean
  /** A hash of the rest of the row. */
  readonly mark: string
}

/** `payment_changes.kind` of a change of a request. */
export const REQUEST_CHANGE = 4

/** Payments as they are stored before a write, by id. */
export type StoredPayments = ReadonlyMap<string, StoredPayment>

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
  now: Date,
): Promise<LockedAccount[]> {
  const locked: LockedAccount[] = []
  for (const accountId of [...new Set(accountIds)].toSorted((a, b) => a - b)) {
    locked.push(await lockAccount(trx, accountId, now))
  }
  return locked
}

/**
 * Locks one account. A writer of several accounts calls {@link lockAccounts}, or this in ascending order.
 *
 * @param now - before the wait for the lock
 */
export async function lockAccount(trx: Knex.Transaction, accountId: number, now: Date): Promise<LockedAccount> {
  const startedMs = performance.now()
  let locked = await takeLock(trx, accountId)
  if (locked === undefined) {
    await trx.raw('insert into account_changes (account_id) values (?) on conflict do nothing', [accountId])
    locked = await takeLock(trx, accountId)
  }
  const lockedMs = now.getTime() + Math.trunc(performance.now() - startedMs)
  const lastMs = locked?.last_changed_at?.getTime() ?? 0
  return { trx, accountId, at: new Date(Math.max(lockedMs, lastMs + 1)) }
}

interface LockRow {
  readonly last_changed_at: Date | null
}

async function takeLock(trx: Knex, accountId: number): Promise<LockRow | undefined> {
  const lock = 'select last_changed_at from account_changes where account_id = ? for update'
  const { rows } = await trx.raw<{ rows: LockRow[] }>(lock, [accountId])
  return rows[0]
}

/**
 * Reads the payments that a write is going to change or delete. It is a statement of its own, because a distributed PostgreSQL runs the parts of
 * one statement one after another, and the later ones would see what the earlier have written.
 *
 * @param rows - a query on `payments` that binds the account, without columns
 */
export async function readPayments({ trx }: LockedAccount, rows: Knex.QueryBuilder): Promise<StoredPayments> {
  return byId(await rows.transacting(trx).select<StoredPayment[]>(trx.raw(STORED_COLUMNS)))
}

/** The same for some ids. `offset 0` has each looked up: of thousands, the planner would rather read all payments of the account. */
export async function readPaymentsById(
  { trx, accountId }: LockedAccount,
  ids: readonly string[],
): Promise<StoredPayments> {
  if (ids.length === 0) return new Map()
  const { rows } = await trx.raw<{ rows: StoredPayment[] }>(
    `select ${STORED_COLUMNS} from unnest(?::uuid[]) as asked (id) cross join lateral
       (select * from payments where account_id = ? and id = asked.id offset 0) payments`,
    [[...ids], accountId],
  )
  return byId(rows)
}

const namesIn = (columns: readonly string[]) => columns.map((column) => `payments.${column}`).join(', ')

const STORED_COLUMNS = `payments.id, payments.request_id, ${namesIn(COUNTED_COLUMNS)}, payments.changed_at,
  payments.metadata is not null as has_metadata, hash_record_extended(row(${namesIn(paymentColumns)}), 0) as mark`

const byId = (rows: readonly StoredPayment[]): StoredPayments => new Map(rows.map((row) => [row.id, row]))

/**
 * Runs an UPDATE, a DELETE, or an INSERT that may update, and counts, logs and stamps the changed rows; it is cheaper where the statement sets the stamp
 * itself. A row that is written with its old values is not logged, and keeps its stamp.
 *
 * @param before - the rows that it may update or delete, and that {@link readPayments} read under the account's lock. Others may be among them;
 *   they cost time
 * @returns the ids of all written rows
 */
export async function changePayments(
  account: LockedAccount,
  before: StoredPayments,
  { sql, bindings }: PaymentStatement,
): Promise<string[]> {
  let ids: string[] = []
  await logWrite(account, before, async () => {
    const { trx } = account
    const { rows } = await trx.raw<{ rows: { id: string }[] }>(
      `${sql} returning payments.id`,
      bindings as Knex.RawBinding[],
    )
    ids = rows.map(({ id }) => id)
    return readPaymentsById(account, [...new Set([...before.keys(), ...ids])])
  })
  return ids
}

/** Deletes payments, and counts and logs them. */
export async function deletePayments(account: LockedAccount, before: StoredPayments): Promise<void> {
  await logWrite(account, before, async () => {
    await removePayments(account, [...before.keys()])
    return new Map()
  })
}

/** Logs that requests stand otherwise than before. Call it after the payments of the transaction are logged. */
export async function logRequests({ trx, accountId, at }: LockedAccount, requestIds: readonly Buffer[]): Promise<void> {
  if (requestIds.length === 0) return
  await trx.raw(LOG_REQUESTS, [at, [...requestIds], accountId])
  await trx.raw(NUMBER, [requestIds.length, at, accountId])
}

/** Replaces payments by rows that `store` writes, and counts and logs what changed. */
export async function replacePayments(
  account: LockedAccount,
  before: StoredPayments,
  store: () => Promise<void>,
): Promise<void> {
  await logWrite(account, before, async () => {
    const ids = [...before.keys()]
    await removePayments(account, ids)
    await store()
    return readPaymentsById(account, ids)
  })
}

async function removePayments({ trx, accountId }: LockedAccount, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await trx.raw('delete from payments where account_id = ? and id = any(?::uuid[])', [accountId, [...ids]])
}

/** What counting, logging and indexing take of a payment that was copied. */
export type Arrival = CountedRow & Pick<PaymentRow, 'id' | 'metadata'>

/**
 * Counts and logs payments that were written by COPY, which cannot return rows. The caller gives all payments that the transaction copied
 * into the account, and no others.
 */
export async function logArrivals(account: LockedAccount, rows: readonly Arrival[]): Promise<void> {
  if (rows.length === 0) return
  const { trx, accountId, at } = account
  await trx.raw(LOG_INSERTS, [0, at, rows.map(({ id }) => id), accountId])
  await indexMetadata(
    account,
    rows.flatMap(({ id, metadata }) => (metadata === null ? [] : [id])),
  )
  await addCounts(account, countMoves(rows.map((after) => ({ after }))))
  await trx.raw(NUMBER, [rows.length, at, accountId])
}

/*
 * Each is a statement of its own, for one account: with several in one, Citus would send what they share to all workers, and no account could be
 * written while one worker is down.
 */

const LOG_COLUMNS = 'account_id, change, kind, payment_id, at, old'

/** Binds how many changes stand before these, the stamp, ids, the account. */
const LOG_INSERTS = `
  insert into payment_changes (${LOG_COLUMNS})
  select a.account_id, a.last_change + ?::bigint + made.nth, 1, made.id, ?::timestamptz, null::jsonb
  from account_changes a cross join unnest(?::uuid[]) with ordinality as made (id, nth) where a.account_id = ?`

/** Binds the stamp, ids, the account. */
const LOG_REQUESTS = `
  insert into payment_changes (account_id, change, kind, at, changed_request)
  select a.account_id, a.last_change + given.nth, ${REQUEST_CHANGE}, ?::timestamptz, given.id
  from account_changes a cross join unnest(?::bytea[]) with ordinality as given (id, nth) where a.account_id = ?`

/**
 * Logs payments as they are, before they are updated: their rows never leave the server. `offset 0` has each looked up; without
 * the name `logged`, Citus could not return columns. Binds the stamp, ids, the account twice.
 */
const LOG_UPDATES = `
  insert into payment_changes as logged (${LOG_COLUMNS})
  select a.account_id, a.last_change + given.nth, 2, p.id, ?::timestamptz, to_jsonb(p)
  from account_changes a cross join unnest(?::uuid[]) with ordinality as given (id, nth)
  cross join lateral (select * from payments where account_id = ? and id = given.id offset 0) p
  where a.account_id = ? returning logged.payment_id as id, logged.change`

/** Binds the account, and changes. */
const FORGET = 'delete from payment_changes where account_id = ? and change = any(?::bigint[])'
const LOG_AS_DELETES = 'update payment_changes set kind = 3 where account_id = ? and change = any(?::bigint[])'

/** Numbers below zero are free. Binds changes, their new numbers, the account. */
const RENUMBER = `update payment_changes c set change = -given.next from unnest(?::bigint[], ?::bigint[]) as given (change, next)
  where c.account_id = ? and c.change = given.change`
const RENUMBERED = 'update payment_changes set change = -change where account_id = ? and change < 0'

/** Binds how many changes were logged, the stamp, and the account. */
const NUMBER = `update account_changes set last_change = last_change + ?::bigint, last_changed_at = ?::timestamptz
  where account_id = ?`

/** Binds the account, the stamp, and ids. One that is removed, stored and removed again by a transaction is there already. */
const KEEP_REMOVED = `insert into removed_payments (account_id, changed_at, id)
  select ?::int, ?::timestamptz, removed.id from unnest(?::uuid[]) as removed (id) on conflict do nothing`

/** Binds ids, their stamps, and the account. */
const STAMP = `update payments set changed_at = given.changed_at
  from unnest(?::uuid[], ?::timestamptz[]) as given (id, changed_at) where payments.account_id = ? and payments.id = given.id`

/**
 * Writes, counts and logs. Payments that may change are logged first, while the server still has their old rows; the log forgets those that the
 * write has left as they were.
 *
 * @param write - returns the rows of `before`, and others that it has written, as they are now
 */
async function logWrite(
  account: LockedAccount,
  before: StoredPayments,
  write: () => Promise<StoredPayments>,
): Promise<void> {
  const { trx, accountId, at } = account
  const logged = await logUpdates(account, [...before.keys()])
  const after = await write()
  const changes = [...new Set([...before.keys(), ...after.keys()])]
    .map((id) => ({ id, before: before.get(id), after: after.get(id) }))
    .filter((change) => change.before?.mark !== change.after?.mark)
  const kept = logged.filter(({ id }) => before.get(id)?.mark !== after.get(id)?.mark)
  const inserts = changes.filter((change) => change.before === undefined).map(({ id }) => id)
  const deletes = kept.filter(({ id }) => !after.has(id)).map(({ change }) => change)
  const removed = changes.filter((change) => change.after === undefined).map(({ id }) => id)
  const stamps = [...after.values()].flatMap(({ id, mark, changed_at: given }) => {
    const old = before.get(id)
    const due = old?.mark === mark ? old.changed_at : at
    return given.getTime() === due.getTime() ? [] : [{ id, due }]
  })
  if (stamps.length > 0) await trx.raw(STAMP, [stamps.map(({ id }) => id), stamps.map(({ due }) => due), accountId])
  if (removed.length > 0) await trx.raw(KEEP_REMOVED, [accountId, at, removed])
  if (deletes.length > 0) await trx.raw(LOG_AS_DELETES, [accountId, deletes.map(String)])
  if (kept.length < logged.length) await forget(account, logged, kept)
  if (inserts.length > 0) await trx.raw(LOG_INSERTS, [kept.length, at, inserts, accountId])
  const carries = changes.filter((change) => change.before?.has_metadata || change.after?.has_metadata)
  await indexMetadata(
    account,
    carries.map(({ id }) => id),
  )
  await addCounts(account, countMoves(changes))
  if (changes.length > 0) await trx.raw(NUMBER, [changes.length, at, accountId])
}

/** Writes the entries of payments in `payment_metadata` anew, which has what searches compare and sort by. */
async function indexMetadata({ trx, accountId }: LockedAccount, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await trx.raw('delete from payment_metadata where account_id = ? and id = any(?::uuid[])', [accountId, [...ids]])
  await trx.raw(INDEX_METADATA, [[...ids], accountId])
}

/** What an entry has of its payment beside the id. */
export const ENTRY_FACTS = `status, timestamp, changed_at, type, network, source_network, currency_symbol, currency, invoice_currency, amount,
  amount_in_usd, invoice_amount`
const ENTRY_COLUMNS = `account_id, pair, id, ${ENTRY_FACTS}`
const ENTRIES = `select p.account_id, pairs.key || '=' || pairs.value as pair, p.id, ${ENTRY_FACTS}`

/** Binds ids, and the account. */
const INDEX_METADATA = `insert into payment_metadata (${ENTRY_COLUMNS}) ${ENTRIES}
  from unnest(?::uuid[]) as asked (id)
  cross join lateral (select * from payments where account_id = ? and id = asked.id offset 0) p
  cross join lateral jsonb_each_text(p.metadata) as pairs`

/** The entries that the payments of an account should have in `payment_metadata`. Binds the account. */
export const READ_ENTRIES = `${ENTRIES}
  from payments p cross join lateral jsonb_each_text(p.metadata) as pairs where p.account_id = ?`

/** Binds the account. */
export const STORE_ENTRIES = `insert into payment_metadata (${ENTRY_COLUMNS}) ${READ_ENTRIES}`

interface LoggedChange {
  readonly id: string
  readonly change: bigint
}

async function logUpdates({ trx, accountId, at }: LockedAccount, ids: readonly string[]): Promise<LoggedChange[]> {
  if (ids.length === 0) return []
  const { rows } = await trx.raw<{ rows: LoggedChange[] }>(LOG_UPDATES, [at, [...ids], accountId, accountId])
  return rows
}

/** Takes changes out of the log that were none, and numbers the kept ones without a gap. */
async function forget(
  { trx, accountId }: LockedAccount,
  logged: readonly LoggedChange[],
  kept: readonly LoggedChange[],
): Promise<void> {
  const numbers = logged.map(({ change }) => change).toSorted((a, b) => Number(a - b))
  const isKept = new Set(kept.map(({ change }) => change))
  const left = numbers.filter((change) => isKept.has(change))
  const forgotten = numbers.filter((change) => !isKept.has(change))
  await trx.raw(FORGET, [accountId, forgotten.map(String)])
  if (left.length === 0) return
  await trx.raw(RENUMBER, [left.map(String), numbers.slice(0, left.length).map(String), accountId])
  await trx.raw(RENUMBERED, [accountId])
}

/** Stores payments whose ids and events are not stored yet, by COPY: a third of the time that INSERT takes. */
export async function copyNewPayments(account: LockedAccount, rows: readonly PaymentRow[]): Promise<void> {
  await copyPaymentTexts(account, rows.map(encodePaymentRow))
  await logArrivals(account, rows)
}

/** A row as COPY takes it. */
export function encodePaymentRow(row: PaymentRow): Buffer {
  return Buffer.from(encodeCopyRow(paymentColumns.map((column) => row[column])))
}

/** Gives a request to an encoded row without one. It stands in the last column. */
export function nameRequestOfRow(row: Buffer, requestId: string): Buffer {
  return Buffer.concat([row.subarray(0, -'\\N\n'.length), Buffer.from(`\\\\x${requestId}\n`)])
}

/** Copies encoded rows under the account's stamp. The caller counts and logs them. */
export async function copyPaymentTexts({ trx, at }: LockedAccount, rows: readonly Buffer[]): Promise<void> {
  await trx.raw(`select set_config('waybill.changed_at', ?, true)`, [at.toISOString()])
  await copyText(trx, { table: 'payments', columns: paymentColumns }, [Buffer.concat(rows)])
}
