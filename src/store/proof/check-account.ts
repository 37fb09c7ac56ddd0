import type { Knex } from 'knex'
import { statusOfRank, typeOfCode } from '../domain/payment.ts'
import { requestStatuses } from '../domain/payment-request.ts'
import { inTransaction } from '../postgres/cancellable.ts'
import type { PaymentRow } from './payment-row.ts'
import { canonicalAmount, type LedgerRequestRow, loadRefunds, settleRequests } from './request-ledger.ts'

/** Something that is stored and does not follow from the rest of what is stored. */
export interface Difference {
  readonly check: 'statistics' | 'changes' | 'payment' | 'request'
  /** Which combination, change, payment or request. */
  readonly where: string
  readonly stored: string
  readonly expected: string
}

/** How many were looked at. */
export interface Checked {
  readonly payments: bigint
  readonly changes: bigint
  readonly requests: number
}

export interface CheckOptions {
  readonly signal?: AbortSignal | undefined
  /** Told before each part, and within long ones. */
  readonly onProgress: (what: string) => Promise<void> | void
  /** Told of each; the check waits for it. */
  readonly onDifference: (difference: Difference) => Promise<void> | void
}

/** Enough to see what is wrong with a table that is wrong throughout. */
const MOST_OF_A_KIND = 1_000

/** Requests whose payments are held in memory at once. */
const REQUESTS_A_PAGE = 500

/**
 * Proves what is derived of an account's payments: that statistics are exact (their times a superset), that the log of changes has no
 * gaps and fits the payments, that requests know their payments and topics, and that status and refunds follow from what was paid and
 * returned. All of it in one snapshot, beside whoever writes.
 */
export function checkAccount(knex: Knex, accountId: number, options: CheckOptions): Promise<Checked> {
  const { signal, onProgress, onDifference } = options
  return inTransaction(
    knex,
    signal,
    async (trx) => {
      const tell = async (differences: readonly Difference[]) => {
        for (const difference of differences) await onDifference(difference)
      }
      await onProgress('statistics')
      await tell(await checkStatistics(trx, accountId))
      await onProgress('changes')
      const log = await readLog(trx, accountId)
      await tell(await checkChanges(trx, accountId, log))
      await onProgress('requests')
      await tell(await checkNames(trx, accountId))
      let requests = 0
      for await (const page of requestPages(trx, accountId)) {
        await tell(await checkSettled(trx, accountId, page))
        requests += page.length
        await onProgress(`${requests.toLocaleString('en')} requests`)
      }
      return { payments: log.payments, changes: log.changes, requests }
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  )
}

interface StatisticsRow {
  readonly network: string
  readonly source_network: string
  readonly currency: string
  readonly invoice_currency: string
  readonly type: number
  readonly status: number
  readonly stored: string | null
  readonly counted: string | null
}

async function checkStatistics(trx: Knex, accountId: number): Promise<Difference[]> {
  const bindings = [accountId, accountId, MOST_OF_A_KIND]
  const { rows } = await trx.raw<{ rows: StatisticsRow[] }>(COMPARE_STATISTICS, bindings)
  return rows.map((row) => ({
    check: 'statistics',
    where: [
      row.network,
      row.source_network,
      row.currency,
      row.invoice_currency,
      row.type === -1 ? '' : typeOfCode(row.type),
      statusOfRank(row.status),
    ]
      .map((part) => (part === '' ? '-' : part))
      .join(' '),
    stored: row.stored ?? 'none',
    expected: row.counted ?? 'none',
  }))
}

const DESCRIBE =
  `concat_ws(' ', n, currency_symbol, case when priced then 'with US dollars' end, to_char(first_at, ISO), 'to',
  to_char(last_at, ISO))`.replaceAll('ISO', `'YYYY-MM-DD"T"HH24:MI:SS"Z"'`)

const COMPARE_STATISTICS = `
  with counted as (
    select network, coalesce(source_network, '') as source_network, currency, coalesce(invoice_currency, '') as invoice_currency,
      coalesce(type, -1)::smallint as type, status, min(currency_symbol) as currency_symbol, count(*) as n,
      min(timestamp) as first_at, max(timestamp) as last_at, bool_or(amount_in_usd is not null) as priced
    from payments where account_id = ? group by 1, 2, 3, 4, 5, 6
  )
  select network, source_network, currency, invoice_currency, type, status,
    (select ${DESCRIBE} from (select s.*) told where n is not null) as stored,
    (select ${DESCRIBE} from (select c.*) told where n is not null) as counted
  from (select * from payment_statistics where account_id = ?) s
  full join counted c using (network, source_network, currency, invoice_currency, type, status)
  where coalesce(s.n, 0) <> coalesce(c.n, 0) or s.first_at > c.first_at or s.last_at < c.last_at
    or s.currency_symbol <> c.currency_symbol or (c.priced and not s.priced)
  order by 1, 2, 3, 4, 5, 6 limit ?`

interface Log {
  readonly payments: bigint
  readonly changes: bigint
  readonly last: bigint
  readonly pruned: bigint
}

async function readLog(trx: Knex, accountId: number): Promise<Log> {
  const { rows } = await trx.raw<{ rows: [Log] }>(
    `select (select count(*) from payments where account_id = ?) as payments,
       (select count(*) from payment_changes where account_id = ?) as changes,
       coalesce((select last_change from account_changes where account_id = ?), 0) as last,
       coalesce((select pruned_change from account_changes where account_id = ?), 0) as pruned`,
    [accountId, accountId, accountId, accountId],
  )
  return rows[0]
}

async function checkChanges(trx: Knex, accountId: number, { last, pruned }: Log): Promise<Difference[]> {
  const gaps = await trx.raw<{ rows: { previous: bigint; change: bigint }[] }>(FIND_GAPS, [
    pruned.toString(),
    accountId,
    last.toString(),
    pruned.toString(),
    accountId,
    MOST_OF_A_KIND,
  ])
  const misfits = await trx.raw<{ rows: MisfitRow[] }>(FIND_MISFITS, [accountId, accountId, MOST_OF_A_KIND])
  return [
    ...gaps.rows.map((gap) => gapOf(gap, { last, pruned })),
    ...misfits.rows.map(({ change, payment_id: id, what }): Difference => {
      const [stored = '', expected = ''] = what.split('; ')
      return { check: 'changes', where: `${change} of ${id}`, stored, expected }
    }),
  ]
}

function gapOf(
  { previous, change }: { previous: bigint; change: bigint },
  { last, pruned }: Pick<Log, 'last' | 'pruned'>,
): Difference {
  if (change > previous) {
    const missing = change - previous === 2n ? `${previous + 1n}` : `${previous + 1n} to ${change - 1n}`
    return { check: 'changes', where: missing, stored: 'none', expected: `one of each from ${pruned + 1n} to ${last}` }
  }
  // behind what was pruned, or, from the end, beyond what was counted
  const where = change === last + 1n ? `${last + 1n} to ${previous}` : `${change}`
  return { check: 'changes', where, stored: 'logged', expected: `none but from ${pruned + 1n} to ${last}` }
}

const FIND_GAPS = `
  select previous, change from (
    select change, lag(change, 1, ?::bigint) over (order by change) as previous from payment_changes where account_id = ?
    union all
    select ?::bigint + 1, coalesce(max(change), ?::bigint) from payment_changes where account_id = ?
  ) steps
  where change <> previous + 1 order by change limit ?`

interface MisfitRow {
  readonly change: bigint
  readonly payment_id: string
  /** What is stored; what is expected. */
  readonly what: string
}

const FIND_MISFITS = `
  select change, payment_id, what from (
    select c.change, c.payment_id, case
      when (kind = 1) <> (old is null) then 'kind ' || kind || case when old is null then ' without' else ' with' end
        || ' the row before; ' || case when kind = 1 then 'none' else 'the row before' end
      when previous = 3 and kind <> 1 then 'kind ' || kind || ' after a delete; an insert'
      when previous <> 3 and kind = 1 then 'an insert of what was there; an update or delete'
      when is_latest and kind = 3 and p.id is not null then 'a delete of what is there; no payment'
      when is_latest and kind <> 3 and p.id is null then 'no delete of what is gone; a payment'
    end as what
    from (
      select change, payment_id, kind, old, lag(kind) over w as previous, lead(kind) over w is null as is_latest
      from payment_changes where account_id = ? window w as (partition by payment_id order by change)
    ) c
    left join lateral (select id from payments where account_id = ? and id = c.payment_id offset 0) p on is_latest
  ) checked
  where what is not null order by change limit ?`

interface NameRow {
  readonly request_id: Buffer
  readonly payment_id: string | null
}

/** Topics by which events find their requests, and payments that name a request by its reference alone. */
async function checkNames(trx: Knex, accountId: number): Promise<Difference[]> {
  const topics = await trx.raw<{ rows: NameRow[] }>(FIND_UNKNOWN_TOPICS, [
    accountId,
    accountId,
    accountId,
    MOST_OF_A_KIND,
  ])
  const unclaimed = await trx.raw<{ rows: NameRow[] }>(FIND_UNCLAIMED, [accountId, accountId, MOST_OF_A_KIND])
  return [
    ...topics.rows.map(
      ({ request_id }): Difference => ({
        check: 'request',
        where: request_id.toString('hex'),
        stored: 'its events are not looked for',
        expected: 'its topics are known',
      }),
    ),
    ...unclaimed.rows.map(
      ({ request_id, payment_id }): Difference => ({
        check: 'payment',
        where: payment_id ?? '',
        stored: 'no request',
        expected: `request ${request_id.toString('hex')}, whose reference it names`,
      }),
    ),
  ]
}

const FIND_UNKNOWN_TOPICS = `
  select request_id from requests r
  where account_id = ? and (
    not exists (select from reference_topics t where t.topic = r.topic and t.account_id = ?)
    or (refund_topic is not null
      and not exists (select from reference_topics t where t.topic = r.refund_topic and t.account_id = ?)))
  order by request_id limit ?`

const FIND_UNCLAIMED = `
  select r.request_id, p.id as payment_id from requests r
  join payments p on p.payment_reference = r.payment_reference and p.network = r.network
  where r.account_id = ? and p.account_id = ? and p.request_id is null and (p.payee is null or p.payee = r.payee)
  order by p.id limit ?`

/** All requests of an account, some at a time. */
export async function* requestPages(trx: Knex, accountId: number): AsyncGenerator<LedgerRequestRow[]> {
  let after: Buffer = Buffer.alloc(0)
  for (;;) {
    const { rows } = await trx.raw<{ rows: LedgerRequestRow[] }>(
      `select request_id, amount, invoice_currency, surplus_returned, status from requests
       where account_id = ? and request_id > ? order by request_id limit ?`,
      [accountId, after, REQUESTS_A_PAGE],
    )
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = last.request_id
  }
}

async function checkSettled(
  trx: Knex,
  accountId: number,
  requests: readonly LedgerRequestRow[],
): Promise<Difference[]> {
  const ids = requests.map(({ request_id }) => request_id)
  const { rows: payments } = await trx.raw<{ rows: PaymentRow[] }>(
    'select * from payments where account_id = ? and request_id = any(?)',
    [accountId, ids],
  )
  const refunds = await loadRefunds(
    trx,
    accountId,
    ids.map((id) => id.toString('hex')),
  )
  const stored = new Map(payments.map((row) => [row.id, row]))
  const now = new Date(0)
  const { settled, standings } = settleRequests({ requests, payments, refunds, stored, droppedRefunds: [], now })
  const requestOf = new Map(requests.map((row) => [row.request_id.toString('hex'), row]))
  return [
    ...settled.flatMap((row): Difference[] => {
      const before = stored.get(row.id)
      if (before === undefined || before === row) return []
      return [{ check: 'payment', where: row.id, stored: describePayment(before), expected: describePayment(row) }]
    }),
    ...standings.map(({ requestId, surplusReturned, status }): Difference => {
      const where = requestId.toString('hex')
      const row = requestOf.get(where)
      const had = describeStanding(requestStatuses[(row?.status ?? 0) - 1], row?.surplus_returned ?? '0')
      return { check: 'request', where, stored: had, expected: describeStanding(status, surplusReturned) }
    }),
  ]
}

function describePayment({ status, refunded_amount, refunds }: PaymentRow): string {
  const entries = refunds.map(({ amount, txHash }) => `${amount} by ${txHash.slice(0, 10)}`)
  const returned = entries.length === 0 ? [] : [`${canonicalAmount(refunded_amount)} returned (${entries.join(', ')})`]
  return [statusOfRank(status), ...returned].join(', ')
}

function describeStanding(status = 'no status', surplusReturned: string): string {
  return `${status}, ${canonicalAmount(surplusReturned)} returned of the surplus`
}

/** Every account that anything is stored of, by id; those that have no name included. */
export async function listStoredAccounts(knex: Knex): Promise<{ id: number; name: string }[]> {
  const { rows } = await knex.raw<{ rows: { id: number; name: string }[] }>(
    `select id, coalesce(name, '#' || id) as name from (
       select id from accounts
       union select account_id from account_changes
       union select account_id from payment_statistics
     ) found
     left join accounts using (id) order by id`,
  )
  return rows
}
