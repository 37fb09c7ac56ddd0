import type { Knex } from 'knex'
import { formatDecimal, trimNumeric } from '../../domain/decimal.ts'
import { statusOfRank, typeOfCode } from '../../domain/payment.ts'
import { settledStatuses } from '../../domain/payment-request.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { ENTRY_FACTS, READ_ENTRIES, REQUEST_CHANGE } from '../payment-changes.ts'
import type { PaymentRow } from '../payment-row.ts'
import { loadMeeting, loadRefunds, loadSuperseding, requestPages } from '../request-ledger.ts'
import { type LedgerRequestRow, type RequestStanding, settleRequests } from '../settle-requests.ts'
import { supersedeImports } from '../supersede-imports.ts'

/** How many rows were checked. */
export interface Checked {
  readonly payments: bigint
  readonly changes: bigint
  readonly requests: number
}

export interface CheckOptions {
  readonly signal?: AbortSignal | undefined
  /** Called before each part, and after each page of requests. */
  readonly onProgress: (what: string) => Promise<void> | void
  /** Called with each difference. The check waits for it. */
  readonly onDifference: (difference: Difference) => Promise<void> | void
}

/**
 * Proves that an account's derived rows follow from its payments, refunds and requests: that the statistics are exact (their times may be
 * a superset), that metadata is indexed, that the log of changes has no gaps and fits the payments, that requests know their payments and
 * topics, and that status and refunds are settled. It reads one snapshot and blocks no writer.
 */
export function checkAccount(knex: Knex, accountId: number, options: CheckOptions): Promise<Checked> {
  const { signal, onProgress, onDifference } = options
  const report = async (differences: readonly Difference[]) => {
    for (const difference of differences) await onDifference(difference)
  }
  return inTransaction(
    knex,
    signal,
    async (trx) => {
      await onProgress('statistics')
      await report(await checkStatistics(trx, accountId))
      await report(await checkMetadata(trx, accountId))
      await onProgress('changes')
      const log = await readChangeLog(trx, accountId)
      await report(await findGaps(trx, accountId, log))
      await report(await findMisfits(trx, accountId))
      await onProgress('requests')
      await report(await checkNames(trx, accountId))
      let requests = 0
      for await (const page of requestPages(trx, accountId)) {
        await report(await checkSettled(trx, accountId, page))
        requests += page.length
        await onProgress(`${requests.toLocaleString('en')} requests`)
      }
      return { payments: log.payments, changes: log.changes, requests }
    },
    { isolationLevel: 'repeatable read', readOnly: true },
  )
}

/** Every account that has any row, by id. An account without a name is called `#` and its id. */
export async function listStoredAccounts(knex: Knex): Promise<{ id: number; name: string }[]> {
  const named = await knex('accounts').select<{ id: number; name: string }[]>('id', 'name')
  const names = new Map(named.map(({ id, name }) => [id, name]))
  const changed = await knex('account_changes').pluck<number[]>('account_id')
  const counted = await knex('payment_statistics').distinct().pluck<number[]>('account_id')
  const ids = new Set([...names.keys(), ...changed, ...counted])
  return [...ids].toSorted((a, b) => a - b).map((id) => ({ id, name: names.get(id) ?? `#${id}` }))
}

/** How long the log of changes of an account is. */
interface ChangeLog {
  /** Payments of the account. */
  readonly payments: bigint
  /** Changes in the log. */
  readonly changes: bigint
  /** The number of the last change. */
  readonly last: bigint
  /** The number of the last change that was pruned. */
  readonly pruned: bigint
}

async function readChangeLog(trx: Knex, accountId: number): Promise<ChangeLog> {
  const { rows } = await trx.raw<{ rows: [ChangeLog] }>(
    `select (select count(*) from payments where account_id = ?) as payments,
       (select count(*) from payment_changes where account_id = ?) as changes,
       coalesce((select last_change from account_changes where account_id = ?), 0) as last,
       coalesce((select pruned_change from account_changes where account_id = ?), 0) as pruned`,
    [accountId, accountId, accountId, accountId],
  )
  return rows[0]
}

interface GapRow {
  readonly previous: bigint
  readonly change: bigint
}

/** Checks that the log has each change from the first that is kept to the last. */
async function findGaps(trx: Knex, accountId: number, log: ChangeLog): Promise<Difference[]> {
  const [last, pruned] = [log.last.toString(), log.pruned.toString()]
  const bindings = [pruned, accountId, last, pruned, accountId, MAX_DIFFERENCES]
  const { rows } = await trx.raw<{ rows: GapRow[] }>(FIND_GAPS, bindings)
  return rows.map((gap) => describeGap(gap, log))
}

function describeGap({ previous, change }: GapRow, { last, pruned }: ChangeLog): Difference {
  if (change > previous) {
    const where = change - previous === 2n ? `${previous + 1n}` : `${previous + 1n} to ${change - 1n}`
    return { check: 'changes', where, stored: 'none', expected: `one of each from ${pruned + 1n} to ${last}` }
  }
  // A change that should be pruned. At the end of the log, changes beyond the last one that was counted.
  const where = change === last + 1n ? `${last + 1n} to ${previous}` : `${change}`
  return { check: 'changes', where, stored: 'logged', expected: `none but from ${pruned + 1n} to ${last}` }
}

/** Binds the pruned change, the account, the last change, the pruned change, the account, a limit. */
const FIND_GAPS = `
  select previous, change from (
    select change, lag(change, 1, ?::bigint) over (order by change) as previous from payment_changes where account_id = ?
    union all
    select ?::bigint + 1, coalesce(max(change), ?::bigint) from payment_changes where account_id = ?
  ) steps
  where change <> previous + 1 order by change limit ?`

/** Checks that the changes of the log fit the payments. */
async function findMisfits(trx: Knex, accountId: number): Promise<Difference[]> {
  const { rows } = await trx.raw<{ rows: FoundRow[] }>(FIND_MISFITS, [accountId, accountId, MAX_DIFFERENCES])
  return rows.map((row) => ({ check: 'changes', ...row }))
}

/** What can be wrong with a change: the condition, what is stored, what is expected. The first one that holds is reported. Kinds: 1 insert, 2 update, 3 delete. */
const MISFITS = [
  [
    '(kind = 1) <> (old is null)',
    `'kind ' || kind || case when old is null then ' without' else ' with' end || ' the row before'`,
    `case when kind = 1 then 'none' else 'the row before' end`,
  ],
  ['previous = 3 and kind <> 1', `'kind ' || kind || ' after a delete'`, `'an insert'`],
  ['previous <> 3 and kind = 1', `'an insert of an existing payment'`, `'an update or delete'`],
  ['is_latest and kind = 3 and p.id is not null', `'a delete of an existing payment'`, `'no payment'`],
  ['is_latest and kind <> 3 and p.id is null', `'no delete of a missing payment'`, `'a payment'`],
  ['is_latest and p.changed_at <> at', `'a payment changed at ' || p.changed_at`, `at::text`],
] as const

const cases = (result: 1 | 2) => MISFITS.map((misfit) => `when ${misfit[0]} then ${misfit[result]}`).join('\n      ')

/** Binds the account twice, then a limit. */
const FIND_MISFITS = `
  select change || ' of ' || payment_id as "where", stored, expected from (
    select c.change, c.payment_id,
      case ${cases(1)} end as stored,
      case ${cases(2)} end as expected
    from (
      select change, payment_id, kind, at, old, lag(kind) over w as previous, lead(kind) over w is null as is_latest
      from payment_changes where account_id = ? and kind <> ${REQUEST_CHANGE} window w as (partition by payment_id order by change)
    ) c
    left join lateral (select id, changed_at from payments where account_id = ? and id = c.payment_id offset 0) p on is_latest
  ) checked
  where stored is not null order by change limit ?`

/** Checks that the topics of all requests are stored, and that no payment names a request by its reference without belonging to it. */
async function checkNames(trx: Knex, accountId: number): Promise<Difference[]> {
  const unknown = await findUnknownTopics(trx, accountId)
  const claims = [accountId, accountId, MAX_DIFFERENCES]
  const { rows: unclaimed } = await trx.raw<{ rows: FoundRow[] }>(FIND_UNCLAIMED, claims)
  const lacking = { stored: 'a topic is missing', expected: 'its topics are stored' }
  return [
    ...unknown.map((id): Difference => ({ check: 'request', where: id.toString('hex'), ...lacking })),
    ...unclaimed.map((row): Difference => ({ check: 'payment', ...row })),
  ]
}

/** Requests whose topics are compared at once. */
const REQUESTS_A_PAGE = 2_000

interface TopicsRow {
  readonly request_id: Buffer
  readonly topic: Buffer
  readonly refund_topic: Buffer | null
}

/**
 * Finds the requests that have a topic which the directory lacks. The directory may be sharded by topic and requests are by account, so they are
 * read one after the other and not joined.
 */
async function findUnknownTopics(trx: Knex, accountId: number): Promise<Buffer[]> {
  const found: Buffer[] = []
  let after: Buffer = Buffer.alloc(0)
  while (found.length < MAX_DIFFERENCES) {
    const { rows } = await trx.raw<{ rows: TopicsRow[] }>(READ_TOPICS, [accountId, after, REQUESTS_A_PAGE])
    const last = rows.at(-1)
    if (last === undefined) break
    const known = await trx.raw<{ rows: Pick<TopicsRow, 'topic'>[] }>(FIND_TOPICS, [rows.flatMap(topicsOf), accountId])
    const isKnown = new Set(known.rows.map(({ topic }) => topic.toString('hex')))
    const lacking = rows.filter((row) => topicsOf(row).some((topic) => !isKnown.has(topic.toString('hex'))))
    found.push(...lacking.map(({ request_id }) => request_id))
    after = last.request_id
  }
  return found.slice(0, MAX_DIFFERENCES)
}

function topicsOf({ topic, refund_topic }: TopicsRow): Buffer[] {
  return refund_topic === null ? [topic] : [topic, refund_topic]
}

const READ_TOPICS =
  'select request_id, topic, refund_topic from requests where account_id = ? and request_id > ? order by request_id limit ?'

const FIND_TOPICS = 'select topic from reference_topics where topic = any(?) and account_id = ?'

/** Binds the account twice, then a limit. */
const FIND_UNCLAIMED = `
  select p.id as "where", 'no request' as stored,
    'request ' || encode(r.request_id, 'hex') || ', whose reference it names' as expected
  from requests r
  join payments p on p.payment_reference = r.payment_reference and p.network = r.network
  where r.account_id = ? and p.account_id = ? and p.request_id is null and (p.payee is null or p.payee = r.payee)
  order by p.id limit ?`

/** Checks that status and refunds of requests and their payments are what settling makes of them. */
async function checkSettled(
  trx: Knex.Transaction,
  accountId: number,
  requests: readonly LedgerRequestRow[],
): Promise<Difference[]> {
  const ids = requests.map(({ request_id }) => request_id.toString('hex'))
  const { requests: met, payments } = await loadMeeting(trx, accountId, ids)
  const now = new Date(0)
  const known = await loadSuperseding({ trx, accountId }, met, payments)
  const { rows, absorbed } = supersedeImports(payments, { ...known, now })
  const misplaced = rows.flatMap((row) => compareSuperseded(payments, row, absorbed))
  if (misplaced.length > 0) return misplaced
  const refunds = await loadRefunds(trx, accountId, ids)
  const stored = new Map(payments.map((row) => [row.id, row]))
  const { settled, standings } = settleRequests({ requests, payments, refunds, stored, now })
  const requestOf = new Map(requests.map((row) => [row.request_id.toString('hex'), row]))
  return [
    ...settled.flatMap((row) => comparePayments(stored.get(row.id), row)),
    ...standings.flatMap((standing) => compareStandings(requestOf.get(standing.requestId.toString('hex')), standing)),
  ]
}

/** An imported payment beside what detection has found. While one is wrong, so is what its request comes to. */
function compareSuperseded(
  before: readonly PaymentRow[],
  row: PaymentRow,
  absorbed: ReadonlyMap<string, PaymentRow>,
): Difference[] {
  const event = absorbed.get(row.id)
  const isSame = before.find(({ id }) => id === row.id)?.superseded === row.superseded
  if (event === undefined && isSame) return []
  const expected = event === undefined ? 'superseded' : `one payment with ${event.id}, which was found on the chain`
  return [{ check: 'payment', where: row.id, stored: 'counts', expected }]
}

function comparePayments(before: PaymentRow | undefined, row: PaymentRow): Difference[] {
  if (before === undefined || before === row) return []
  return [{ check: 'payment', where: row.id, stored: describePayment(before), expected: describePayment(row) }]
}

function describePayment({ status, refunded_amount, refunds }: PaymentRow): string {
  const entries = refunds.map(({ amount, txHash }) => `${amount} by ${txHash.slice(0, 10)}`)
  const returned = entries.length === 0 ? [] : [`${trimNumeric(refunded_amount)} returned (${entries.join(', ')})`]
  return [statusOfRank(status), ...returned].join(', ')
}

function compareStandings(row: LedgerRequestRow | undefined, standing: RequestStanding): readonly Difference[] {
  if (row === undefined) return []
  const { requestId, status, paidAmount, pendingAmount, heldAmount } = standing
  const sums = [paidAmount, pendingAmount, heldAmount].map(formatDecimal)
  const stored = describeStanding(settledStatuses[row.status - 1], [row.paid, row.pending, row.held].map(trimNumeric))
  const expected = describeStanding(status, sums)
  const isMarked = row.overpaid === true ? ', marked as overpaid' : ', not marked as overpaid'
  return [
    {
      check: 'request',
      where: requestId.toString('hex'),
      stored: stored === expected ? `${stored}${isMarked}` : stored,
      expected,
    },
  ]
}

function describeStanding(status: string | undefined, [paid, pending, held]: readonly string[]): string {
  return `${status ?? 'no status'}, ${paid} paid, ${pending} pending, ${held} held`
}

/** A stored value that does not follow from the rest of what is stored. */
export interface Difference {
  readonly check: 'statistics' | 'changes' | 'payment' | 'request'
  /** Which combination, change, payment or request. */
  readonly where: string
  readonly stored: string
  readonly expected: string
}

/** A row that is a difference. */
type FoundRow = Omit<Difference, 'check'>

/** Differences of one kind that are reported, at most: enough to see what is wrong where a whole table is. */
const MAX_DIFFERENCES = 1_000

/** Counts the payments of an account as `payment_statistics` has them. Binds the account. */
export const COUNT_PAYMENTS = `
  select network, coalesce(source_network, '') as source_network, currency, min(currency_symbol) as currency_symbol,
    coalesce(invoice_currency, '') as invoice_currency, coalesce(type, -1)::smallint as type, status, count(*) as n,
    min(timestamp) as first_at, max(timestamp) as last_at
  from payments where account_id = ? group by 1, 2, 3, 5, 6, 7`

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

/** Checks that the statistics of an account count its payments. Their times may be a superset. */
async function checkStatistics(trx: Knex, accountId: number): Promise<Difference[]> {
  const bindings = [accountId, accountId, MAX_DIFFERENCES]
  const { rows } = await trx.raw<{ rows: StatisticsRow[] }>(COMPARE_STATISTICS, bindings)
  return rows.map((row) => ({
    check: 'statistics',
    where: describeCombination(row),
    stored: row.stored ?? 'none',
    expected: row.counted ?? 'none',
  }))
}

function describeCombination(row: StatisticsRow): string {
  const type = row.type === -1 ? '' : typeOfCode(row.type)
  const { network, source_network, currency, invoice_currency } = row
  const parts = [network, source_network, currency, invoice_currency, type, statusOfRank(row.status)]
  return parts.map((part) => (part === '' ? '-' : part)).join(' ')
}

const isoTime = (column: string) => `to_char(${column}, 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`

/** The rest of a row in words, over the columns of a row of statistics. */
const DESCRIPTION = `concat_ws(' ', n, currency_symbol, ${isoTime('first_at')}, 'to', ${isoTime('last_at')})`

const COMPARE_STATISTICS = `
  with counted as (${COUNT_PAYMENTS})
  select network, source_network, currency, invoice_currency, type, status,
    (select ${DESCRIPTION} from (select s.*) described where n is not null) as stored,
    (select ${DESCRIPTION} from (select c.*) described where n is not null) as counted
  from (select * from payment_statistics where account_id = ?) s
  full join counted c using (network, source_network, currency, invoice_currency, type, status)
  where coalesce(s.n, 0) <> coalesce(c.n, 0) or s.first_at > c.first_at or s.last_at < c.last_at
    or s.currency_symbol <> c.currency_symbol
  order by 1, 2, 3, 4, 5, 6 limit ?`

/** Checks that `payment_metadata` has the entries of the payments, and no others. */
async function checkMetadata(trx: Knex, accountId: number): Promise<Difference[]> {
  const { rows } = await trx.raw<{ rows: FoundRow[] }>(COMPARE_ENTRIES, [accountId, accountId, MAX_DIFFERENCES])
  return rows.map((row) => ({ check: 'statistics', ...row }))
}

const ENTRY = `select id, pair, concat_ws(' ', ${ENTRY_FACTS}) as entry`

/** Binds the account twice, then a limit. */
const COMPARE_ENTRIES = `
  select id || ' ' || pair as "where", coalesce(s.entry, 'none') as stored, coalesce(p.entry, 'none') as expected
  from (${ENTRY} from payment_metadata where account_id = ?) s
  full join (${ENTRY} from (${READ_ENTRIES}) entries) p using (id, pair)
  where s.entry is distinct from p.entry order by 1 limit ?`
