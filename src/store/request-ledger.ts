import type { Knex } from 'knex'
import { formatDecimal, readStoredDecimal } from '../domain/decimal.ts'
import { bytesToHex, hexToBytes } from '../domain/hex.ts'
import { rankOfStatus, statusOfRank } from '../domain/payment.ts'
import { type RequestStatus, rankOfRequestStatus, requestStatusOf } from '../domain/payment-request.ts'
import { changePayments, type LockedAccount } from './payment-changes.ts'
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
 * The books of requests: their payments and refunds as the database has them, settled by the rules of `store/settle.ts`. Whoever
 * changes what a request was paid settles it in the same transaction.
 */

/** Of a row of `requests`, what settling reads. */
export interface LedgerRequestRow {
  readonly request_id: Buffer
  readonly amount: string
  readonly invoice_currency: string
  readonly surplus_returned: string
  /** Rank of its status. */
  readonly status: number
}

/** A row of `refunds`, as the database gives it. */
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

/** What is settled together. */
export interface Settling {
  readonly requests: readonly LedgerRequestRow[]
  readonly payments: readonly PaymentRow[]
  readonly refunds: readonly RefundRow[]
  /** Payments as the database has them, by id. */
  readonly stored: ReadonlyMap<string, PaymentRow>
  /** Refunds that are gone, of which payments may hold entries. */
  readonly droppedRefunds: readonly { readonly txHash: string; readonly eventIndex: number }[]
  readonly now: Date
}

/** What settling writes of a request itself, where it has changed. */
export interface RequestStanding {
  readonly requestId: Buffer
  /** What was returned of what was paid beyond its amount. */
  readonly surplusReturned: string
  readonly status: RequestStatus
}

/** Rows in one statement; a statement has at most 65,535 parameters. */
const ROWS_A_STATEMENT = 500

/** Settles those of the requests that are stored, when something else than detection has brought or named their payments. */
export async function settleStored(account: LockedAccount, requestIds: readonly Buffer[]): Promise<void> {
  const { trx, accountId, at } = account
  const named = requestIds.map((id) => id.toString('hex'))
  const requests = await loadRequests(trx, accountId, named)
  if (requests.length === 0) return
  const { rows } = await trx.raw<{ rows: PaymentRow[] }>(
    'select * from payments where account_id = ? and request_id = any(?)',
    [accountId, requests.map(({ request_id }) => request_id)],
  )
  // nearly always, when requests are stored
  if (rows.length === 0 && requests.every(isUntouched)) return
  const stored = new Map(rows.map((row) => [row.id, row]))
  const refunds = await loadRefunds(trx, accountId, named)
  const { settled, standings } = settleRequests({
    requests,
    payments: rows,
    refunds,
    stored,
    droppedRefunds: [],
    now: at,
  })
  await savePayments(account, { rows: settled, stored })
  await saveStandings(account, standings)
}

/** Gives requests the imported payments that name their references alone. */
export async function claimPayments(account: LockedAccount, requestIds: readonly Buffer[]): Promise<void> {
  const { accountId } = account
  await changePayments(account, { sql: CLAIM_IMPORTED, bindings: [accountId, accountId, [...requestIds]] })
}

/** The rules by which an event counts for a request, as far as an imported payment tells. */
const CLAIM_IMPORTED = `
  update payments set request_id = r.request_id, updated_at = greatest(payments.updated_at, r.created_at)
  from requests r
  where payments.account_id = ? and r.account_id = ? and r.request_id = any(?)
    and payments.payment_reference = r.payment_reference and payments.request_id is null
    and payments.network = r.network and (payments.payee is null or payments.payee = r.payee)`

/** As it was stored: nothing was paid or returned. */
const isUntouched = ({ surplus_returned, status }: LedgerRequestRow) =>
  canonicalAmount(surplus_returned) === '0' && status === rankOfRequestStatus('OPEN')

/** Loads requests by their ids in hex, in that order; those that are not stored are left out. */
export async function loadRequests(
  trx: Knex,
  accountId: number,
  requestIds: readonly string[],
): Promise<LedgerRequestRow[]> {
  if (requestIds.length === 0) return []
  const { rows } = await trx.raw<{ rows: LedgerRequestRow[] }>(
    `select request_id, amount, invoice_currency, surplus_returned, status from requests
     where account_id = ? and request_id = any(?) order by request_id`,
    [accountId, requestIds.map(hexToBytes)],
  )
  return rows
}

/** Loads all refunds of requests. */
export async function loadRefunds(trx: Knex, accountId: number, requestIds: readonly string[]): Promise<RefundRow[]> {
  const { rows } = await trx.raw<{ rows: RefundRow[] }>(
    'select * from refunds where account_id = ? and request_id = any(?)',
    [accountId, requestIds.map(hexToBytes)],
  )
  return rows
}

/** @returns all payments, the given row itself where nothing changed */
export function settleRequests({ requests, payments, refunds, stored, droppedRefunds, now }: Settling) {
  const requestOf = new Map(requests.map((request) => [request.request_id.toString('hex'), request]))
  const groups = Map.groupBy(payments, (row) => row.request_id?.toString('hex') ?? '')
  const refundsOf = Map.groupBy(refunds, (row) => row.request_id.toString('hex'))
  const ofNoRequest = [...groups].flatMap(([requestId, rows]) => (requestOf.has(requestId) ? [] : rows))
  const standings: RequestStanding[] = []
  const ofRequests = [...requestOf].flatMap(([requestId, request]) => {
    const rows = groups.get(requestId) ?? []
    const ledger: Ledger = {
      amount: canonicalAmount(request.amount),
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
  return { settled: [...ofNoRequest, ...ofRequests], standings }
}

/** @returns undefined where it is as it is stored */
function standingOf(
  request: LedgerRequestRow,
  ledger: Ledger,
  states: ReadonlyMap<string, SettledState>,
): RequestStanding | undefined {
  const surplusReturned = returnedSurplus(ledger)
  const payments = ledger.payments.map((payment) => ({ ...payment, ...states.get(payment.id) }))
  const status = requestStatusOf(ledger.amount, payments)
  const isStored =
    surplusReturned === canonicalAmount(request.surplus_returned) && rankOfRequestStatus(status) === request.status
  return isStored ? undefined : { requestId: request.request_id, surplusReturned, status }
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
      refunded_amount: state.refundedAmount,
      status_history: state.statusHistory,
      updated_at: later(row.updated_at, state.updatedAt),
    }
  }
  return stored.get(row.id) === row ? row : { ...row, updated_at: later(row.updated_at, now) }
}

/** An import may have said a time that is still to come; were it turned back, the same line would replace the row each time. */
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
    ...(row.block_number === null ? {} : { blockNumber: row.block_number }),
    ...(row.tx_hash === null ? {} : { txHash: bytesToHex(row.tx_hash) }),
    ...(row.event_index === null ? {} : { eventIndex: row.event_index }),
    amount: canonicalAmount(row.amount),
    counted: canonicalAmount(row.invoice_amount ?? inInvoiceCurrency),
    status: statusOfRank(row.status),
    refunds: row.refunds,
    refundedAmount: row.refunded_amount,
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
    amount: canonicalAmount(row.amount),
    currency: row.currency,
  }
}

/** Stores the rows that are not as they are stored. */
export async function savePayments(
  account: LockedAccount,
  { rows, stored }: { readonly rows: readonly PaymentRow[]; readonly stored: ReadonlyMap<string, PaymentRow> },
): Promise<void> {
  const changed = rows.filter((row) => stored.get(row.id) !== row)
  for (let from = 0; from < changed.length; from += ROWS_A_STATEMENT) {
    const values = changed.slice(from, from + ROWS_A_STATEMENT).map(toInsert)
    const columns = Object.keys(values[0] ?? {}).filter((column) => column !== 'account_id' && column !== 'id')
    const upsert = account.trx('payments').insert(values).onConflict(['account_id', 'id']).merge(columns)
    await changePayments(account, upsert.toSQL())
  }
}

/** The row as it is sent: JSON columns as text. */
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

/** Stores how requests stand. The requests are locked in the order of their ids, as everywhere. */
export async function saveStandings({ trx, accountId }: LockedAccount, standings: readonly RequestStanding[]) {
  if (standings.length === 0) return
  await trx.raw(SAVE_STANDINGS, [
    standings.map(({ requestId }) => requestId),
    standings.map(({ surplusReturned }) => surplusReturned),
    standings.map(({ status }) => rankOfRequestStatus(status)),
    accountId,
  ])
}

const SAVE_STANDINGS = `
  update requests set surplus_returned = standing.surplus_returned, status = standing.status
  from unnest(?::bytea[], ?::numeric[], ?::smallint[]) as standing(request_id, surplus_returned, status)
  where requests.account_id = ? and requests.request_id = standing.request_id`

/** PostgreSQL writes a numeric with the zeros of its scale. */
export function canonicalAmount(numeric: string): string {
  return formatDecimal(readStoredDecimal(numeric))
}
