import type { Knex } from 'knex'
import { runPreparedTexts } from '../postgres/prepared.ts'
import {
  type Arrivals,
  type ChangedRow,
  COUNTED_COLUMNS,
  type CountedRow,
  countMoves,
  countStatement,
} from './payment-statistics.ts'

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

/**
 * Counts and logs payments that were written by COPY, which cannot return rows. The caller gives all payments that the transaction copied
 * into the account, and no others.
 */
export async function logArrivals(
  { trx, accountId, at }: LockedAccount,
  ids: readonly string[],
  arrivals: readonly Arrivals[],
): Promise<void> {
  if (ids.length === 0) return
  await runPreparedTexts(
    trx,
    [
      { sql: LOG_INSERTS, bindings: [at, ids, accountId] },
      countStatement(accountId, arrivals),
      { sql: NUMBER, bindings: [ids.length, accountId] },
    ],
    undefined,
  )
}

/*
 * Each is a statement of its own, for one account: with several in one, Citus would send what they share to all workers, and no account could be
 * written while one worker is down.
 */

const logOf = (made: string, kind: string, old: string) => `
  insert into payment_changes (account_id, change, kind, payment_id, at, old)
  select a.account_id, a.last_change + made.nth, ${kind}, made.id, ?::timestamptz, ${old}
  from account_changes a cross join ${made} where a.account_id = ?`

/** Binds the time, ids, the account. */
const LOG_INSERTS = logOf('unnest(?::uuid[]) with ordinality as made (id, nth)', '1', 'null::jsonb')

/** Binds the time, ids, kinds, rows before, the account. */
const LOG = logOf(
  'unnest(?::uuid[], ?::smallint[], ?::jsonb[]) with ordinality as made (id, kind, old, nth)',
  'made.kind',
  'made.old',
)

/** Binds how many changes were logged, and the account. */
const NUMBER = 'update account_changes set last_change = last_change + ?::bigint where account_id = ?'

const listKeys = (write: (key: string) => string) => COUNTED_COLUMNS.map(write).join(', ')

type Prefixed = Readonly<Record<string, unknown>> & { readonly id: string }

/**
 * Finds the rows that are not as they were before. Binds ids, rows before, the account. `offset 0` keeps the planner from reading all payments of
 * the account for it.
 */
const FIND_CHANGES = `
  select given.id, given.old is not null as was_there, p.id is not null as is_there,
    ${listKeys((key) => `o.${key} as old_${key}, p.${key} as new_${key}`)}
  from unnest(?::uuid[], ?::jsonb[]) with ordinality as given (id, old, nth)
  cross join lateral jsonb_populate_record(null::payments, given.old) o
  left join lateral (select * from payments where account_id = ? and id = given.id offset 0) p on true
  where row(p.*) is distinct from row(o.*) order by given.nth`

async function logChanges(
  { trx, accountId, at }: LockedAccount,
  before: StoredPayments,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  const olds = ids.map((id) => before.get(id) ?? null)
  const found = await trx.raw<{ rows: Prefixed[] }>(FIND_CHANGES, [[...ids], olds, accountId] as Knex.RawBinding[])
  const changes = found.rows.map(toChange)
  if (changes.length === 0) return
  const log = [
    at,
    changes.map(({ id }) => id),
    changes.map(kindOf),
    changes.map(({ id }) => before.get(id) ?? null),
    accountId,
  ]
  const moves = countMoves(changes)
  await runPreparedTexts(
    trx,
    [
      { sql: LOG, bindings: log },
      ...(moves.length === 0 ? [] : [countStatement(accountId, moves)]),
      { sql: NUMBER, bindings: [changes.length, accountId] },
    ],
    undefined,
  )
}

function toChange(row: Prefixed): ChangedRow {
  const keysOf = (prefix: string) =>
    Object.fromEntries(COUNTED_COLUMNS.map((key) => [key, row[prefix + key]])) as unknown as CountedRow
  return {
    id: row.id,
    before: row['was_there'] === true ? keysOf('old_') : undefined,
    after: row['is_there'] === true ? keysOf('new_') : undefined,
  }
}

/** As in `payment_changes`: 1 insert, 2 update, 3 delete. */
function kindOf({ before, after }: ChangedRow): number {
  if (before === undefined) return 1
  return after === undefined ? 3 : 2
}
