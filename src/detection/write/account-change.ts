import type { Knex } from 'knex'
import { addressToBytes } from '../../domain/address.ts'
import { trimNumeric } from '../../domain/decimal.ts'
import { bytesToHex, hexToBytes } from '../../domain/hex.ts'
import { lockAccount } from '../../store/payment-changes.ts'
import { attachFacts } from '../../store/payment-facts.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import {
  absorbPayments,
  loadRefunds,
  loadRequests,
  loadSuperseding,
  savePayments,
  saveStandings,
} from '../../store/request-ledger.ts'
import {
  type LedgerRequestRow,
  type RefundRow,
  type RequestStanding,
  settleRequests,
} from '../../store/settle-requests.ts'
import { supersedeImports } from '../../store/supersede-imports.ts'
import type { DetectedPayment, DetectedRefund, EventPlace } from '../match/detected.ts'
import {
  deletePaymentRows,
  deleteRefundRows,
  findDueRequests,
  forgetRemoved,
  loadPaymentsByEvents,
  loadPaymentsByRequests,
  loadRefundsByTransactions,
  type Removal,
  removeDetected,
  saveRefunds,
} from '../sql/account-rows-repository.ts'
import { queueCarried } from '../sql/carried-repository.ts'
import { addPayments, correctFacts, finalisePayments, rowKeyAt, rowKeyOf, type WrittenChain } from './payment-rows.ts'

/** What happens to one account's payments and refunds in one transaction. */
export interface AccountChange {
  readonly accountId: number
  /** Detected payments to add, or to correct where they are among `rereadEvents`. */
  readonly payments: readonly DetectedPayment[]
  readonly refunds: readonly DetectedRefund[]
  /** Payments and refunds up to this block become final. */
  readonly finalBlock: number
  /** From which the confirmations of payments that become final are counted. */
  readonly headBlock: number
  /** What to remove first. */
  readonly removal?: Removal | undefined
  /** Events that were read again: what is stored of them is corrected, or deleted where it no longer counts. Imported payments stay. */
  readonly rereadEvents?: readonly EventPlace[] | undefined
  readonly now: Date
}

/** Rows of the requests that a change touched, before and after it. */
export interface AppliedChange {
  /** By id. */
  readonly paymentsBefore: ReadonlyMap<string, PaymentRow>
  readonly payments: readonly PaymentRow[]
  readonly refundsBefore: readonly RefundRow[]
  readonly refunds: readonly RefundRow[]
  /** As they were, and what settling changed in them. */
  readonly requestsBefore: readonly LedgerRequestRow[]
  readonly standings: readonly RequestStanding[]
}

/**
 * Applies a change to an account: removes, adds, corrects and finalises payments and refunds, then settles every request that this touches.
 * Locks the account, so changes never interleave. Applying a change twice has no further effect.
 *
 * @param trx - holds the chain's row locked
 */
export async function applyAccountChange(
  trx: Knex.Transaction,
  chain: WrittenChain,
  change: AccountChange,
): Promise<AppliedChange> {
  const { accountId, now } = change
  const account = await lockAccount(trx, accountId, now)
  const txHashes = new Set([...change.payments, ...(change.rereadEvents ?? [])].map(({ txHash }) => txHash))
  const ids = change.payments.map(({ id }) => id)
  await forgetRemoved(account, chain.network, txHashes)
  const ofEvents = await loadPaymentsByEvents(trx, accountId, { txHashes, ids })
  const requestIds = await findTouchedRequests(trx, chain, change, ofEvents)
  const requests = await loadRequests(trx, accountId, requestIds)
  if (change.removal !== undefined) await removeDetected(account, chain.chainId, change.removal)
  const paymentsBefore = new Map([...ofEvents, ...(await loadPaymentsByRequests(trx, accountId, requestIds))])
  const refundsBefore = await loadRefunds(trx, accountId, requestIds)
  const gone = findGone(chain, change, { payments: [...paymentsBefore.values()], refunds: refundsBefore })
  await deletePaymentRows(account, gone.payments)
  await deleteRefundRows(trx, accountId, gone.refunds)
  const stored = new Map([...paymentsBefore].filter(([, row]) => !gone.payments.includes(row)))
  const storedRefunds = refundsBefore.filter((row) => !gone.refunds.includes(row))
  const { payments: merged, refunds } = changeRows(stored, storedRefunds, chain, change)
  const known = await loadSuperseding(account, requests, merged)
  const reread = new Set((change.rereadEvents ?? []).map(({ txHash }) => txHash.slice(2)))
  const { rows: payments, absorbed } = supersedeImports(merged, { ...known, reread, now })
  await absorbPayments(account, absorbed, stored)
  const { settled, standings } = settleRequests({ requests, payments, refunds, stored, now })
  await savePayments(account, { rows: settled, stored })
  await queueCarried(account, findNewlyDetected(settled, stored, change))
  const newRefunds = refunds.filter((row) => !storedRefunds.includes(row))
  await saveRefunds(trx, newRefunds)
  await saveStandings(account, standings)
  return { paymentsBefore, payments: settled, refundsBefore, refunds, requestsBefore: requests, standings }
}

/** Requests that gain, lose or finalise a payment or refund. An imported payment may be stored with another request than its event names. */
async function findTouchedRequests(
  trx: Knex,
  { chainId }: WrittenChain,
  change: AccountChange,
  ofEvents: ReadonlyMap<string, PaymentRow>,
): Promise<string[]> {
  const { accountId, payments, refunds, rereadEvents = [] } = change
  const refundTxHashes = new Set([...refunds, ...rereadEvents].map(({ txHash }) => txHash))
  const refunded = await loadRefundsByTransactions(trx, accountId, refundTxHashes)
  const found = new Set([
    ...[...payments, ...refunds].map(({ requestId }) => requestId),
    ...[...ofEvents.values(), ...refunded].flatMap(({ request_id }) => request_id?.toString('hex') ?? []),
    ...(await findDueRequests(trx, { accountId, chainId }, change)),
  ])
  return [...found].toSorted()
}

interface Rows {
  readonly payments: readonly PaymentRow[]
  readonly refunds: readonly RefundRow[]
}

/** Rows of events that were read again and no longer count. Imported payments stay. */
export function findGone(
  chain: WrittenChain,
  change: Pick<AccountChange, 'payments' | 'refunds' | 'rereadEvents'>,
  { payments, refunds }: Rows,
): Rows {
  const keysOf = (places: readonly EventPlace[]) => new Set(places.map((place) => rowKeyAt(place, chain)))
  const reread = keysOf(change.rereadEvents ?? [])
  const paid = keysOf(change.payments)
  const returned = keysOf(change.refunds)
  const isGone = (key: string | undefined, found: ReadonlySet<string>) =>
    key !== undefined && reread.has(key) && !found.has(key)
  return {
    payments: payments.filter((row) => row.detected && !row.imported && isGone(rowKeyOf(row), paid)),
    refunds: refunds.filter((row) => isGone(rowKeyOf(row), returned)),
  }
}

function changeRows(
  stored: ReadonlyMap<string, PaymentRow>,
  storedRefunds: readonly RefundRow[],
  chain: WrittenChain,
  change: AccountChange,
) {
  const areReread = change.rereadEvents !== undefined
  const isToCorrect = (row: PaymentRow) => areReread && row.detected
  const payments = addPayments(stored, change, chain, (row, facts) =>
    isToCorrect(row) ? correctFacts(row, facts) : attachFacts(row, facts),
  )
  const refunds = addRefunds(storedRefunds, change, chain, areReread)
  return {
    payments: finalisePayments(payments, chain, change),
    refunds: finaliseRefunds(refunds, chain, change.finalBlock),
  }
}

/** Payments whose source was never looked up: those of a first reading, and those that reading again has made CROSSCHAIN. */
function findNewlyDetected(
  rows: readonly PaymentRow[],
  stored: ReadonlyMap<string, PaymentRow>,
  { payments }: AccountChange,
): PaymentRow[] {
  const txHashes = new Set<string>(payments.map(({ txHash }) => txHash))
  const isNew = ({ id, type }: PaymentRow) => !stored.get(id)?.detected || stored.get(id)?.type !== type
  return rows.filter((row) => row.tx_hash !== null && txHashes.has(bytesToHex(row.tx_hash)) && isNew(row))
}

/**
 * Merges detected refunds into an account's stored rows.
 *
 * @param areReread - whether they were read before: then a refund that differs replaces the stored one, else the stored one stays
 * @returns all rows, the stored ones included; a row that stays is the given one
 */
function addRefunds(
  stored: readonly RefundRow[],
  { accountId, refunds }: { readonly accountId: number; readonly refunds: readonly DetectedRefund[] },
  chain: WrittenChain,
  areReread: boolean,
): RefundRow[] {
  const rows = new Map(stored.map((row) => [rowKeyOf(row), row]))
  for (const refund of refunds) {
    const row = toRow(accountId, refund, chain)
    const known = rows.get(rowKeyOf(row))
    const isReplaced = known !== undefined && areReread && !isSameRefund(known, row)
    if (known === undefined || isReplaced) rows.set(rowKeyOf(row), { ...row, final: known?.final ?? false })
  }
  return [...rows.values()]
}

function toRow(accountId: number, refund: DetectedRefund, { chainId, network }: WrittenChain): RefundRow {
  return {
    account_id: accountId,
    tx_hash: hexToBytes(refund.txHash),
    event_index: refund.eventIndex,
    network,
    chain_id: chainId,
    request_id: hexToBytes(refund.requestId),
    block_number: BigInt(refund.blockNumber),
    log_index: refund.logIndex,
    timestamp: refund.timestamp,
    final: false,
    amount: refund.amount,
    currency: refund.currency,
    recipient: addressToBytes(refund.recipient),
  }
}

function isSameRefund(a: RefundRow, b: RefundRow): boolean {
  const isSamePlace =
    a.block_number === b.block_number && a.log_index === b.log_index && a.timestamp.getTime() === b.timestamp.getTime()
  const isSameMoney = trimNumeric(a.amount) === b.amount && a.currency === b.currency
  return a.request_id.equals(b.request_id) && isSameMoney && isSamePlace && isSameRecipient(a, b)
}

function isSameRecipient({ recipient: a }: RefundRow, { recipient: b }: RefundRow): boolean {
  return a !== null && b !== null && a.equals(b)
}

/** Makes the chain's refunds up to a block final. @returns the given row where nothing changes */
function finaliseRefunds(rows: readonly RefundRow[], { chainId }: WrittenChain, finalBlock: number): RefundRow[] {
  return rows.map((row) => {
    const isDue = !row.final && row.chain_id === chainId && row.block_number <= finalBlock
    return isDue ? { ...row, final: true } : row
  })
}
