import type { Knex } from 'knex'
import { paymentOfRow, type ReadPaymentRow, readPaymentColumns } from '../db/payment-row.ts'
import { runPrepared } from '../db/prepared.ts'
import type { Payment } from '../domain/payment.ts'
import type { PaymentFilter } from './payment-filter.ts'
import { matchCondition, type Statement } from './payment-query-repository.ts'

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
      const rows = await runPrepared<BatchRow>(knex, batchStatement(query), signal)
      const events = rows.flatMap((row) => (row.change === null ? [] : [row]))
      const heads = events.some(({ id, final }) => id !== null && !final) ? await readHeads(knex, signal) : NO_HEADS
      return {
        lastChange: rows[0]?.last_change ?? 0n,
        prunedChange: rows[0]?.pruned_change ?? 0n,
        events: events.map((row) => toEvent(row, heads)),
        through: endOf(query, rows),
        isFull: events.length < query.events && nextEventOf(rows) !== null,
      }
    },
    async extent(accountId, signal) {
      const rows = await runPrepared<ExtentRow>(knex, { sql: EXTENT, bindings: [accountId] }, signal)
      return { lastChange: rows[0]?.last_change ?? 0n, prunedChange: rows[0]?.pruned_change ?? 0n }
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

type ExtentRow = Readonly<Record<'last_change' | 'pruned_change', bigint>>

interface EventRow extends ReadPaymentRow, ExtentRow {
  readonly change: bigint
  readonly change_at: Date
  readonly payment_id: string
  readonly matched: boolean
  readonly matches: boolean
  /** The next change that is an event; null where the rest of what was looked at holds none. */
  readonly next_event: bigint | null
}

type BatchRow = EventRow | (ExtentRow & { readonly change: null })

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
  const sql = `select c.last_change, c.pruned_change, e.*
from account_changes c
left join lateral (
  select b.change, b.at as change_at, b.payment_id, coalesce(old.matches, false) as matched,
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
function endOf({ after, changes }: WatchQuery, rows: readonly BatchRow[]): bigint {
  const last = rows.at(-1)
  if (last === undefined) return after
  const nextEvent = nextEventOf(rows)
  if (nextEvent !== null) return nextEvent - 1n
  const end = after + BigInt(changes)
  return end < last.last_change ? end : last.last_change
}

/** The event that found no room; null where there is none. */
function nextEventOf(rows: readonly BatchRow[]): bigint | null {
  const last = rows.at(-1)
  return last === undefined || last.change === null ? null : last.next_event
}

function toEvent(row: EventRow, heads: ReadonlyMap<string, bigint>): WatchEvent {
  const { change, change_at: at, payment_id: id, matched, matches } = row
  // A payment that is gone has no image.
  const payment =
    row.id === null ? undefined : paymentOfRow(row, row.chain_id === null ? undefined : heads.get(row.chain_id))
  if (payment !== undefined && matches) return { type: matched ? 'UPDATED' : 'ADDED', change, at, payment }
  return { type: 'REMOVED', change, at, id, ...(payment !== undefined && { payment }) }
}

const NO_HEADS: ReadonlyMap<string, bigint> = new Map()

/** Confirmations of payments that are not final are counted now. */
async function readHeads(knex: Knex, signal: AbortSignal | undefined): Promise<ReadonlyMap<string, bigint>> {
  const statement = { sql: 'select chain_id, head_block from chain_state', bindings: [] }
  const rows = await runPrepared<{ chain_id: string; head_block: bigint }>(knex, statement, signal)
  return new Map(rows.map(({ chain_id, head_block }) => [chain_id, head_block]))
}
