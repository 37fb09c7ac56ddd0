import type { Knex } from 'knex'
import { type DecimalString, formatDecimal, trimNumeric } from '../../domain/decimal.ts'
import { statusOfRank } from '../../domain/payment.ts'
import { requestStatuses } from '../../domain/payment-request.ts'
import type { PaymentRow } from '../payment-row.ts'
import {
  type LedgerRequestRow,
  loadPayments,
  loadRefunds,
  type RequestStanding,
  settleRequests,
} from '../request-ledger.ts'
import { type Difference, MAX_DIFFERENCES } from './difference.ts'

interface NameRow {
  readonly request_id: Buffer
  readonly payment_id: string | null
}

/** Checks that the topics of all requests are stored, and that no payment names a request by its reference without belonging to it. */
export async function checkNames(trx: Knex, accountId: number): Promise<Difference[]> {
  const topics = [accountId, accountId, accountId, MAX_DIFFERENCES]
  const { rows: unknown } = await trx.raw<{ rows: NameRow[] }>(FIND_UNKNOWN_TOPICS, topics)
  const claims = [accountId, accountId, MAX_DIFFERENCES]
  const { rows: unclaimed } = await trx.raw<{ rows: NameRow[] }>(FIND_UNCLAIMED, claims)
  return [
    ...unknown.map(
      ({ request_id }): Difference => ({
        check: 'request',
        where: request_id.toString('hex'),
        stored: 'a topic is missing',
        expected: 'its topics are stored',
      }),
    ),
    ...unclaimed.map(
      ({ request_id, payment_id }): Difference => ({
        check: 'payment',
        where: payment_id ?? '',
        stored: 'no request',
        expected: `request ${request_id.toString('hex')}, whose reference it names`,
      }),
    ),
  ]
}

/** Binds the account three times, then a limit. */
const FIND_UNKNOWN_TOPICS = `
  select request_id from requests r
  where account_id = ? and (
    not exists (select from reference_topics t where t.topic = r.topic and t.account_id = ?)
    or (refund_topic is not null
      and not exists (select from reference_topics t where t.topic = r.refund_topic and t.account_id = ?)))
  order by request_id limit ?`

/** Binds the account twice, then a limit. */
const FIND_UNCLAIMED = `
  select r.request_id, p.id as payment_id from requests r
  join payments p on p.payment_reference = r.payment_reference and p.network = r.network
  where r.account_id = ? and p.account_id = ? and p.request_id is null and (p.payee is null or p.payee = r.payee)
  order by p.id limit ?`

/** Checks that status and refunds of requests and their payments are what settling makes of them. */
export async function checkSettled(
  trx: Knex,
  accountId: number,
  requests: readonly LedgerRequestRow[],
): Promise<Difference[]> {
  const ids = requests.map(({ request_id }) => request_id.toString('hex'))
  const payments = await loadPayments(trx, accountId, requests)
  const refunds = await loadRefunds(trx, accountId, ids)
  const stored = new Map(payments.map((row) => [row.id, row]))
  const now = new Date(0)
  const { settled, standings } = settleRequests({ requests, payments, refunds, stored, droppedRefunds: [], now })
  const requestOf = new Map(requests.map((row) => [row.request_id.toString('hex'), row]))
  return [
    ...settled.flatMap((row) => comparePayments(stored.get(row.id), row)),
    ...standings.map((standing) => compareStandings(requestOf.get(standing.requestId.toString('hex')), standing)),
  ]
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

function compareStandings(row: LedgerRequestRow | undefined, standing: RequestStanding): Difference {
  const { requestId, status, surplusReturned } = standing
  const storedStatus = requestStatuses[(row?.status ?? 0) - 1] ?? 'no status'
  return {
    check: 'request',
    where: requestId.toString('hex'),
    stored: describeStanding(storedStatus, trimNumeric(row?.surplus_returned ?? '0')),
    expected: describeStanding(status, formatDecimal(surplusReturned)),
  }
}

function describeStanding(status: string, surplusReturned: DecimalString): string {
  return `${status}, ${surplusReturned} returned of the surplus`
}
