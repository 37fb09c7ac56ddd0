import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import { type RequestStatus, rankOfRequestStatus, requestStatuses } from '../../domain/payment-request.ts'
import { runCancellable } from '../../postgres/cancellable.ts'
import { type BalanceRow, type RequestWithBalance, requestWithBalanceOf, SUMS } from './request-repository.ts'

/** Requests of one network and the same currencies, of one payee where that is asked for. */
export interface RequestCell {
  readonly payee?: Address
  readonly network: string
  readonly paymentCurrency: string
  readonly invoiceCurrency: string
}

/** Which requests of an account are meant. What is absent does not restrict them. */
export interface RequestSelection {
  readonly statuses?: readonly RequestStatus[]
  readonly references?: readonly string[]
  readonly requestIds?: readonly string[]
  readonly payees?: readonly Address[]
  /** Those that can match; with `payees`, of these payees. */
  readonly cells?: readonly RequestCell[]
  /** When they were created, inclusive. */
  readonly from?: Date
  readonly to?: Date
}

/** Where a page begins: beside the request of this key, in the direction of the page. */
export interface PagePosition {
  readonly createdAt: Date
  readonly requestId: string
  readonly direction: 'OLDER' | 'NEWER'
  /** Whether the request of the key belongs to the page. */
  readonly inclusive: boolean
}

/** What is asked of a page. */
export interface PageQuery {
  readonly selection: RequestSelection
  /** The most requests. */
  readonly rows: number
  /** Absent: the newest. */
  readonly position?: PagePosition | undefined
}

/** Lists of the requests of one account. Every statement names the account in each table that it reads. */
export interface RequestListRepository {
  /** The networks and currencies that the account's requests have; of the payees alone where some are given, each with its payee. */
  cells(account: Account, payees: readonly Address[] | undefined, signal?: AbortSignal): Promise<RequestCell[]>
  /** In the direction of the position, newest first without one. */
  page(account: Account, query: PageQuery, signal?: AbortSignal): Promise<RequestWithBalance[]>
  /** Counts the matches, at most `cap`. */
  count(account: Account, selection: RequestSelection, cap: number, signal?: AbortSignal): Promise<number>
  /** What the planner of the database expects; nothing is read. */
  estimate(account: Account, selection: RequestSelection, signal?: AbortSignal): Promise<number>
}

/** Makes the repository on a database. */
export function createRequestListRepository(knex: Knex): RequestListRepository {
  async function ask<Row>(statement: Sql, signal: AbortSignal | undefined): Promise<Row[]> {
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
    async count(account, selection, cap, signal) {
      const [row] = await ask<{ count: bigint }>(countStatement(account, selection, cap), signal)
      return Number(row?.count ?? 0n)
    },
    async estimate(account, selection, signal) {
      const [row] = await ask<ExplainRow>(estimateStatement(account, selection), signal)
      return row?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0
    },
  }
}

interface ExplainRow {
  readonly 'QUERY PLAN': readonly [{ readonly Plan: { readonly 'Plan Rows': number } }]
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

/** SQL with a `?` for each binding. */
interface Sql {
  readonly sql: string
  readonly bindings: readonly unknown[]
}

/** Pieces of SQL one after the other. */
function sql(parts: TemplateStringsArray, ...values: readonly Sql[]): Sql {
  const text = parts.map((part, i) => part + (values[i]?.sql ?? '')).join('')
  return { sql: text, bindings: values.flatMap(({ bindings }) => bindings) }
}

const raw = (text: string): Sql => ({ sql: text, bindings: [] })
const bound = (value: unknown, type: string): Sql => ({ sql: `?::${type}`, bindings: [value] })
const accountOf = ({ id }: Account): Sql => bound(id, 'int')

const CELL = raw('network, payment_currency, invoice_currency')

/** Skips through the index from one combination to the next: what is read grows with the combinations and not with the requests. */
function cellsWhere(condition: Sql): Sql {
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

function cellsOfAccount(account: Account): Sql {
  return cellsWhere(sql`account_id = ${accountOf(account)}`)
}

function cellsOfPayees(account: Account, payees: readonly Address[]): Sql {
  const condition = sql`account_id = ${accountOf(account)} and payee = asked.payee`
  return sql`
    select asked.payee, found.* from unnest(${bound(payees.map(addressToBytes), 'bytea[]')}) as asked(payee)
    cross join lateral (${cellsWhere(condition)}) found`
}

/**
 * The branches of a selection, and what each reads of `requests`: every branch fixes the columns before the time in one index, so that its
 * requests come in the order of the answer.
 */
interface Shape {
  /** Something to select from, a row a branch. */
  readonly branches: Sql
  /** The condition on `requests` within a branch. */
  readonly condition: Sql
}

function shapeOf(account: Account, selection: RequestSelection): Shape {
  const { references, requestIds, cells } = selection
  const always = sql`account_id = ${accountOf(account)}${betweenOf(selection)}`
  const statuses = bound((selection.statuses ?? requestStatuses).map(rankOfRequestStatus), 'smallint[]')
  const eachStatus = sql`unnest(${statuses}) as s(status)`
  if (requestIds !== undefined) {
    const ids = bound(requestIds.map(hexToBytes), 'bytea[]')
    const condition = sql`${always} and request_id = i.request_id and status = any(${statuses})`
    return {
      branches: sql`unnest(${ids}) as i(request_id)`,
      condition: sql`${condition}${referenceIn(references)}${payeeIn(selection)}${cellIn(cells)}`,
    }
  }
  if (references !== undefined) {
    return {
      branches: sql`unnest(${bound(references, 'text[]')}) as m(reference) cross join ${eachStatus}`,
      condition: sql`${always} and reference = m.reference and status = s.status${payeeIn(selection)}${cellIn(cells)}`,
    }
  }
  if (cells === undefined) return { branches: eachStatus, condition: sql`${always} and status = s.status` }
  const ofPayee = selection.payees === undefined ? raw('') : raw('payee = c.payee and ')
  return {
    branches: sql`${cellTable(cells)} cross join ${eachStatus}`,
    condition: sql`${always} and ${ofPayee}network = c.network and payment_currency = c.payment_currency
      and invoice_currency = c.invoice_currency and status = s.status`,
  }
}

function betweenOf({ from, to }: RequestSelection): Sql {
  const since = from === undefined ? raw('') : sql` and created_at >= ${bound(from, 'timestamptz')}`
  return to === undefined ? since : sql`${since} and created_at <= ${bound(to, 'timestamptz')}`
}

function referenceIn(references: readonly string[] | undefined): Sql {
  return references === undefined ? raw('') : sql` and reference = any(${bound(references, 'text[]')})`
}

function payeeIn({ payees }: RequestSelection): Sql {
  return payees === undefined ? raw('') : sql` and payee = any(${bound(payees.map(addressToBytes), 'bytea[]')})`
}

function cellIn(cells: readonly RequestCell[] | undefined): Sql {
  if (cells === undefined) return raw('')
  return sql` and (${CELL}) in (select c.network, c.payment_currency, c.invoice_currency from ${cellTable(cells)})`
}

function cellTable(cells: readonly RequestCell[]): Sql {
  const columns = [
    bound(
      cells.map(({ payee }) => (payee === undefined ? null : addressToBytes(payee))),
      'bytea[]',
    ),
    bound(
      cells.map(({ network }) => network),
      'text[]',
    ),
    bound(
      cells.map(({ paymentCurrency }) => paymentCurrency),
      'text[]',
    ),
    bound(
      cells.map(({ invoiceCurrency }) => invoiceCurrency),
      'text[]',
    ),
  ] as const
  return sql`unnest(${columns[0]}, ${columns[1]}, ${columns[2]}, ${columns[3]})
    as c(payee, network, payment_currency, invoice_currency)`
}

/** A page, merged from its branches; whole rows are read of its own requests alone. */
function pageStatement(account: Account, { selection, rows, position }: PageQuery): Sql {
  const { branches, condition } = shapeOf(account, selection)
  const newer = position?.direction === 'NEWER'
  const order = raw(newer ? 'created_at, request_id' : 'created_at desc, request_id desc')
  const limit = bound(rows, 'int')
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

function beyond(position: PagePosition | undefined): Sql {
  if (position === undefined) return raw('')
  const { createdAt, requestId, direction, inclusive } = position
  const operator = raw(`${direction === 'NEWER' ? '>' : '<'}${inclusive ? '=' : ''}`)
  return sql` and (created_at, request_id) ${operator} (${bound(createdAt, 'timestamptz')}, ${bound(hexToBytes(requestId), 'bytea')})`
}

function countStatement(account: Account, selection: RequestSelection, cap: number): Sql {
  const { branches, condition } = shapeOf(account, selection)
  const limit = bound(cap, 'int')
  return sql`
    select count(*) from (
      select from ${branches}
      cross join lateral (select from requests where ${condition} limit ${limit}) k
      limit ${limit}
    ) counted`
}

/** The conditions one by one, as the planner has statistics of them. */
function estimateStatement(account: Account, selection: RequestSelection): Sql {
  const { statuses = requestStatuses, references, requestIds, cells } = selection
  const ids = requestIds && sql` and request_id = any(${bound(requestIds.map(hexToBytes), 'bytea[]')})`
  const distinct = (values: readonly string[]) => bound([...new Set(values)], 'text[]')
  const networks = cells && sql` and network = any(${distinct(cells.map(({ network }) => network))})`
  const paid = cells && sql` and payment_currency = any(${distinct(cells.map((cell) => cell.paymentCurrency))})`
  const invoiced = cells && sql` and invoice_currency = any(${distinct(cells.map((cell) => cell.invoiceCurrency))})`
  const none = raw('')
  return sql`
    explain (format json) select from requests
    where account_id = ${accountOf(account)}${betweenOf(selection)}
      and status = any(${bound(statuses.map(rankOfRequestStatus), 'smallint[]')})
      ${ids ?? none}${referenceIn(references)}${payeeIn(selection)}${networks ?? none}${paid ?? none}${invoiced ?? none}`
}
