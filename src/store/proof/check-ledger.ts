import type { Knex } from 'knex'
import { formatDecimal, trimNumeric } from '../../domain/decimal.ts'
import { statusOfRank } from '../../domain/payment.ts'
import { settledStatuses } from '../../domain/payment-request.ts'
import type { PaymentRow } from '../payment-row.ts'
import { loadMeeting, loadRefunds, loadSuperseding } from '../request-ledger.ts'
import { type LedgerRequestRow, type RequestStanding, settleRequests } from '../settle-requests.ts'
import { supersedeImports } from '../supersede-imports.ts'
import { type Difference, MAX_DIFFERENCES } from './difference.ts'

interface NameRow {
  readonly request_id: Buffer
  readonly payment_id: string
}

/** Checks that the topics of all requests are stored, and that no payment names a request by its reference without belonging to it. */
export async function checkNames(trx: Knex, accountId: number): Promise<Difference[]> {
  const unknown = await findUnknownTopics(trx, accountId)
  const claims = [accountId, accountId, MAX_DIFFERENCES]
  const { rows: unclaimed } = await trx.raw<{ rows: NameRow[] }>(FIND_UNCLAIMED, claims)
  return [
    ...unknown.map(
      (requestId): Difference => ({
        check: 'request',
        where: requestId.toString('hex'),
        stored: 'a topic is missing',
        expected: 'its topics are stored',
      }),
    ),
    ...unclaimed.map(
      ({ request_id, payment_id }): Difference => ({
        check: 'payment',
        where: payment_id,
        stored: 'no request',
        expected: `request ${request_id.toString('hex')}, whose reference it names`,
      }),
    ),
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
  select r.request_id, p.id as payment_id from requests r
  join payments p on p.payment_reference = r.payment_reference and p.network = r.network
  where r.account_id = ? and p.account_id = ? and p.request_id is null and (p.payee is null or p.payee = r.payee)
  order by p.id limit ?`

/** Checks that status and refunds of requests and their payments are what settling makes of them. */
export async function checkSettled(
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
