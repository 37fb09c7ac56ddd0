import type { Knex } from 'knex'
import type { Payment } from '../../domain/payment.ts'
import { readPromptly } from '../../postgres/cancellable.ts'
import { runNamed } from '../../postgres/named-statements.ts'
import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import { raw, readRows, type Statement } from '../../postgres/statement.ts'
import type { TextRow } from '../../postgres/wire-batch.ts'
import { type Heads, isCountedUp, NO_HEADS, paymentOfRow, readPaymentColumns } from '../../store/payment-row.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import { type ChainProgress, chainProgressOf, chainProgressStatement, headsOf } from './chain-progress.ts'
import { matchCondition } from './filter-conditions.ts'

/** What a change means to those who watch a filter. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'UPDATED'; readonly change: bigint; readonly at: Date; readonly payment: Payment }
  | {
      readonly type: 'REMOVED'
      readonly change: bigint
      readonly at: Date
      readonly id: string
      /** The payment after the change, which no longer matches; undefined where it was deleted. */
      readonly payment?: Payment | undefined
    }

/** Which changes of an account the log holds. */
export interface LogExtent {
  /** 0 before the first. */
  readonly lastChange: bigint
  /** The last change that was pruned; 0 where all are kept. */
  readonly prunedChange: bigint
}

/** What a filter sees of a range of the log. */
export interface WatchBatch extends LogExtent {
  /** In the order of changes. */
  readonly events: readonly WatchEvent[]
  /** The last change of the range: the next batch begins after it. */
  readonly through: bigint
  /** Whether the batch ended because it reached its limit of bytes. */
  readonly isFull: boolean
}

export interface WatchQuery {
  readonly filter: PaymentFilter
  /** The last change before the range. */
  readonly after: bigint
  /** Changes to look at, at most. */
  readonly changes: number
  /** Events, at most. */
  readonly events: number
  /** Bytes of the lists within the events: no event is added once they are reached, so the last one may exceed them. */
  readonly bytes: number
}

export type WatchRepository = ReturnType<typeof createWatchRepository>

/** Makes what reads the log of changes. */
export function createWatchRepository(knex: Knex) {
  return {
    /** Reads the events of a filter from a range of changes. */
    async read(query: WatchQuery, signal?: AbortSignal): Promise<WatchBatch> {
      const [rows = []] = await runNamed(knex, [batchStatement(query)], signal)
      const extent = extentOfRow(rows[0]?.slice(PAYMENT_COLUMNS))
      const events = rows.flatMap((row) => eventOfRow(row) ?? [])
      // Confirmations of payments that are not final are counted from the chains' heads when the batch is read.
      const heads = events.some(({ row }) => isCountedUp(row)) ? headsOf(await readProgress(knex, signal)) : NO_HEADS
      return {
        ...extent,
        events: events.map((event) => toEvent(event, heads)),
        through: rows.length === 0 ? query.after : endOf(query, extent, events),
        isFull: events.length < query.events && events.at(-1)?.nextEvent !== undefined,
      }
    },
    /** How far each chain is read. */
    progress: (signal?: AbortSignal): Promise<ChainProgress[]> => readProgress(knex, signal),
    /** Which changes of an account the log holds. */
    async extent(accountId: number, signal?: AbortSignal): Promise<LogExtent> {
      const [rows] = await runNamed(knex, [raw(EXTENT, [accountId])], signal)
      return extentOfRow(rows?.[0])
    },
    /** The last change of each of several accounts; accounts without changes are left out. */
    async lastChanges(accountIds: readonly number[]): Promise<ReadonlyMap<number, bigint>> {
      const statement = raw(LAST_CHANGES, [accountIds])
      const rows = await readPromptly(
        (signal) => readRows<{ account_id: number; last_change: bigint }>(knex, statement, signal),
        POLL_TIMEOUT_MS,
      )
      return new Map(rows.map(({ account_id, last_change }) => [account_id, last_change]))
    },
  }
}

/** How long all watchers wait for one poll, in milliseconds. */
const POLL_TIMEOUT_MS = 5_000

const EXTENT = 'select last_change, pruned_change from account_changes where account_id = ?'
const LAST_CHANGES = 'select account_id, last_change from account_changes where account_id = any(?::int[])'

function extentOfRow([lastChange, prunedChange]: TextRow = []): LogExtent {
  return { lastChange: BigInt(lastChange ?? 0), prunedChange: BigInt(prunedChange ?? 0) }
}

/** A row of a batch begins with the columns of the payment after the change, which are null where it was deleted. */
const PAYMENT_COLUMNS = readPaymentColumns.length
const EVENT_COLUMNS = 'c.last_change, c.pruned_change, e.change, e.at, e.payment_id, e.matched, e.matches, e.next_event'

interface ReadEvent {
  readonly row: TextRow
  readonly change: bigint
  readonly at: Date
  readonly id: string
  /** Whether the payment matched before the change. */
  readonly matched: boolean
  /** Whether it matches after the change. */
  readonly matches: boolean
  /** The next change of the range that is an event; undefined where there is none. */
  readonly nextEvent: bigint | undefined
}

/** Undefined for the one row of a batch without events. */
function eventOfRow(row: TextRow): ReadEvent | undefined {
  const [, , change = null, at, id, matched, matches, nextEvent = null] = row.slice(PAYMENT_COLUMNS)
  if (change === null) return undefined
  return {
    row,
    change: BigInt(change),
    at: parseTimestamp(at as string),
    id: id as string,
    matched: matched === 't',
    matches: matches === 't',
    nextEvent: nextEvent === null ? undefined : BigInt(nextEvent),
  }
}

/**
 * Reads the events of a range of changes in one statement, and so in one snapshot.
 *
 * `payment_changes.old` is the payment before a change (`old` below). The payment after it (`new`) is what the next change of the same
 * payment recorded as old, or the row of `payments` if there is no later change. The filter's conditions are asked of both. The numbers of
 * an account's changes have no gaps, so a range of numbers bounds the work.
 *
 * Columns of the conditions have no table name and so belong to the innermost image. `offset 0` keeps PostgreSQL from expanding an image
 * where there is none.
 */
export function batchStatement({ filter, after, changes, events, bytes }: WatchQuery): Statement {
  const { accountId } = filter
  const columnsOf = (table: string) => readPaymentColumns.map((column) => `${table}.${column}`).join(', ')
  return raw(
    `select ${columnsOf('e')}, ${EVENT_COLUMNS}
from account_changes c
left join lateral (
  select b.change, b.at, b.payment_id, coalesce(old.matches, false) as matched,
    coalesce(new.matches, false) as matches, ${columnsOf('new')},
    coalesce(new.bytes, 0) as bytes, sum(coalesce(new.bytes, 0)) over w as bytes_until, lead(b.change) over w as next_event
  from payment_changes b
  left join lateral (
    select true as matches from jsonb_populate_record(null::payments, b.old) where b.old is not null and (:matches)
    offset 0
  ) old on true
  left join lateral (
    select n.old from payment_changes n
    where n.account_id = :accountId and n.payment_id = b.payment_id and n.change > b.change and n.old is not null
    order by n.change limit 1
  ) next on b.kind <> ${DELETE}
  left join lateral (
    select p.*, (:matches) as matches, ${BYTES} as bytes from payments p
    where p.account_id = :accountId and p.id = b.payment_id and b.kind <> ${DELETE} and next.old is null
    union all
    select p.*, (:matches), ${BYTES} from jsonb_populate_record(null::payments, next.old) p where next.old is not null
  ) new on true
  where b.account_id = :accountId and b.change > :after::bigint and b.change <= :until::bigint and (old.matches or new.matches)
  window w as (order by b.change rows between unbounded preceding and current row)
  order by b.change limit :events
) e on e.bytes_until - e.bytes < :bytes
where c.account_id = :accountId
order by e.change`,
    {
      accountId,
      matches: matchCondition(filter),
      after: String(after),
      until: String(after + BigInt(changes)),
      events,
      bytes,
    },
  )
}

/** `payment_changes.kind` of a deletion. */
const DELETE = 3

/** The size of a payment: only its lists can be long. */
const BYTES = ['fees', 'exchange_rates', 'refunds', 'status_history'].map((list) => `length(${list}::text)`).join(' + ')

/** The last change that the batch covers: all of the range, or what lies before the first event that did not fit. */
function endOf({ after, changes }: WatchQuery, { lastChange }: LogExtent, events: readonly ReadEvent[]): bigint {
  const nextEvent = events.at(-1)?.nextEvent
  if (nextEvent !== undefined) return nextEvent - 1n
  const end = after + BigInt(changes)
  return end < lastChange ? end : lastChange
}

function toEvent({ row, change, at, id, matched, matches }: ReadEvent, heads: Heads): WatchEvent {
  const [image] = row
  const payment = image === null ? undefined : paymentOfRow(row, heads)
  if (payment !== undefined && matches) return { type: matched ? 'UPDATED' : 'ADDED', change, at, payment }
  return { type: 'REMOVED', change, at, id, payment }
}

async function readProgress(knex: Knex, signal: AbortSignal | undefined): Promise<ChainProgress[]> {
  const [rows = []] = await runNamed(knex, [chainProgressStatement], signal)
  return rows.map(chainProgressOf)
}
