import type { Knex } from 'knex'
import type { PaymentRow } from '../db/payment-row.ts'
import { bytesToHex, hexToBytes } from '../domain/hex.ts'
import { rankOfStatus, statusOfRank } from '../domain/payment.ts'
import type { DetectedPayment, DetectedRefund } from './detected.ts'
import { canonicalAmount } from './detection-repository.ts'
import { eventKeyOf, factsOf, mergeFacts, toInsert, type WrittenChain } from './payment-rows.ts'
import { addRefunds, finaliseRefunds, loadRefunds, type RefundRow, saveRefunds } from './refund-repository.ts'
import {
  type Ledger,
  type LedgerPayment,
  type LedgerRefund,
  returnedSurplus,
  type SettledState,
  settle,
} from './settle.ts'

/** What happens to one account's payments and refunds in one transaction. */
export interface AccountChange {
  readonly accountId: number
  readonly payments: readonly DetectedPayment[]
  readonly refunds: readonly DetectedRefund[]
  /** What is up to here becomes final. */
  readonly finalBlock: number
  /** Counts the confirmations that freeze. */
  readonly headBlock: number
  /** What is above, and not final, was reorged out. */
  readonly removeAbove?: number
  /** What is above goes even where it is final. */
  readonly removeFinal?: boolean
  readonly now: Date
}

interface RequestRow {
  readonly request_id: Buffer
  readonly amount: string
  readonly invoice_currency: string
  readonly surplus_returned: string
}

/** Rows in one statement; a statement has at most 65,535 parameters. */
const ROWS_A_STATEMENT = 500

/**
 * Applies a change to an account: payments and refunds are added, made final or taken out, and every request that this touches
 * is settled anew. The requests are locked, so that changes of one never interleave. Doing it twice changes nothing.
 *
 * @param trx - holds the chain's state locked
 */
export async function applyAccountChange(
  trx: Knex.Transaction,
  chain: WrittenChain,
  change: AccountChange,
): Promise<void> {
  const requestIds = await findTouchedRequests(trx, chain, change)
  const requests = await lockRequests(trx, change.accountId, requestIds)
  const droppedRefunds = await removeReorged(trx, chain, change)
  const stored = await loadPayments(trx, change, requestIds)
  const storedRefunds = await loadRefunds(trx, change.accountId, requestIds)
  const payments = finalise(addPayments(stored, chain, change), chain, change)
  const refunds = finaliseRefunds(addRefunds(storedRefunds, chain, change), chain, change.finalBlock)
  const { settled, surpluses } = settleRequests({
    requests,
    payments,
    refunds,
    stored,
    droppedRefunds,
    now: change.now,
  })
  await savePayments(
    trx,
    settled.filter((row) => stored.get(row.id) !== row),
    stored,
  )
  await saveRefunds(
    trx,
    refunds.filter((row) => !storedRefunds.includes(row)),
  )
  await saveSurpluses(trx, change.accountId, surpluses)
}

async function findTouchedRequests(trx: Knex, { chainId }: WrittenChain, change: AccountChange): Promise<string[]> {
  const { accountId, finalBlock, removeAbove } = change
  const found = new Set([...change.payments, ...change.refunds].map(({ requestId }) => requestId))
  for (const table of ['payments', 'refunds'] as const) {
    const rows = await trx(table)
      .distinct<{ request_id: Buffer }[]>('request_id')
      .where({ account_id: accountId, chain_id: chainId })
      .whereNotNull('request_id')
      .where((which) => {
        void which.where((due) => void due.where({ final: false }).where('block_number', '<=', finalBlock))
        if (removeAbove !== undefined) void which.orWhere((gone) => void isAbove(gone, change, removeAbove))
      })
    for (const { request_id } of rows) found.add(request_id.toString('hex'))
  }
  return [...found].toSorted()
}

function isAbove(query: Knex.QueryBuilder, { removeFinal }: AccountChange, block: number): Knex.QueryBuilder {
  const above = query.where('block_number', '>', block)
  return removeFinal === true ? above : above.where({ final: false })
}

async function lockRequests(trx: Knex, accountId: number, requestIds: readonly string[]): Promise<RequestRow[]> {
  if (requestIds.length === 0) return []
  const { rows } = await trx.raw<{ rows: RequestRow[] }>(
    `select request_id, amount, invoice_currency, surplus_returned from requests
     where account_id = ? and request_id = any(?) order by request_id for update`,
    [accountId, requestIds.map(hexToBytes)],
  )
  return rows
}

/**
 * Takes out what stands in blocks that are gone. An import keeps its row and id: it was told of before it was seen, and is PENDING
 * until it is seen again.
 *
 * @returns the refunds that are gone, of which payments may hold entries
 */
async function removeReorged(trx: Knex, { chainId }: WrittenChain, change: AccountChange) {
  const { accountId, removeAbove, now } = change
  if (removeAbove === undefined) return []
  const ofChain = { account_id: accountId, chain_id: chainId }
  await isAbove(trx('payments').where({ ...ofChain, imported: false }), change, removeAbove).delete()
  await isAbove(trx('payments').where({ ...ofChain, imported: true, detected: true }), change, removeAbove).update({
    detected: false,
    final: false,
    block_number: null,
    confirmations: null,
    updated_at: now,
  })
  const rows: { tx_hash: Buffer; event_index: number }[] = await isAbove(
    trx('refunds').where(ofChain),
    change,
    removeAbove,
  )
    .delete()
    .returning(['tx_hash', 'event_index'])
  return rows.map(({ tx_hash, event_index }) => ({ txHash: bytesToHex(tx_hash) as string, eventIndex: event_index }))
}

/** The requests' payments, and imported ones of the same event or id that may name no request. By id. */
async function loadPayments(trx: Knex, change: AccountChange, requestIds: readonly string[]) {
  const { rows } = await trx.raw<{ rows: PaymentRow[] }>(
    `select * from payments where account_id = ?
     and (request_id = any(?) or (tx_hash = any(?) and event_index is not null) or id = any(?::uuid[]))`,
    [
      change.accountId,
      requestIds.map(hexToBytes),
      change.payments.map(({ txHash }) => hexToBytes(txHash)),
      change.payments.map(({ id }) => id),
    ],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

function addPayments(
  stored: ReadonlyMap<string, PaymentRow>,
  chain: WrittenChain,
  { accountId, payments, now }: AccountChange,
): PaymentRow[] {
  const rows = new Map(stored)
  const idOfEvent = new Map([...stored.values()].map((row) => [eventKeyOf(row), row.id]))
  for (const payment of payments) {
    const facts = factsOf(payment, chain)
    const id = idOfEvent.get(eventKeyOf(facts)) ?? payment.id
    const known = rows.get(id)
    rows.set(id, known === undefined ? newRow(accountId, id, facts, now) : mergeFacts(settleByChain(known), facts))
    idOfEvent.set(eventKeyOf(facts), id)
  }
  return [...rows.values()]
}

/** Once an import is seen on chain, its block decides whether it is final; and what it called failed was made after all. */
function settleByChain(row: PaymentRow): PaymentRow {
  const revived = row.status === rankOfStatus('FAILED') ? { ...row, status: rankOfStatus('PENDING') } : row
  return row.detected ? revived : { ...revived, detected: true, final: false, confirmations: null }
}

function newRow(accountId: number, id: string, facts: ReturnType<typeof factsOf>, now: Date): PaymentRow {
  return {
    account_id: accountId,
    id,
    ...facts,
    status: rankOfStatus('PENDING'),
    final: false,
    imported: false,
    detected: true,
    confirmations: null,
    updated_at: now,
    refunded_amount: '0',
    refunds: [],
    status_history: [],
  }
}

function finalise(rows: readonly PaymentRow[], { chainId }: WrittenChain, change: AccountChange): PaymentRow[] {
  const { finalBlock, headBlock } = change
  return rows.map((row) => {
    if (
      row.final ||
      row.request_id === null ||
      row.chain_id !== chainId ||
      row.block_number === null ||
      row.block_number > finalBlock
    )
      return row
    return { ...row, final: true, confirmations: Math.max(1, headBlock - Number(row.block_number) + 1) }
  })
}

interface Settling {
  readonly requests: readonly RequestRow[]
  readonly payments: readonly PaymentRow[]
  readonly refunds: readonly RefundRow[]
  /** As the database has them, by id. */
  readonly stored: ReadonlyMap<string, PaymentRow>
  readonly droppedRefunds: readonly { readonly txHash: string; readonly eventIndex: number }[]
  readonly now: Date
}

/** What was returned of the surplus of a request, where it has changed. */
interface ReturnedSurplus {
  readonly requestId: Buffer
  readonly surplusReturned: string
}

/** @returns all payments, the stored row itself where nothing changed */
function settleRequests({ requests, payments, refunds, stored, droppedRefunds, now }: Settling) {
  const requestOf = new Map(requests.map((request) => [request.request_id.toString('hex'), request]))
  const groups = Map.groupBy(payments, (row) => row.request_id?.toString('hex') ?? '')
  const refundsOf = Map.groupBy(refunds, (row) => row.request_id.toString('hex'))
  const ofNoRequest = [...groups].flatMap(([requestId, rows]) => (requestOf.has(requestId) ? [] : rows))
  const surpluses: ReturnedSurplus[] = []
  const ofRequests = [...requestOf].flatMap(([requestId, request]) => {
    const rows = groups.get(requestId) ?? []
    const ledger: Ledger = {
      amount: canonicalAmount(request.amount),
      payments: rows.map((row) => toLedgerPayment(row, request, !stored.has(row.id))),
      refunds: (refundsOf.get(requestId) ?? []).map(toLedgerRefund),
      droppedRefunds,
      now,
    }
    const surplusReturned = returnedSurplus(ledger)
    if (surplusReturned !== canonicalAmount(request.surplus_returned)) {
      surpluses.push({ requestId: request.request_id, surplusReturned })
    }
    const states = settle(ledger)
    return rows.map((row) => applyState(row, states.get(row.id), stored, now))
  })
  return { settled: [...ofNoRequest, ...ofRequests], surpluses }
}

function applyState(
  row: PaymentRow,
  state: SettledState | undefined,
  stored: ReadonlyMap<string, PaymentRow>,
  now: Date,
): PaymentRow {
  if (state !== undefined && (state.updatedAt !== row.updated_at || !stored.has(row.id))) {
    return {
      ...row,
      status: rankOfStatus(state.status),
      refunds: state.refunds,
      refunded_amount: state.refundedAmount,
      status_history: state.statusHistory,
      updated_at: state.updatedAt,
    }
  }
  return stored.get(row.id) === row ? row : { ...row, updated_at: now }
}

function toLedgerPayment(row: PaymentRow, request: RequestRow, isNew: boolean): LedgerPayment {
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

/** A new row whose event an import has stored meanwhile keeps the import's id. */
async function savePayments(trx: Knex, rows: readonly PaymentRow[], stored: ReadonlyMap<string, PaymentRow>) {
  const sets = [
    { rows: rows.filter(({ id }) => stored.has(id)), key: ['account_id', 'id'] },
    { rows: rows.filter(({ id }) => !stored.has(id)), key: ['account_id', 'tx_hash', 'event_index', 'network'] },
  ]
  for (const set of sets) {
    const kept = new Set([...set.key, 'id'])
    for (let from = 0; from < set.rows.length; from += ROWS_A_STATEMENT) {
      const values = set.rows.slice(from, from + ROWS_A_STATEMENT).map(toInsert)
      const columns = Object.keys(values[0] ?? {}).filter((column) => !kept.has(column))
      await trx('payments').insert(values).onConflict(set.key).merge(columns)
    }
  }
}

async function saveSurpluses(trx: Knex, accountId: number, surpluses: readonly ReturnedSurplus[]) {
  for (const { requestId, surplusReturned } of surpluses) {
    await trx('requests')
      .where({ account_id: accountId, request_id: requestId })
      .update({ surplus_returned: surplusReturned })
  }
}
