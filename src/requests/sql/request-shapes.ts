import type { Account } from '../../domain/account.ts'
import { type Address, addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import {
  type RequestStatus,
  rankOfRequestStatus,
  requestStatuses,
  unpaidStatuses,
} from '../../domain/payment-request.ts'
import { bind, bindTime, EMPTY, raw, type Statement, sql } from '../../postgres/statement.ts'
import type { RequestCell, RequestFilter } from '../request-filter.ts'
import { IS_OVERPAID, MAYBE_OVERPAID } from './overpaid-repository.ts'

/** The requests of an account that a list, a count or a summary has. */
export interface MatchingRequests {
  readonly filter: RequestFilter
  /** The cells that can match. Undefined: networks and currencies do not restrict the requests, nor do payees unless they are found by id or reference. */
  readonly cells: readonly RequestCell[] | undefined
  /** The moment that expiry is judged by. */
  readonly now: Date
}

/**
 * How matching requests are read: in branches, each of which fixes the columns before `created_at` in one index, so that its requests come
 * in the order of the answer.
 */
export interface Shape {
  /** A table expression with one row for each branch. */
  readonly branches: Statement
  /** The condition on `requests r` within a branch. */
  readonly condition: Statement
}

/** The columns of a cell. */
export const CELL = raw('network, payment_currency, invoice_currency')

/** Binds the account. */
export const accountOf = ({ id }: Account): Statement => bind(id, 'int')

/** The shapes of what matches. A request matches in one of them at most. */
export function shapesOf(account: Account, matching: MatchingRequests): readonly Shape[] {
  return partsOf(account, matching).map((part) => shapeOf(account, matching, part))
}

/** The same requests where no order is asked for: a condition on `requests r` for each half of them. The planner sees all values. */
export function conditionsOf(account: Account, matching: MatchingRequests): readonly Statement[] {
  const { filter, cells } = matching
  const { reference, requestId, payee } = filter
  const ids =
    requestId === undefined ? EMPTY : sql` and request_id = any(${bind(requestId.map(hexToBytes), 'bytea[]')})`
  const others = sql`${ids}${referenceIn(reference)}${payeeIn(payee)}${cellIn(cells)}`
  return partsOf(account, matching).map(({ statuses, condition }) => {
    const ranks = bind(statuses.map(rankOfRequestStatus), 'smallint[]')
    return sql`account_id = ${accountOf(account)} and status = any(${ranks})${createdIn(filter)}${condition}${others}`
  })
}

/** The requests of some statuses, with a condition on them that begins with `and`. */
interface Part {
  readonly statuses: readonly RequestStatus[]
  readonly condition: Statement
  /** Whether few requests meet the condition, for which there is an index: then all other filters are looked at request by request. */
  readonly isRare: boolean
}

/** A request that is unpaid is never over-paid, and no other is expired: so each half has one of the two conditions, for which it has an index. */
function partsOf(account: Account, { filter, now }: MatchingRequests): readonly Part[] {
  const { status = requestStatuses, overpaid, expired } = filter
  const cancelled = cancelledIs(filter)
  if (overpaid === undefined && expired === undefined)
    return [{ statuses: status, condition: cancelled, isRare: filter.cancelled === true }]
  const isUnpaid = (each: RequestStatus) => unpaidStatuses.includes(each)
  const unpaid = {
    statuses: overpaid === true ? [] : status.filter(isUnpaid),
    condition: sql` and status <= ${MAX_UNPAID}${expired === undefined ? EMPTY : expiredIs(expired, now)}${cancelled}`,
    isRare: filter.cancelled === true,
  }
  const others = {
    statuses: expired === true ? [] : status.filter((each) => !isUnpaid(each)),
    condition: sql` and status > ${MAX_UNPAID}${overpaid === undefined ? EMPTY : overpaidIs(overpaid, account)}${cancelled}`,
    isRare: filter.cancelled === true || overpaid === true,
  }
  const parts = [unpaid, others].filter(({ statuses }) => statuses.length > 0)
  return parts.length === 0 ? [unpaid] : parts
}

/** The highest rank of a status in which something is still to be paid. */
const MAX_UNPAID = raw(unpaidStatuses.length)

function cancelledIs({ cancelled }: RequestFilter): Statement {
  if (cancelled === undefined) return EMPTY
  return raw(` and cancelled_at is ${cancelled ? 'not null' : 'null'}`)
}

function expiredIs(expired: boolean, now: Date): Statement {
  const at = bindTime(now.getTime())
  return expired ? sql` and expires_at <= ${at}` : sql` and (expires_at is null or expires_at > ${at})`
}

function overpaidIs(overpaid: boolean, { id }: Account): Statement {
  const counted = { sql: IS_OVERPAID, bindings: [id] }
  if (overpaid) return sql` and ${raw(MAYBE_OVERPAID)} and (overpaid is true or overpaid is null and ${counted})`
  return sql` and (overpaid = false or overpaid is null and not ${counted})`
}

/** The same conditions for the planner to estimate: without payments, and of all statuses at once. */
export function flagsFor({ filter, now }: MatchingRequests): Statement {
  const { overpaid, expired } = filter
  const at = bindTime(now.getTime())
  const over = overpaid === undefined ? EMPTY : raw(` and overpaid is ${overpaid ? 'true' : 'not true'}`)
  const late =
    expired === undefined
      ? EMPTY
      : sql` and (status <= ${MAX_UNPAID} and expires_at <= ${at}) is ${raw(expired ? 'true' : 'not true')}`
  return sql`${over}${late}${cancelledIs(filter)}`
}

function shapeOf(account: Account, { filter, cells }: MatchingRequests, part: Part): Shape {
  const { reference, requestId, payee } = filter
  const always = sql`account_id = ${accountOf(account)}${createdIn(filter)}${part.condition}`
  const statuses = bind(part.statuses.map(rankOfRequestStatus), 'smallint[]')
  const eachStatus = sql`unnest(${statuses}) as s(status)`
  if (requestId !== undefined) {
    const ids = bind(requestId.map(hexToBytes), 'bytea[]')
    const condition = sql`${always} and request_id = i.request_id and status = any(${statuses})`
    return {
      branches: sql`unnest(${ids}) as i(request_id)`,
      condition: sql`${condition}${referenceIn(reference)}${payeeIn(payee)}${cellIn(cells)}`,
    }
  }
  if (reference !== undefined) {
    return {
      branches: sql`unnest(${bind(reference, 'text[]')}) as m(reference) cross join ${eachStatus}`,
      condition: sql`${always} and reference = m.reference and status = s.status${payeeIn(payee)}${cellIn(cells)}`,
    }
  }
  if (cells === undefined || part.isRare) {
    const condition = sql`${always} and status = s.status${payeeIn(payee)}${cellIn(cells)}`
    return { branches: eachStatus, condition }
  }
  const ofPayee = payee === undefined ? EMPTY : raw('payee = c.payee and ')
  return {
    branches: sql`${cellTable(cells)} cross join ${eachStatus}`,
    condition: sql`${always} and ${ofPayee}network = c.network and payment_currency = c.payment_currency
      and invoice_currency = c.invoice_currency and status = s.status`,
  }
}

/** A condition that begins with `and`; empty without the filter. */
export function createdIn({ fromDate, toDate }: RequestFilter): Statement {
  const since = fromDate === undefined ? EMPTY : sql` and created_at >= ${bindTime(fromDate)}`
  return toDate === undefined ? since : sql`${since} and created_at <= ${bindTime(toDate)}`
}

/** A condition that begins with `and`; empty without the filter. */
export function referenceIn(references: readonly string[] | undefined): Statement {
  return references === undefined ? EMPTY : sql` and reference = any(${bind(references, 'text[]')})`
}

/** A condition that begins with `and`; empty without the filter. */
export function payeeIn(payees: readonly Address[] | undefined): Statement {
  return payees === undefined ? EMPTY : sql` and payee = any(${bind(payees.map(addressToBytes), 'bytea[]')})`
}

function cellIn(cells: readonly RequestCell[] | undefined): Statement {
  if (cells === undefined) return EMPTY
  return sql` and (${CELL}) in (select c.network, c.payment_currency, c.invoice_currency from ${cellTable(cells)})`
}

function cellTable(cells: readonly RequestCell[]): Statement {
  const payees = cells.map(({ payee }) => (payee === undefined ? null : addressToBytes(payee)))
  const texts = (name: 'network' | 'paymentCurrency' | 'invoiceCurrency') =>
    bind(
      cells.map((cell) => cell[name]),
      'text[]',
    )
  return sql`unnest(${bind(payees, 'bytea[]')}, ${texts('network')}, ${texts('paymentCurrency')}, ${texts('invoiceCurrency')})
    as c(payee, network, payment_currency, invoice_currency)`
}
