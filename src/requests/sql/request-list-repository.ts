import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { rankOfRequestStatus, requestStatuses } from '../../domain/payment-request.ts'
import { runCancellable } from '../../postgres/cancellable.ts'
import { type ExplainRow, planOf } from '../../postgres/planned-rows.ts'
import { bind, bindTime, EMPTY, raw, type Statement, sql } from '../../postgres/statement.ts'
import type { RequestCell, RequestFilter } from '../request-filter.ts'
import { type BalanceRow, type RequestWithBalance, requestWithBalanceOf, SUMS } from './request-repository.ts'

/** The requests of an account that a list or a count has. */
export interface MatchingRequests {
  readonly filter: RequestFilter
  /** The cells that can match. Undefined: networks and currencies do not restrict the requests, nor do payees unless they are found by id or reference. */
  readonly cells: readonly RequestCell[] | undefined
}

/** Where a page begins: next to the request of this key, in the direction of the page. */
export interface PagePosition {
  readonly createdAt: Date
  readonly requestId: string
  readonly direction: 'OLDER' | 'NEWER'
  /** Whether the request of the key belongs to the page. */
  readonly inclusive: boolean
}

/** A page to read. */
export interface PageQuery {
  readonly matching: MatchingRequests
  /** The most requests. */
  readonly rows: number
  /** Undefined: the page begins with the newest request. */
  readonly position?: PagePosition | undefined
}

/** Lists of the requests of one account. Every statement binds the account for each table that it reads. */
export interface RequestListRepository {
  /** The cells of the account's requests. Where payees are given, those of their requests, each with its payee. */
  cells(account: Account, payees: readonly Address[] | undefined, signal?: AbortSignal): Promise<RequestCell[]>
  /** Reads a page, in the direction of its position; newest first without one. */
  page(account: Account, query: PageQuery, signal?: AbortSignal): Promise<RequestWithBalance[]>
  /** Counts the matches, at most `cap`. */
  count(account: Account, matching: MatchingRequests, cap: number, signal?: AbortSignal): Promise<number>
  /** How many matches the database's planner expects. No request is read. */
  estimate(account: Account, matching: MatchingRequests, signal?: AbortSignal): Promise<number>
}

/** Creates the repository on a database. */
export function createRequestListRepository(knex: Knex): RequestListRepository {
  async function ask<Row>(statement: Statement, signal: AbortSignal | undefined): Promise<Row[]> {
    const query = knex.raw<{ rows: Row[] }>(statement.sql, statement.bindings as Knex.RawBinding[])
    return (await runCancellable(knex, query, signal)).rows
  }
  return {
    async cells(account, payees, signal) {
      const statement = payees === undefined ? cellsOfAccount(account) : cellsOfPayees(account, payees)
      return (await ask<CellRow>(statement, signal)).map(toCell)
    },
    async page(account, query, signal) {
      return (await ask<BalanceRow>(pageStatement(account, query), signal)).map(requestWithBalanceOf)
    },
    async count(account, matching, cap, signal) {
      const [row] = await ask<{ count: bigint }>(countStatement(account, matching, cap), signal)
      return Number(row?.count ?? 0n)
    },
    async estimate(account, matching, signal) {
      const [row] = await ask<ExplainRow>(estimateStatement(account, matching), signal)
      return planOf(row)?.['Plan Rows'] ?? 0
    },
  }
}

interface CellRow {
  readonly payee?: Buffer
  readonly network: string
  readonly payment_currency: string
  readonly invoice_currency: string
}

function toCell({ payee, network, payment_currency, invoice_currency }: CellRow): RequestCell {
  const cell = { network, paymentCurrency: payment_currency, invoiceCurrency: invoice_currency }
  return payee === undefined ? cell : { ...cell, payee: addressFromBytes(payee) }
}

const accountOf = ({ id }: Account): Statement => bind(id, 'int')

const CELL = raw('network, payment_currency, invoice_currency')

/** Skips through an index from one cell to the next, so that the cost grows with the cells and not with the requests. */
function cellsWhere(condition: Statement): Statement {
  return sql`
    with recursive cells as (
      (select ${CELL} from requests where ${condition} order by ${CELL} limit 1)
      union all
      select next.* from cells c cross join lateral (
        select ${CELL} from requests
        where ${condition}
          and (${CELL}) > (c.network, c.payment_currency, c.invoice_currency)
        order by ${CELL} limit 1) next
    ) select * from cells`
}

function cellsOfAccount(account: Account): Statement {
  return cellsWhere(sql`account_id = ${accountOf(account)}`)
}

function cellsOfPayees(account: Account, payees: readonly Address[]): Statement {
  const condition = sql`account_id = ${accountOf(account)} and payee = asked.payee`
  return sql`
    select asked.payee, found.* from unnest(${bind(payees.map(addressToBytes), 'bytea[]')}) as asked(payee)
    cross join lateral (${cellsWhere(condition)}) found`
}

/**
 * How matching requests are read: in branches, each of which fixes the columns before `created_at` in one index, so that its requests come
 * in the order of the answer.
 */
interface Shape {
  /** A table expression with one row for each branch. */
  readonly branches: Statement
  /** The condition on `requests` within a branch. */
  readonly condition: Statement
}

function shapeOf(account: Account, { filter, cells }: MatchingRequests): Shape {
  const { reference, requestId, payee, status = requestStatuses } = filter
  const always = sql`account_id = ${accountOf(account)}${createdIn(filter)}`
  const statuses = bind(status.map(rankOfRequestStatus), 'smallint[]')
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
  if (cells === undefined) return { branches: eachStatus, condition: sql`${always} and status = s.status` }
  const ofPayee = payee === undefined ? EMPTY : raw('payee = c.payee and ')
  return {
    branches: sql`${cellTable(cells)} cross join ${eachStatus}`,
    condition: sql`${always} and ${ofPayee}network = c.network and payment_currency = c.payment_currency
      and invoice_currency = c.invoice_currency and status = s.status`,
  }
}

function createdIn({ fromDate, toDate }: RequestFilter): Statement {
  const since = fromDate === undefined ? EMPTY : sql` and created_at >= ${bindTime(fromDate)}`
  return toDate === undefined ? since : sql`${since} and created_at <= ${bindTime(toDate)}`
}

function referenceIn(references: readonly string[] | undefined): Statement {
  return references === undefined ? EMPTY : sql` and reference = any(${bind(references, 'text[]')})`
}

function payeeIn(payees: readonly Address[] | undefined): Statement {
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

/** Merges the keys of a page from its branches, and reads whole rows only for these keys. */
function pageStatement(account: Account, { matching, rows, position }: PageQuery): Statement {
  const { branches, condition } = shapeOf(account, matching)
  const newer = position?.direction === 'NEWER'
  const order = raw(newer ? 'created_at, request_id' : 'created_at desc, request_id desc')
  const limit = bind(rows, 'int')
  const keys = sql`
    select k.created_at, k.request_id from ${branches}
    cross join lateral (
      select created_at, request_id from requests
      where ${condition}${beyond(position)}
      order by ${order} limit ${limit}
    ) k
    order by ${order} limit ${limit}`
  return sql`
    select r.*, sums.* from (${keys}) k
    join requests r on r.account_id = ${accountOf(account)} and r.request_id = k.request_id
    cross join lateral (${{ sql: SUMS, bindings: [account.id] }}) sums
    order by ${raw(newer ? 'k.created_at, k.request_id' : 'k.created_at desc, k.request_id desc')}`
}

function beyond(position: PagePosition | undefined): Statement {
  if (position === undefined) return EMPTY
  const { createdAt, requestId, direction, inclusive } = position
  const operator = raw(`${direction === 'NEWER' ? '>' : '<'}${inclusive ? '=' : ''}`)
  return sql` and (created_at, request_id) ${operator} (${bindTime(createdAt.getTime())}, ${bind(hexToBytes(requestId), 'bytea')})`
}

function countStatement(account: Account, matching: MatchingRequests, cap: number): Statement {
  const { branches, condition } = shapeOf(account, matching)
  const limit = bind(cap, 'int')
  return sql`
    select count(*) from (
      select from ${branches}
      cross join lateral (select from requests where ${condition} limit ${limit}) k
      limit ${limit}
    ) counted`
}

/** One condition a column, because the planner has statistics of single columns. */
function estimateStatement(account: Account, { filter, cells }: MatchingRequests): Statement {
  const { status = requestStatuses, reference, requestId, payee } = filter
  const ids = requestId && sql` and request_id = any(${bind(requestId.map(hexToBytes), 'bytea[]')})`
  const distinct = (values: readonly string[]) => bind([...new Set(values)], 'text[]')
  const networks = cells && sql` and network = any(${distinct(cells.map(({ network }) => network))})`
  const paid = cells && sql` and payment_currency = any(${distinct(cells.map((cell) => cell.paymentCurrency))})`
  const invoiced = cells && sql` and invoice_currency = any(${distinct(cells.map((cell) => cell.invoiceCurrency))})`
  return sql`
    explain (format json) select from requests
    where account_id = ${accountOf(account)}${createdIn(filter)}
      and status = any(${bind(status.map(rankOfRequestStatus), 'smallint[]')})
      ${ids ?? EMPTY}${referenceIn(reference)}${payeeIn(payee)}${networks ?? EMPTY}${paid ?? EMPTY}${invoiced ?? EMPTY}`
}
