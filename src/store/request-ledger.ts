import type { Knex } from 'knex'
import { compareDecimals, type Decimal, formatDecimal, readStoredDecimal } from '../domain/decimal.ts'
import { bytesToHex, hexToBytes } from '../domain/hex.ts'
import { rankOfStatus, statusOfRank } from '../domain/payment.ts'
import {
  isOverpaid,
  type RequestStatus,
  rankOfRequestStatus,
  requestStatusOf,
  unpaidStatuses,
} from '../domain/payment-request.ts'
import { copyNewPayments } from './copy-new-payments.ts'
import { changePayments, type LockedAccount, readPaymentsById } from './payment-changes.ts'
import type { PaymentRow } from './payment-row.ts'
import {
  type Ledger,
  type LedgerPayment,
  type LedgerRefund,
  returnedSurplus,
  type SettledState,
  settle,
} from './settle.ts'

/**
 * The ledger of requests: loads their payments and refunds, settles them by the rules of `store/settle.ts`, and stores what changed. Who
 * changes the payments or refunds of a request settles it in the same transaction.
 */

/** The columns of `requests` that settling reads. Amounts are numerics as text. */
export interface LedgerRequestRow {
  readonly request_id: Buffer
  readonly amount: string
  readonly invoice_currency: string
  readonly surplus_returned: string
  /** Rank of its status. */
  readonly status: number
  /** Null where it is not decided. */
  readonly overpaid: boolean | null
}

const LEDGER_COLUMNS = 'request_id, amount, invoice_currency, surplus_returned, status, overpaid'

/** A row of `refunds`, as the database returns it. */
export interface RefundRow {
  readonly account_id: number
  readonly tx_hash: Buffer
  readonly event_index: number
  readonly network: string
  readonly chain_id: string
  readonly request_id: Buffer
  readonly block_number: bigint
  readonly timestamp: Date
  readonly final: boolean
  readonly amount: string
  readonly currency: string
}

/** Requests that are settled together, and all that was paid and returned for them. */
export interface Settling {
  readonly requests: readonly LedgerRequestRow[]
  readonly payments: readonly PaymentRow[]
  readonly refunds: readonly RefundRow[]
  /** Payments as they are stored, by id. */
  readonly stored: ReadonlyMap<string, PaymentRow>
  /** Removed refunds. Payments may still have entries of them. */
  readonly droppedRefunds: readonly { readonly txHash: string; readonly eventIndex: number }[]
  readonly now: Date
}

/** What settling changes in the row of a request. */
export interface RequestStanding {
  readonly requestId: Buffer
  /** How much was returned of what was paid beyond the request's amount. */
  readonly surplusReturned: Decimal
  readonly status: RequestStatus
  /**
   * Whether more was paid than asked for. Null until something covers the request, so that where an older process settles it, which does not
   * write this, it stays undecided and is not wrong.
   */
  readonly overpaid: boolean | null
}

/** Rows in one statement. PostgreSQL takes 65,535 bindings. */
const ROWS_A_STATEMENT = 500

/** Standings in one statement. Of thousands at once, the planner would rather read all requests than look these up, in each statement anew. */
const STANDINGS_A_STATEMENT = 200

/** From so many new rows on, COPY is faster than a statement with their values. */
const ROWS_TO_COPY = 20

/** Requests whose payments are held in memory at once. */
const REQUESTS_A_PAGE = 500

/** Settles the stored ones of some requests. For writers that are not detection: an import, or the storing of requests. */
export async function settleStored(account: LockedAccount, requestIds: readonly Buffer[]): Promise<void> {
  const { trx, accountId, at } = account
  const named = requestIds.map((id) => id.toString('hex'))
  const requests = await loadRequests(trx, accountId, named)
  if (requests.length === 0) return
  const payments = await loadPayments(trx, accountId, requests)
  // New requests nearly always have no payment.
  if (payments.length === 0 && requests.every(isUntouched)) return
  const stored = new Map(payments.map((row) => [row.id, row]))
  const refunds = await loadRefunds(trx, accountId, named)
  const { settled, standings } = settleRequests({ requests, payments, refunds, stored, droppedRefunds: [], now: at })
  await savePayments(account, { rows: settled, stored })
  await saveStandings(account, standings)
}

/** Gives requests the imported payments that name their reference and no request id. */
export async function claimPayments(account: LockedAccount, requestIds: readonly Buffer[]): Promise<void> {
  const { trx, accountId } = account
  const asked = [accountId, accountId, [...requestIds]]
  const { rows } = await trx.raw<{ rows: ClaimedRow[] }>(FIND_CLAIMED, asked)
  if (rows.length === 0) return
  const before = await readPaymentsById(
    account,
    rows.map(({ id }) => id),
  )
  const columns = [
    rows.map(({ id }) => id),
    rows.map(({ request_id }) => request_id),
    rows.map(({ updated_at }) => updated_at),
  ]
  await changePayments(account, before, { sql: CLAIM, bindings: [...columns, accountId] })
}

interface ClaimedRow {
  readonly id: string
  readonly request_id: Buffer
  readonly updated_at: Date
}

/** The rules by which an event counts for a request, as far as the fields of an imported payment allow. */
const FIND_CLAIMED = `
  select distinct on (p.id) p.id, r.request_id, greatest(p.updated_at, r.created_at) as updated_at
  from payments p, requests r
  where p.account_id = ? and r.account_id = ? and r.request_id = any(?)
    and p.payment_reference = r.payment_reference and p.request_id is null
    and p.network = r.network and (p.payee is null or p.payee = r.payee)
  order by p.id, r.created_at, r.request_id`

const CLAIM = `
  update payments set request_id = claimed.request_id, updated_at = claimed.updated_at
  from unnest(?::uuid[], ?::bytea[], ?::timestamptz[]) as claimed (id, request_id, updated_at)
  where payments.account_id = ? and payments.id = claimed.id`

/** Whether a request stands as it was created: nothing paid, nothing returned. */
const isUntouched = ({ surplus_returned, status }: LedgerRequestRow) =>
  readStoredDecimal(surplus_returned).units === 0n && status === rankOfRequestStatus('OPEN')

/**
 * Loads requests by their ids, ordered by id. Ids that are not stored are left out. `offset 0` has each id looked up: of thousands of ids, the planner
 * would rather read all requests.
 *
 * @param requestIds - hexadecimal digits
 */
export async function loadRequests(
  trx: Knex,
  accountId: number,
  requestIds: readonly string[],
): Promise<LedgerRequestRow[]> {
  if (requestIds.length === 0) return []
  const { rows } = await trx.raw<{ rows: LedgerRequestRow[] }>(
    `select r.* from unnest(?::bytea[]) as asked (id) cross join lateral
       (select ${LEDGER_COLUMNS} from requests where account_id = ? and request_id = asked.id offset 0) r
     order by request_id`,
    [[...new Set(requestIds)].map(hexToBytes), accountId],
  )
  return rows
}

/** All requests of an account, in pages ordered by id. */
export async function* requestPages(trx: Knex, accountId: number): AsyncGenerator<LedgerRequestRow[]> {
  let after: Buffer = Buffer.alloc(0)
  for (;;) {
    const { rows } = await trx.raw<{ rows: LedgerRequestRow[] }>(
      `select ${LEDGER_COLUMNS} from requests where account_id = ? and request_id > ? order by request_id limit ?`,
      [accountId, after, REQUESTS_A_PAGE],
    )
    const last = rows.at(-1)
    if (last === undefined) return
    yield rows
    after = last.request_id
  }
}

/** Loads all payments of requests. Each request is looked up; see {@link loadRequests}. */
export async function loadPayments(
  trx: Knex,
  accountId: number,
  requests: readonly Pick<LedgerRequestRow, 'request_id'>[],
): Promise<PaymentRow[]> {
  const { rows } = await trx.raw<{ rows: PaymentRow[] }>(
    `select p.* from unnest(?::bytea[]) as asked (id) cross join lateral
       (select * from payments where account_id = ? and request_id = asked.id offset 0) p`,
    [requests.map(({ request_id }) => request_id), accountId],
  )
  return rows
}

/**
 * Loads all refunds of requests.
 *
 * @param requestIds - hexadecimal digits
 */
export async function loadRefunds(trx: Knex, accountId: number, requestIds: readonly string[]): Promise<RefundRow[]> {
  const { rows } = await trx.raw<{ rows: RefundRow[] }>(
    `select r.* from unnest(?::bytea[]) as asked (id) cross join lateral
       (select * from refunds where account_id = ? and request_id = asked.id offset 0) r`,
    [[...new Set(requestIds)].map(hexToBytes), accountId],
  )
  return rows
}

/** What settling makes of requests and their payments. */
export interface Settled {
  /** All payments; the given row itself where nothing changed. */
  readonly settled: readonly PaymentRow[]
  /** Of the requests that changed. */
  readonly standings: readonly RequestStanding[]
}

/** Settles requests. Reads and writes nothing. */
export function settleRequests({ requests, payments, refunds, stored, droppedRefunds, now }: Settling): Settled {
  const requestOf = new Map(requests.map((request) => [request.request_id.toString('hex'), request]))
  const groups = Map.groupBy(payments, (row) => row.request_id?.toString('hex') ?? '')
  const refundsOf = Map.groupBy(refunds, (row) => row.request_id.toString('hex'))
  const withoutRequest = [...groups].flatMap(([requestId, rows]) => (requestOf.has(requestId) ? [] : rows))
  const standings: RequestStanding[] = []
  const ofRequests = [...requestOf].flatMap(([requestId, request]) => {
    const rows = groups.get(requestId) ?? []
    const ledger: Ledger = {
      amount: readStoredDecimal(request.amount),
      payments: rows.map((row) => toLedgerPayment(row, request, !stored.has(row.id))),
      refunds: (refundsOf.get(requestId) ?? []).map(toLedgerRefund),
      droppedRefunds,
      now,
    }
    const states = settle(ledger)
    const standing = standingOf(request, ledger, states)
    if (standing !== undefined) standings.push(standing)
    return rows.map((row) => applyState(row, states.get(row.id), { stored, now }))
  })
  return { settled: [...withoutRequest, ...ofRequests], standings }
}

/** @returns undefined where the stored row already says it */
function standingOf(
  request: LedgerRequestRow,
  ledger: Ledger,
  states: ReadonlyMap<string, SettledState>,
): RequestStanding | undefined {
  const surplusReturned = returnedSurplus(ledger)
  const payments = ledger.payments.map((payment) => ({ ...payment, ...states.get(payment.id) }))
  const status = requestStatusOf(ledger.amount, payments)
  const isSameSurplus = compareDecimals(surplusReturned, readStoredDecimal(request.surplus_returned)) === 0
  const overpaid = unpaidStatuses.includes(status) ? null : isOverpaid(ledger.amount, payments, surplusReturned)
  const isSame = isSameSurplus && rankOfRequestStatus(status) === request.status && overpaid === request.overpaid
  return isSame ? undefined : { requestId: request.request_id, surplusReturned, status, overpaid }
}

function applyState(
  row: PaymentRow,
  state: SettledState | undefined,
  { stored, now }: Pick<Settling, 'stored' | 'now'>,
): PaymentRow {
  if (state !== undefined && (state.updatedAt !== row.updated_at || !stored.has(row.id))) {
    return {
      ...row,
      status: rankOfStatus(state.status),
      refunds: state.refunds,
      refunded_amount: formatDecimal(state.refundedAmount),
      status_history: state.statusHistory,
      updated_at: later(row.updated_at, state.updatedAt),
    }
  }
  return stored.get(row.id) === row ? row : { ...row, updated_at: later(row.updated_at, now) }
}

/** An import may have brought an `updatedAt` in the future. It is kept, or the same line would replace the row each time. */
function later(a: Date, b: Date): Date {
  return a > b ? a : b
}

function toLedgerPayment(row: PaymentRow, request: LedgerRequestRow, isNew: boolean): LedgerPayment {
  const inInvoiceCurrency = row.currency === request.invoice_currency ? row.amount : '0'
  return {
    id: row.id,
    isNew,
    imported: row.imported,
    final: row.final,
    timestamp: row.timestamp,
    blockNumber: row.block_number ?? undefined,
    txHash: row.tx_hash === null ? undefined : bytesToHex(row.tx_hash),
    eventIndex: row.event_index ?? undefined,
    amount: readStoredDecimal(row.amount),
    counted: readStoredDecimal(row.invoice_amount ?? inInvoiceCurrency),
    status: statusOfRank(row.status),
    refunds: row.refunds,
    refundedAmount: readStoredDecimal(row.refunded_amount),
    statusHistory: row.status_history,
    updatedAt: row.updated_at,
  }
}

function toLedgerRefund(row: RefundRow): LedgerRefund {
  return {
    txHash: bytesToHex(row.tx_hash),
    eventIndex: row.event_index,
    network: row.network,
    timestamp: row.timestamp,
    blockNumber: row.block_number,
    final: row.final,
    amount: readStoredDecimal(row.amount),
    currency: row.currency,
  }
}

/** Stores the rows that differ from the stored ones. */
export async function savePayments(
  account: LockedAccount,
  { rows, stored }: { readonly rows: readonly PaymentRow[]; readonly stored: ReadonlyMap<string, PaymentRow> },
): Promise<void> {
  const added = rows.filter((row) => !stored.has(row.id))
  const isCopied = added.length >= ROWS_TO_COPY
  if (isCopied) await copyNewPayments(account, added)
  const changed = rows.filter((row) => stored.get(row.id) !== row && !(isCopied && !stored.has(row.id)))
  for (let from = 0; from < changed.length; from += ROWS_A_STATEMENT) {
    const values = changed.slice(from, from + ROWS_A_STATEMENT).map(toInsert)
    const columns = Object.keys(values[0] ?? {}).filter((column) => column !== 'account_id' && column !== 'id')
    const upsert = account.trx('payments').insert(values).onConflict(['account_id', 'id']).merge(columns)
    const ids = changed.slice(from, from + ROWS_A_STATEMENT).map(({ id }) => id)
    await changePayments(account, await readPaymentsById(account, ids), upsert.toSQL())
  }
}

/** The row as a binding: JSON columns are text. */
function toInsert(row: PaymentRow): Record<string, unknown> {
  return {
    ...row,
    fees: JSON.stringify(row.fees),
    exchange_rates: JSON.stringify(row.exchange_rates),
    gas: row.gas === null ? null : JSON.stringify(row.gas),
    refunds: JSON.stringify(row.refunds),
    status_history: JSON.stringify(row.status_history),
  }
}

/** Stores the standings of requests. All writers give them in the order of their ids, so that they lock rows in one order. */
export async function saveStandings(
  { trx, accountId }: LockedAccount,
  standings: readonly RequestStanding[],
): Promise<void> {
  for (let from = 0; from < standings.length; from += STANDINGS_A_STATEMENT) {
    const some = standings.slice(from, from + STANDINGS_A_STATEMENT)
    await trx.raw(SAVE_STANDINGS, [
      some.map(({ requestId }) => requestId),
      some.map(({ surplusReturned }) => formatDecimal(surplusReturned)),
      some.map(({ status }) => rankOfRequestStatus(status)),
      some.map(({ overpaid }) => overpaid) as Knex.RawBinding,
      accountId,
    ])
  }
}

const SAVE_STANDINGS = `
  update requests set surplus_returned = standing.surplus_returned, status = standing.status, overpaid = standing.overpaid
  from unnest(?::bytea[], ?::numeric[], ?::smallint[], ?::boolean[]) as standing(request_id, surplus_returned, status, overpaid)
  where requests.account_id = ? and requests.request_id = standing.request_id`
