import type { Account } from '../../domain/account.ts'
import { type Address, addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import {
  isUnpaid,
  type RequestStatus,
  rankOfSettledStatus,
  requestStatuses,
  type SettledStatus,
  settledStatuses,
  unpaidStatuses,
} from '../../domain/payment-request.ts'
import { bind, bindTime, EMPTY, raw, type Statement, sql } from '../../postgres/statement.ts'
import type { RequestCell, RequestFilter } from '../request-filter.ts'

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
  return partsOf(matching).map((part) => shapeOf(account, matching, part))
}

/** The same requests where no order is asked for: a condition on `requests r` for each part of them. The planner sees all values. */
export function conditionsOf(account: Account, matching: MatchingRequests): readonly Statement[] {
  const { filter, cells } = matching
  const { reference, requestId, payee } = filter
  const ids =
    requestId === undefined ? EMPTY : sql` and request_id = any(${bind(requestId.map(hexToBytes), 'bytea[]')})`
  const others = sql`${ids}${referenceIn(reference)}${payeeIn(payee)}${cellIn(cells)}`
  return partsOf(matching).map(
    ({ statuses, condition }) =>
      sql`account_id = ${accountOf(account)}${statusIn(statuses)}${createdIn(filter)}${condition}${others}`,
  )
}

/** The requests of some stored statuses, with a condition on them that begins with `and`. */
interface Part {
  readonly statuses: readonly SettledStatus[]
  readonly condition: Statement
  /** Whether few requests meet the condition, for which there is an index: then all other filters are looked at request by request. */
  readonly isRare: boolean
}

/**
 * The parts of what the filter asks for, at least one; without a status where nothing can match. What is paid is stored. Whether a request that is still to be paid is
 * cancelled or expired follows from its terms and the moment.
 */
export function partsOf({ filter: { status = requestStatuses, overpaid }, now }: MatchingRequests): readonly Part[] {
  const at = bindTime(now.getTime())
  const unpaid = overpaid === true ? [] : status.filter(isUnpaid)
  const closing = overpaid === true ? [] : status.filter((each) => each === 'CANCELLED' || each === 'EXPIRED')
  const paid = status.filter((each) => (settledStatuses as readonly RequestStatus[]).includes(each) && !isUnpaid(each))
  const part = (statuses: readonly RequestStatus[], condition: Statement, isRare = false): Part[] =>
    statuses.length === 0 ? [] : [{ statuses: statuses as readonly SettledStatus[], condition, isRare }]
  if (overpaid === undefined && unpaid.length + closing.length === 4) {
    return part([...unpaid, ...paid], EMPTY)
  }
  const still = sql` and status <= ${MAX_UNPAID}`
  const parts = [
    ...part(unpaid, sql`${still} and cancelled_at is null and (expires_at is null or expires_at > ${at})`),
    ...part(closing.includes('CANCELLED') ? unpaidStatuses : [], sql`${still} and cancelled_at is not null`, true),
    ...part(
      closing.includes('EXPIRED') ? unpaidStatuses : [],
      sql`${still} and cancelled_at is null and expires_at <= ${at}`,
    ),
    ...part(paid, sql` and status > ${MAX_UNPAID}${overpaidIs(overpaid)}`, overpaid === true),
  ]
  return parts.length > 0 ? parts : [{ statuses: [], condition: EMPTY, isRare: false }]
}

/** The highest rank of a status in which something is still to be paid. */
export const MAX_UNPAID = raw(unpaidStatuses.length)

/** In the words of the index. */
function overpaidIs(overpaid: boolean | undefined): Statement {
  if (overpaid === undefined) return EMPTY
  return raw(overpaid ? ' and overpaid is not false' : ' and overpaid = false')
}

/** A condition that begins with `and`. */
export function statusIn(statuses: readonly SettledStatus[]): Statement {
  return sql` and status = any(${bind(statuses.map(rankOfSettledStatus), 'smallint[]')})`
}

function shapeOf(account: Account, { filter, cells }: MatchingRequests, part: Part): Shape {
  const { reference, requestId, payee } = filter
  const always = sql`account_id = ${accountOf(account)}${createdIn(filter)}${part.condition}`
  const statuses = bind(part.statuses.map(rankOfSettledStatus), 'smallint[]')
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
