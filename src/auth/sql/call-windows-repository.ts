import type { Knex } from 'knex'
import { raw, readRows } from '../../postgres/statement.ts'

/** The calls of a key that a process wants to lease. */
export interface LeaseTerms {
  readonly keyId: string
  /** Calls a minute. */
  readonly limit: number
  /** Calls that wait for the lease; at least one. */
  readonly wanted: number
}

/** Calls of the current minute that one process may let through without another query. */
export interface Lease {
  /** 0 when the minute has none left. */
  readonly granted: number
  /** Calls left in the minute for all processes, after this lease. */
  readonly remaining: number
  /** Milliseconds until the minute ends, by the clock of the database. */
  readonly leftMs: number
}

export type LeaseCalls = (terms: LeaseTerms, signal?: AbortSignal) => Promise<Lease>

/** A lease is a tenth of what is left, but never fewer calls than wait: few queries, and little left unused in other processes. */
const SHARE = 10

/**
 * Leases calls from one row a key, which is updated in place. The clock of the database decides. Each key's minute begins at a second
 * of its own, so that not all refused callers return at the same moment. A clock set back by more than a minute begins a new minute.
 *
 * @param options.now - replaces the database's clock in tests
 */
export function createLeaseCalls(knex: Knex, options: { readonly now?: (() => Date) | undefined } = {}): LeaseCalls {
  return async ({ keyId, limit, wanted }, signal) => {
    const shift = Number.parseInt(keyId.slice(0, 8), 16) % 60
    const now = options.now?.() ?? null
    const statement = raw(LEASE, { keyId, limit, wanted, shift, now })
    const [row] = await readRows<{ granted: number; used: number; left_ms: number }>(knex, statement, signal)
    if (row === undefined) throw new Error(`the lease of key ${keyId} returned no row`)
    return { granted: row.granted, remaining: limit - row.used, leftMs: row.left_ms }
  }
}

const grantOf = (left: string) =>
  `least(${left}, greatest(cast(:wanted as integer), cast(ceil(${left} / ${SHARE}.0) as integer)))`
const ALL = 'cast(:limit as integer)'
const LEFT = `greatest(${ALL} - w.used, 0)`
const IS_SAME_MINUTE = 'w.minute - excluded.minute between 0 and 1'

const LEASE = `
  with clock as (
    select extract(epoch from coalesce(cast(:now as timestamptz), clock_timestamp())) + cast(:shift as integer) as seconds
  )
  insert into call_windows as w (key_id, minute, used, granted)
  select cast(:keyId as uuid), cast(floor(seconds / 60) as integer), ${grantOf(ALL)}, ${grantOf(ALL)} from clock
  on conflict (key_id) do update set
    minute = case when ${IS_SAME_MINUTE} then w.minute else excluded.minute end,
    used = case when ${IS_SAME_MINUTE} then w.used + ${grantOf(LEFT)} else excluded.used end,
    granted = case when ${IS_SAME_MINUTE} then ${grantOf(LEFT)} else excluded.granted end
  returning granted, used, cast(((w.minute + 1) * 60 - (select seconds from clock)) * 1000 as float8) as left_ms`
