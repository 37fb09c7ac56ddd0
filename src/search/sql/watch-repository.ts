import type { Knex } from 'knex'
import type { Payment } from '../../domain/payment.ts'
import { parseTimestamp } from '../../postgres/parse-timestamp.ts'
import { runPrepared, runPreparedText, type TextRow } from '../../postgres/prepared.ts'
import { type Heads, isCountedUp, NO_HEADS, paymentOfRow, readPaymentColumns } from '../../store/payment-row.ts'
import type { PaymentFilter } from '../filter/payment-filter.ts'
import { matchCondition, type Statement } from './payment-query.ts'

/** What a change was to those who watch a filter. */
export type WatchEvent =
  | { readonly type: 'ADDED' | 'UPDATED'; readonly change: bigint; readonly at: Date; readonly payment: Payment }
  | {
      readonly type: 'REMOVED'
      readonly change: bigint
      readonly at: Date
      readonly id: string
      /** As the change left it; absent where it is gone. */
      readonly payment?: Payment
    }

/** How far the log of an account goes. */
export interface LogExtent {
  /** 0 before the first. */
  readonly lastChange: bigint
  /** What is not kept any more; 0 where all is. */
  readonly prunedChange: bigint
}

/** A part of the log. */
export interface WatchBatch extends LogExtent {
  /** In the order of changes. */
  readonly events: readonly WatchEvent[]
  /** The last change that was looked at: the next batch begins after it. */
  readonly through: bigint
  /** Whether there was no room for more bytes. */
  readonly isFull: boolean
}

export interface WatchQuery {
  readonly filter: PaymentFilter
  /** The last change before the batch. */
  readonly after: bigint
  /** How many changes to look at, at most. */
  readonly changes: number
  /** How many events, at most. */
  readonly events: number
  /** Of the lists within the events, above which none is added: what bounds them but for the last one. */
  readonly bytes: number
}

/** Reads the log of changes. */
export interface WatchRepository {
  /** Reads what the changes after one were to a filter. */
  read(query: WatchQuery, signal?: AbortSignal): Promise<WatchBatch>
  /** How far the log of an account goes. */
  extent(accountId: number, signal?: AbortSignal): Promise<LogExtent>
  /** The last change of each of several accounts; one that has none is left out. */
  lastChanges(accountIds: readonly number[]): Promise<ReadonlyMap<number, bigint>>
}

export function createWatchRepository(knex: Knex): WatchRepository {
  return {
    async read(query, signal) {
      const rows = await runPreparedText(knex, batchStatement(query), signal)
      const extent = extentOfRow(rows[0]?.slice(BEHIND_PAYMENT))
      const events = rows.flatMap((row) => eventOfRow(row) ?? [])
      const heads = events.some(({ row }) => isCountedUp(row)) ? await readHeads(knex, signal) : NO_HEADS
      return {
        ...extent,
        events: events.map((event) => toEvent(event, heads)),
        through: rows.length === 0 ? query.after : endOf(query, extent, events),
        isFull: events.length < query.events && events.at(-1)?.nextEvent !== undefined,
      }
    },
    async extent(accountId, signal) {
      const [row] = await runPreparedText(knex, { sql: EXTENT, bindings: [accountId] }, signal)
      return extentOfRow(row)
    },
    async lastChanges(accountIds) {
      const statement = { sql: LAST_CHANGES, bindings: [accountIds] }
      const rows = await runPrepared<{ account_id: number; last_change: bigint }>(knex, statement, undefined)
      return new Map(rows.map(({ account_id, last_change }) => [account_id, last_change]))
    },
  }
}

const EXTENT = 'select last_change, pruned_change from account_changes where account_id = ?'
const LAST_CHANGES = 'select account_id, last_change from account_changes where account_id = any(?::int[])'

function extentOfRow([lastChange, prunedChange]: TextRow = []): LogExtent {
  return { lastChange: BigInt(lastChange ?? 0), prunedChange: BigInt(prunedChange ?? 0) }
}

/** The columns of a batch behind those of the payment as the change left it, which are null where it is gone. */
const BEHIND_PAYMENT = readPaymentColumns.length
const behindPayment = 'c.last_change, c.pruned_change, e.change, e.at, e.payment_id, e.matched, e.matches, e.next_event'

interface ReadEvent {
  readonly row: TextRow
  readonly change: bigint
  readonly at: Date
  readonly id: string
  readonly matched: boolean
  readonly matches: boolean
  /** The next change that is an event; undefined where the rest of what was looked at holds none. */
  readonly nextEvent: bigint | undefined
}

/** Undefined for the one row of a batch without events. */
function eventOfRow(row: TextRow): ReadEvent | undefined {
  const [, , change = null, at, id, matched, matches, nextEvent = null] = row.slice(BEHIND_PAYMENT)
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
 * The log holds what each change took away, so a payment after a change is what the next one took away from it, or the row as it
 * stands. All of it is read within one snapshot. The numbers of changes have no gaps, so their range bounds the work.
 *
 * Without a table, columns in the conditions mean the innermost one: the image that is looked at. The offset keeps the planner from
 * making an image where there is none.
 */
export function batchStatement({ filter, after, changes, events, bytes }: WatchQuery): Statement {
  const { accountId } = filter
  const condition = matchCondition(filter)
  const sql = `select ${readPaymentColumns.map((column) => `e.${column}`).join(', ')}, ${behindPayment}
from account_changes c
left join lateral (
  select b.change, b.at, b.payment_id, coalesce(old.matches, false) as matched,
    coalesce(new.matches, false) as matches, ${readPaymentColumns.map((column) => `new.${column}`).join(', ')},
    coalesce(new.bytes, 0) as bytes, sum(coalesce(new.bytes, 0)) over w as bytes_until, lead(b.change) over w as next_event
  from payment_changes b
  left join lateral (
    select true as matches from jsonb_populate_record(null::payments, b.old) where b.old is not null and (${condition.sql})
    offset 0
  ) old on true
  left join lateral (
    select n.old from payment_changes n
    where n.account_id = ? and n.payment_id = b.payment_id and n.change > b.change and n.old is not null
    order by n.change limit 1
  ) next on b.kind <> ${DELETE}
  left join lateral (
    select p.*, (${condition.sql}) as matches, ${BYTES} as bytes from payments p
    where p.account_id = ? and p.id = b.payment_id and b.kind <> ${DELETE} and next.old is null
    union all
    select p.*, (${condition.sql}), ${BYTES} from jsonb_populate_record(null::payments, next.old) p where next.old is not null
  ) new on true
  where b.account_id = ? and b.change > ?::bigint and b.change <= ?::bigint and (old.matches or new.matches)
  window w as (order by b.change rows between unbounded preceding and current row)
  order by b.change limit ?
) e on e.bytes_until - e.bytes < ?
where c.account_id = ?
order by e.change`
  const bindings = [
    ...condition.bindings,
    accountId,
    ...condition.bindings,
    accountId,
    ...condition.bindings,
    accountId,
    String(after),
    String(after + BigInt(changes)),
    events,
    bytes,
    accountId,
  ]
  return { sql, bindings }
}

/** As `payment_changes.kind` stands for it. */
const DELETE = 3

/** Only the lists can be long. */
const BYTES = ['fees', 'exchange_rates', 'refunds', 'status_history'].map((list) => `length(${list}::text)`).join(' + ')

/** Either all that was to be looked at, or what lies before the first event that found no room. */
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
  return { type: 'REMOVED', change, at, id, ...(payment !== undefined && { payment }) }
}

/** Confirmations of payments that are not final are counted now. */
async function readHeads(knex: Knex, signal: AbortSignal | undefined): Promise<Heads> {
  const statement = { sql: 'select chain_id, head_block from chain_state', bindings: [] }
  const rows = await runPrepared<{ chain_id: string; head_block: bigint }>(knex, statement, signal)
  return new Map(rows.map(({ chain_id, head_block }) => [chain_id, head_block]))
}
