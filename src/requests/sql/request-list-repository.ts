import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { runCancellable } from '../../postgres/cancellable.ts'
import { type ExplainRow, planOf } from '../../postgres/planned-rows.ts'
import { bind, bindTime, EMPTY, raw, type Statement, sql, unionAll } from '../../postgres/statement.ts'
import type { RequestCell } from '../request-filter.ts'
import { type BalanceRow, type RequestWithBalance, requestWithBalanceOf } from './request-repository.ts'
import {
  accountOf,
  CELL,
  createdIn,
  type MatchingRequests,
  partsOf,
  payeeIn,
  referenceIn,
  shapesOf,
  statusIn,
} from './request-shapes.ts'

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
      return (await ask<BalanceRow>(pageStatement(account, query), signal)).map((row) =>
        requestWithBalanceOf(row, query.matching.now),
      )
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

/** Merges the keys of a page from its branches, and reads whole rows only for these keys. */
function pageStatement(account: Account, { matching, rows, position }: PageQuery): Statement {
  const newer = position?.direction === 'NEWER'
  const order = raw(newer ? 'created_at, request_id' : 'created_at desc, request_id desc')
  const limit = bind(rows, 'int')
  const found = shapesOf(account, matching).map(
    ({ branches, condition }) => sql`
      select k.created_at, k.request_id from ${branches}
      cross join lateral (
        select created_at, request_id from requests r
        where ${condition}${beyond(position)}
        order by ${order} limit ${limit}
      ) k`,
  )
  const keys = sql`select * from (${unionAll(found)}) f order by ${order} limit ${limit}`
  return sql`
    select r.* from (${keys}) k
    join requests r on r.account_id = ${accountOf(account)} and r.request_id = k.request_id
    order by ${raw(newer ? 'k.created_at, k.request_id' : 'k.created_at desc, k.request_id desc')}`
}

function beyond(position: PagePosition | undefined): Statement {
  if (position === undefined) return EMPTY
  const { createdAt, requestId, direction, inclusive } = position
  const operator = raw(`${direction === 'NEWER' ? '>' : '<'}${inclusive ? '=' : ''}`)
  return sql` and (created_at, request_id) ${operator} (${bindTime(createdAt.getTime())}, ${bind(hexToBytes(requestId), 'bytea')})`
}

function countStatement(account: Account, matching: MatchingRequests, cap: number): Statement {
  const limit = bind(cap, 'int')
  const found = shapesOf(account, matching).map(
    ({ branches, condition }) => sql`
      select 1 from ${branches} cross join lateral (select from requests r where ${condition} limit ${limit}) k`,
  )
  return sql`select count(*) from (select * from (${unionAll(found)}) f limit ${limit}) counted`
}

/** One condition a column, because the planner has statistics of single columns. */
function estimateStatement(account: Account, matching: MatchingRequests): Statement {
  const { filter, cells } = matching
  const { reference, requestId, payee } = filter
  const ids = requestId && sql` and request_id = any(${bind(requestId.map(hexToBytes), 'bytea[]')})`
  const distinct = (values: readonly string[]) => bind([...new Set(values)], 'text[]')
  const networks = cells && sql` and network = any(${distinct(cells.map(({ network }) => network))})`
  const paid = cells && sql` and payment_currency = any(${distinct(cells.map((cell) => cell.paymentCurrency))})`
  const invoiced = cells && sql` and invoice_currency = any(${distinct(cells.map((cell) => cell.invoiceCurrency))})`
  const others = sql`${ids ?? EMPTY}${referenceIn(reference)}${payeeIn(payee)}${networks ?? EMPTY}${paid ?? EMPTY}${invoiced ?? EMPTY}`
  const parts = partsOf(matching).map(
    ({ statuses, condition }) => sql`
      select from requests where account_id = ${accountOf(account)}${createdIn(filter)}${statusIn(statuses)}${condition}${others}`,
  )
  return sql`explain (format json) ${unionAll(parts)}`
}
