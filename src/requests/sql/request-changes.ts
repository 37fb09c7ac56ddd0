import type { Knex } from 'knex'
import { inTransaction } from '../../postgres/cancellable.ts'
import { raw, readRows } from '../../postgres/statement.ts'
import { lockAccount, logRequests, REQUEST_CHANGE } from '../../store/payment-changes.ts'
import { type BalanceRow, type RequestWithBalance, requestWithBalanceOf } from './request-repository.ts'

/** A change of the log that is of a request, with the request as it is now: it may have changed again since. */
export interface RequestChange {
  readonly change: bigint
  readonly at: Date
  readonly found: RequestWithBalance
}

/**
 * Up to when the chains that are followed are read, by network; undefined: nothing or an unknown part is. A payment before a request's expiry may
 * still be found until then.
 */
export type ReadUntil = ReadonlyMap<string, Date | undefined>

/** Changes of a range of the log. */
interface ChangeRange {
  readonly accountId: number
  /** The last change before the range. */
  readonly after: bigint
  /** The last change of the range. */
  readonly through: bigint
}

/**
 * Reads the changes of requests in a range of an account's log. A request is EXPIRED once its chain is read up to its expiry.
 *
 * @param now - for chains that are not followed
 */
export async function readRequestChanges(
  knex: Knex,
  { accountId, after, through }: ChangeRange,
  { readUntil, now }: { readonly readUntil: ReadUntil; readonly now: Date },
  signal?: AbortSignal,
): Promise<RequestChange[]> {
  const statement = raw(CHANGES, [accountId, String(after), String(through), accountId])
  const rows = await readRows<BalanceRow & { change: bigint; at: Date }>(knex, statement, signal)
  return rows.map(({ change, at, ...row }) => ({
    change,
    at,
    found: requestWithBalanceOf(row, judgedAt(row.network, readUntil, now)),
  }))
}

const NEVER = new Date(0)

function judgedAt(network: string, readUntil: ReadUntil, now: Date): Date {
  if (!readUntil.has(network)) return now
  const until = readUntil.get(network) ?? NEVER
  return until < now ? until : now
}

const CHANGES = `
  select r.*, c.change, c.at from payment_changes c join requests r on r.account_id = c.account_id and r.request_id = c.changed_request
  where c.account_id = ? and c.change > ?::bigint and c.change <= ?::bigint and c.kind = ${REQUEST_CHANGE} and r.account_id = ?
  order by c.change`

/** Requests whose expiry is logged in one transaction, for which the account's writers wait. */
const REQUESTS_A_STEP = 500

/**
 * Logs the requests of an account that have expired since a moment and whose chain is read up to their expiry, each once.
 *
 * @returns how many, at most {@link REQUESTS_A_STEP}
 */
export async function logExpiredRequests(
  knex: Knex,
  { accountId, since }: { readonly accountId: number; readonly since: Date },
  { readUntil, now }: { readonly readUntil: ReadUntil; readonly now: Date },
  signal?: AbortSignal,
): Promise<number> {
  const bounds = [...readUntil].map(([network]) => [network, judgedAt(network, readUntil, now)] as const)
  const asked = {
    networks: bounds.map(([network]) => network),
    bounds: bounds.map(([, until]) => until.toISOString()),
    accountId,
    since,
    now,
    limit: REQUESTS_A_STEP,
  }
  const due = await readRows<{ request_id: Buffer }>(knex, raw(FIND_EXPIRED, asked), signal)
  if (due.length === 0) return 0
  return inTransaction(knex, signal, async (trx) => {
    const locked = await lockAccount(trx, accountId, now)
    const { rows } = await trx.raw<{ rows: { request_id: Buffer }[] }>(MARK, [
      accountId,
      due.map(({ request_id }) => request_id),
    ])
    await logRequests(
      locked,
      rows.map(({ request_id }) => request_id),
    )
    return rows.length
  })
}

const FIND_EXPIRED = `
  select r.request_id from requests r
  left join unnest(:networks::text[], :bounds::timestamptz[]) as b(network, bound) on b.network = r.network
  where r.account_id = :accountId and r.expires_at > :since and r.expires_at <= coalesce(b.bound, :now)
    and not r.expiry_logged and r.cancelled_at is null and r.status <= 2
  order by r.expires_at limit :limit`

const MARK = `update requests set expiry_logged = true
  where account_id = ? and request_id = any(?) and not expiry_logged and cancelled_at is null and status <= 2
  returning request_id`
