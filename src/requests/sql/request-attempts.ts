import type { Account } from '../../domain/account.ts'
import { addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { CutPosition } from '../../domain/pages/cut-page.ts'
import { isUnpaid, requestStatuses } from '../../domain/payment-request.ts'
import { allOf, commonTable, join, raw, type Statement, TRUE, timeText, unionAll } from '../../postgres/statement.ts'
import type { RequestFilter } from '../rules/request-filter.ts'
import {
  accountIs,
  conditionOf,
  IS_INVOICED_OTHERWISE,
  IS_OVERPAID,
  MAX_UNPAID,
  type MatchingRequests,
  ranksOf,
} from './request-conditions.ts'

/** Where a page begins: next to the request of this key, in the direction of the page. */
export interface PagePosition extends CutPosition {
  readonly createdAtMs: number
  readonly requestId: string
}

/** A page to read. */
export interface PageQuery {
  readonly matching: MatchingRequests
  /** The most requests. */
  readonly rows: number
  /** Undefined: the page begins with the newest request. */
  readonly position?: PagePosition | undefined
}

/** Stretches of one index, each in the order of the answer: one for each value and stored status. */
interface Branches {
  readonly column?: 'request_id' | 'reference' | 'payee' | 'payment_currency' | 'invoice_currency'
  readonly values?: readonly (string | Buffer)[]
  readonly ranks?: readonly number[]
  /** That of a partial index. */
  readonly condition?: Statement
  /** Whether the index has all columns of the condition, so that entries which do not meet it are passed without their rows. */
  readonly isCovered?: boolean
}

/** Branches in which all matching requests are. */
type Source = readonly Branches[]

/** Reads up to so many entries of every branch of a source. */
interface Attempt {
  readonly source: Source
  readonly limit: number
}

/** How far attempts go, and in which order. Pages are the same whatever it is. */
export interface AttemptOptions {
  /** Limits, as multiples of the rows of the page; after the last one there is none. */
  readonly multiples: readonly number[]
  readonly costOf: (branches: number, limit: number) => number
}

export const DEFAULT_ATTEMPTS: AttemptOptions = {
  multiples: [2, 8, 32, 128, 512, 2_048, 8_192],
  costOf: (branches, limit) => branches * limit,
}

/** More entries than any table has. It is a limit in SQL all the same, which keeps PostgreSQL to the index. */
const ALL = Number.MAX_SAFE_INTEGER

/**
 * The attempts at a page, those that read fewer entries first; the last one always gives it. An attempt fails where branches go on beyond
 * their limits and too few of the entries match. Every other source may then read as much before any may read more, so a page costs a
 * few times what its best source does.
 *
 * @example payee A and currency EUR: 42 entries of each status of A, else 42 of each of EUR, else 168 of A, …
 */
export function attemptsAt(
  { matching, rows }: PageQuery,
  { multiples, costOf }: AttemptOptions = DEFAULT_ATTEMPTS,
): Attempt[] {
  const limits = [...multiples.map((multiple) => Math.ceil(multiple * rows)), ALL]
  const attempts = sourcesOf(matching).flatMap((source) =>
    limits.map((limit) => ({ source, limit, cost: limit === ALL ? ALL : costOf(countBranches(source), limit) })),
  )
  const inOrder = attempts.toSorted((one, other) => one.cost - other.cost)
  return inOrder.slice(0, inOrder.findIndex(({ limit }) => limit === ALL) + 1)
}

function countBranches(source: Source): number {
  return source.reduce((sum, { values = [0], ranks = [0] }) => sum + values.length * ranks.length, 0)
}

/** Ids alone name few requests. Else every filter with an index is a source, and the account is one where a status narrows it or no filter is given. */
function sourcesOf({ filter, currencies, now }: MatchingRequests): Source[] {
  const { requestId, reference, payee, status, overpaid, network, currency } = filter
  const ranks = ranksOf(status ?? requestStatuses).filter((rank) => overpaid !== true || rank > MAX_UNPAID)
  if (requestId !== undefined) return [[{ column: 'request_id', values: requestId.map(hexToBytes) }]]
  const named: Source[] = []
  if (reference !== undefined) named.push([{ column: 'reference', values: reference, ranks }])
  if (payee !== undefined) named.push([{ column: 'payee', values: payee.map(addressToBytes), ranks }])
  if (network !== undefined) named.push([{ column: 'payment_currency', values: currencies.onNetworks, ranks }])
  if (currency !== undefined) {
    named.push([
      { column: 'payment_currency', values: currencies.payment, ranks },
      { column: 'invoice_currency', values: currencies.invoice, ranks, condition: raw(IS_INVOICED_OTHERWISE) },
    ])
  }
  if (status !== undefined || overpaid === true) return [...named, ofStatuses(filter, ranks, now)]
  return named.length > 0 ? named : [[{}]]
}

/** The account by status. Of cancelled and of overpaid requests there are few, and indexes of their own; expired ones stand behind those that are open. */
function ofStatuses(
  { status = requestStatuses, overpaid }: RequestFilter,
  ranks: readonly number[],
  now: Date,
): Source {
  const isClosedAlone = !status.some((each) => isUnpaid(each))
  const isExpired = isClosedAlone && status.includes('EXPIRED')
  const isCancelledAlone = isClosedAlone && !isExpired
  const ofExpired = isExpired
    ? raw('(cancelled_at is not null or expires_at <= ?::timestamptz)', [timeText(now.getTime())])
    : TRUE
  const ofUnpaid = isCancelledAlone
    ? raw('cancelled_at is not null')
    : allOf([raw(`status <= ${MAX_UNPAID}`), ofExpired])
  const ofPaid = raw(overpaid === true ? `status > ${MAX_UNPAID} and ${IS_OVERPAID}` : `status > ${MAX_UNPAID}`)
  return [
    { ranks: ranks.filter((rank) => rank <= MAX_UNPAID), condition: ofUnpaid, isCovered: isExpired },
    { ranks: ranks.filter((rank) => rank > MAX_UNPAID), condition: ofPaid },
  ]
}

const TYPES = {
  request_id: 'bytea',
  reference: 'text',
  payee: 'bytea',
  payment_currency: 'text',
  invoice_currency: 'text',
}

/**
 * The statement of one attempt. Every row says whether entries beyond the limits were left out (`is_cut`), so that a page which is not full may lack
 * requests. A page without any is one row of nulls.
 *
 * `edge` is where the first of the branches reaches its limit, in the order of the answer. What comes after it does not count, because
 * that branch may have requests in between.
 *
 * @example payee A, PAID, 42 entries
 * with entries as materialized (
 *   select k.* from unnest(?) v(value) cross join unnest(?) s(rank) cross join lateral (
 *     select created_at, request_id, (…the filter…) as fits, row_number() over () as nth from (
 *       select * from requests where account_id = ? and payee = v.value and status = s.rank order by created_at desc, request_id desc limit 42
 *     ) r
 *   ) k
 * ), edge as (select created_at, request_id from entries where nth = 42 order by created_at desc, request_id desc limit 1), …
 */
export function pageStatement(account: Account, query: PageQuery, { source, limit }: Attempt): Statement {
  const { matching, rows, position } = query
  const isNewer = position?.direction === 'backward'
  const order = isNewer ? 'order by created_at, request_id' : 'order by created_at desc, request_id desc'
  const fits = conditionOf(account, matching)
  const some = source.filter((each) => countBranches([each]) > 0)
  const entries = (some.length > 0 ? some : source).map(
    ({ column, values = [], ranks, condition = TRUE, isCovered = false }) => {
      const conditions = [
        accountIs(account),
        column === undefined ? TRUE : raw(`${column} = v.value`),
        ranks === undefined ? TRUE : raw('status = s.rank'),
        condition,
        ...boundsOf(query),
      ]
      const stretch = (names: string) => `select ${names} from requests where :conditions\n${order} limit ${limit}`
      const rowsOfStretch = isCovered
        ? `select r.* from (${stretch('request_id')}) k cross join lateral (
select * from requests where account_id = :id::int and request_id = k.request_id offset 0) r`
        : stretch('*')
      const branches = [
        ...(column === undefined ? [] : [raw(`unnest(?::${TYPES[column]}[]) v(value)`, [values])]),
        ...(ranks === undefined ? [] : [raw('unnest(?::smallint[]) s(rank)', [ranks])]),
        raw(
          `lateral (
select created_at, request_id, :fits as fits, row_number() over () as nth from (
${rowsOfStretch}
) r) k`,
          { conditions: allOf(conditions), id: account.id, fits },
        ),
      ]
      return raw('select k.* from ?', [join(branches, ' cross join ')])
    },
  )
  const edge = raw(`select created_at, request_id from entries where nth = ${limit} ${order} limit 1`)
  const page = raw(
    `select distinct created_at, request_id from entries e
where fits and not exists (select from edge where (e.created_at, e.request_id) ${isNewer ? '>' : '<'} (edge.created_at, edge.request_id))
${order} limit ?::int`,
    [rows],
  )
  const tables = [
    commonTable('entries', unionAll(entries), 'materialized'),
    commonTable('edge', edge),
    commonTable('page', page),
  ]
  return raw(
    `with ?
select exists (select from edge) as is_cut, r.* from (select) one
left join (page join requests r on r.account_id = ?::int and r.request_id = page.request_id) on true
${isNewer ? 'order by page.created_at, page.request_id' : 'order by page.created_at desc, page.request_id desc'}`,
    [join(tables, ', '), account.id],
  )
}

/** A bound that the position has passed is dropped: PostgreSQL might begin there. */
function boundsOf({ matching: { filter }, position }: PageQuery): Statement[] {
  const { fromDate, toDate } = filter
  const isNewer = position?.direction === 'backward'
  const since = fromDate === undefined || isNewer ? TRUE : raw('created_at >= ?::timestamptz', [timeText(fromDate)])
  const until =
    toDate === undefined || (position !== undefined && !isNewer)
      ? TRUE
      : raw('created_at <= ?::timestamptz', [timeText(toDate)])
  if (position === undefined) return [since, until]
  const { createdAtMs, requestId, inclusive } = position
  const comparison = `${isNewer ? '>' : '<'}${inclusive ? '=' : ''}`
  const key = [timeText(createdAtMs), hexToBytes(requestId)]
  return [since, until, raw(`(created_at, request_id) ${comparison} (?::timestamptz, ?::bytea)`, key)]
}
