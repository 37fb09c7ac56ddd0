import type { Knex } from 'knex'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { rankOfStatus } from '../../domain/payment.ts'
import { changePayments, deletePayments, type LockedAccount, lockAccount } from '../../store/payment-changes.ts'
import type { PaymentFacts, PaymentRow } from '../../store/payment-row.ts'
import {
  loadRefunds,
  loadRequests,
  type RefundRow,
  savePayments,
  saveStandings,
  settleRequests,
} from '../../store/request-ledger.ts'
import type { DetectedPayment, DetectedRefund } from '../match/detected.ts'
import { noteCarried } from './carried-repository.ts'
import { correctFacts, eventKeyOf, factsOf, mergeFacts, placeKeyOf, type WrittenChain } from './payment-rows.ts'
import { addRefunds, finaliseRefunds, saveRefunds } from './refund-repository.ts'

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
  /** Events that were looked at again: what is stored of them is made what was found now. Imported payments stay as they are. */
  readonly rereadEvents?: readonly EventPlace[]
  readonly now: Date
}

/** An event of the chain that is written for. */
export interface EventPlace {
  readonly txHash: Hex
  readonly eventIndex: number
}

/** Rows of the requests that a change touched, before and after it. */
export interface AppliedChange {
  /** By id. */
  readonly paymentsBefore: ReadonlyMap<string, PaymentRow>
  readonly payments: readonly PaymentRow[]
  readonly refundsBefore: readonly RefundRow[]
  readonly refunds: readonly RefundRow[]
}

/**
 * Applies a change to an account: payments and refunds are added, made final or taken out, and every request that this touches
 * is settled anew. The account is locked, so that changes never interleave. Doing it twice changes nothing.
 *
 * @param trx - holds the chain's state locked
 */
export async function applyAccountChange(
  trx: Knex.Transaction,
  chain: WrittenChain,
  change: AccountChange,
): Promise<AppliedChange> {
  const account = await lockAccount(trx, change.accountId, change.now)
  const ofEvents = await loadByEvents(trx, change)
  const requestIds = await findTouchedRequests(trx, chain, change, ofEvents)
  const requests = await loadRequests(trx, change.accountId, requestIds)
  const reorged = await removeReorged(account, chain, change)
  const paymentsBefore = new Map([...ofEvents, ...(await loadByRequests(trx, change.accountId, requestIds))])
  const refundsBefore = await loadRefunds(trx, change.accountId, requestIds)
  const gone = findGone(chain, change, { payments: paymentsBefore, refunds: refundsBefore })
  await removeGone(account, gone)
  const stored = new Map([...paymentsBefore].filter(([, row]) => !gone.payments.includes(row)))
  const storedRefunds = refundsBefore.filter((row) => !gone.refunds.includes(row))
  const payments = finalise(addPayments(stored, chain, change), chain, change)
  const refunds = finaliseRefunds(addRefunds(storedRefunds, chain, change), chain, change.finalBlock)
  const { settled, standings } = settleRequests({
    requests,
    payments,
    refunds,
    stored,
    droppedRefunds: [...reorged, ...gone.refunds.map(toPlace)],
    now: change.now,
  })
  await savePayments(account, { rows: settled, stored })
  // Of the others it was asked before, maybe in vain.
  const seen = new Set(change.payments.map(({ txHash }) => txHash as string))
  const isNews = (row: PaymentRow) => change.rereadEvents === undefined || stored.get(row.id)?.type !== row.type
  await noteCarried(
    account,
    settled.filter((row) => row.tx_hash !== null && seen.has(bytesToHex(row.tx_hash)) && isNews(row)),
  )
  await saveRefunds(
    trx,
    refunds.filter((row) => !storedRefunds.includes(row)),
  )
  await saveStandings(account, standings)
  return { paymentsBefore, payments: settled, refundsBefore, refunds }
}

interface StoredRows {
  readonly payments: ReadonlyMap<string, PaymentRow>
  readonly refunds: readonly RefundRow[]
}

interface GoneRows {
  readonly payments: readonly PaymentRow[]
  readonly refunds: readonly RefundRow[]
}

/** What is stored of events that were looked at again and do not count any more. What an import has told stays. */
function findGone(chain: WrittenChain, change: AccountChange, { payments, refunds }: StoredRows): GoneRows {
  const reread = new Set(change.rereadEvents?.map((place) => placeKeyOf(place, chain)))
  if (reread.size === 0) return { payments: [], refunds: [] }
  const paid = new Set(change.payments.map((place) => placeKeyOf(place, chain)))
  const returned = new Set(change.refunds.map((place) => placeKeyOf(place, chain)))
  const isGone = (key: string | undefined, found: ReadonlySet<string>) =>
    key !== undefined && reread.has(key) && !found.has(key)
  return {
    payments: [...payments.values()].filter((row) => row.detected && !row.imported && isGone(eventKeyOf(row), paid)),
    refunds: refunds.filter((row) => isGone(eventKeyOf(row), returned)),
  }
}

async function removeGone(account: LockedAccount, { payments, refunds }: GoneRows): Promise<void> {
  const { trx, accountId } = account
  if (payments.length > 0) {
    const ids = payments.map(({ id }) => id)
    const deletion = trx('payments').where({ account_id: accountId }).whereIn('id', ids).delete()
    await deletePayments(account, deletion.toSQL())
  }
  for (const { tx_hash, event_index, network } of refunds) {
    await trx('refunds').where({ account_id: accountId, tx_hash, event_index, network }).delete()
  }
}

const toPlace = ({ tx_hash, event_index }: RefundRow) => ({
  txHash: bytesToHex(tx_hash) as string,
  eventIndex: event_index,
})

/**
 * An import may have named another request for a payment than the chain does: that one loses it. A refund stays with the request under
 * which it is stored.
 */
async function findTouchedRequests(
  trx: Knex,
  { chainId }: WrittenChain,
  change: AccountChange,
  ofEvents: ReadonlyMap<string, PaymentRow>,
): Promise<string[]> {
  const { accountId, finalBlock, removeAbove } = change
  const found = new Set([...change.payments, ...change.refunds].map(({ requestId }) => requestId))
  for (const { request_id } of ofEvents.values()) if (request_id !== null) found.add(request_id.toString('hex'))
  for (const { request_id } of await loadRefundsByEvents(trx, change)) found.add(request_id.toString('hex'))
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

/**
 * Takes out what stands in blocks that are gone. An import keeps its row and id: it was told of before it was seen, and is PENDING
 * until it is seen again.
 *
 * @returns the refunds that are gone, of which payments may hold entries
 */
async function removeReorged(account: LockedAccount, { chainId }: WrittenChain, change: AccountChange) {
  const { trx, accountId } = account
  const { removeAbove, now } = change
  if (removeAbove === undefined) return []
  const ofChain = { account_id: accountId, chain_id: chainId }
  const gone = isAbove(trx('payments').where({ ...ofChain, imported: false }), change, removeAbove).delete()
  await deletePayments(account, gone.toSQL())
  const unseen = isAbove(trx('payments').where({ ...ofChain, imported: true, detected: true }), change, removeAbove)
  const forgotten = { detected: false, final: false, block_number: null, confirmations: null, updated_at: now }
  await changePayments(account, unseen.update(forgotten).toSQL())
  const rows: { tx_hash: Buffer; event_index: number }[] = await isAbove(
    trx('refunds').where(ofChain),
    change,
    removeAbove,
  )
    .delete()
    .returning(['tx_hash', 'event_index'])
  return rows.map(({ tx_hash, event_index }) => ({ txHash: bytesToHex(tx_hash) as string, eventIndex: event_index }))
}

/** What is stored of the events that were found, imported or seen before. By id. */
async function loadByEvents(
  trx: Knex,
  { accountId, payments, rereadEvents = [] }: AccountChange,
): Promise<Map<string, PaymentRow>> {
  const txHashes = new Set([...payments, ...rereadEvents].map(({ txHash }) => txHash))
  if (txHashes.size === 0) return new Map()
  const { rows } = await trx.raw<{ rows: PaymentRow[] }>(
    `select * from payments where account_id = ?
     and ((tx_hash = any(?) and event_index is not null) or id = any(?::uuid[]))`,
    [accountId, [...txHashes].map(hexToBytes), payments.map(({ id }) => id)],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

/** The same of refunds. */
async function loadRefundsByEvents(
  trx: Knex,
  { accountId, refunds, rereadEvents = [] }: AccountChange,
): Promise<{ request_id: Buffer }[]> {
  const txHashes = new Set([...refunds, ...rereadEvents].map(({ txHash }) => txHash))
  if (txHashes.size === 0) return []
  return trx('refunds')
    .distinct<{ request_id: Buffer }[]>('request_id')
    .where({ account_id: accountId })
    .whereIn('tx_hash', [...txHashes].map(hexToBytes))
}

/** The requests' payments. By id. */
async function loadByRequests(trx: Knex, accountId: number, requestIds: readonly string[]) {
  const { rows } = await trx.raw<{ rows: PaymentRow[] }>(
    'select * from payments where account_id = ? and request_id = any(?)',
    [accountId, requestIds.map(hexToBytes)],
  )
  return new Map(rows.map((row) => [row.id, row]))
}

function addPayments(
  stored: ReadonlyMap<string, PaymentRow>,
  chain: WrittenChain,
  { accountId, payments, now, rereadEvents }: AccountChange,
): PaymentRow[] {
  const merge = rereadEvents === undefined ? mergeAttached : correctFacts
  const rows = new Map(stored)
  const idOfEvent = new Map([...stored.values()].map((row) => [eventKeyOf(row), row.id]))
  for (const payment of payments) {
    const facts = factsOf(payment, chain)
    const id = idOfEvent.get(eventKeyOf(facts)) ?? payment.id
    const known = rows.get(id)
    rows.set(id, known === undefined ? newRow(accountId, id, facts, now) : merge(known, facts))
    idOfEvent.set(eventKeyOf(facts), id)
  }
  return [...rows.values()]
}

const mergeAttached = (known: PaymentRow, facts: PaymentFacts) => mergeFacts(settleByChain(known), facts)

/**
 * Once an import is seen on chain, its block decides whether it is final; and what it called failed was made after all. What its line
 * said may be no longer so, so that the line must be read when it comes again.
 */
function settleByChain(row: PaymentRow): PaymentRow {
  const revived = row.status === rankOfStatus('FAILED') ? { ...row, status: rankOfStatus('PENDING') } : row
  return row.detected ? revived : { ...revived, detected: true, final: false, confirmations: null, line_hash: null }
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
    line_hash: null,
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
