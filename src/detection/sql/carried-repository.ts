import type { Knex } from 'knex'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { topicOfReference } from '../../domain/identifiers.ts'
import { codeOfType } from '../../domain/payment.ts'
import { changePayments, type LockedAccount, lockAccount, readPayments } from '../../store/payment-changes.ts'
import { UNSCREENED } from '../../store/payment-facts.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import { settleStored } from '../../store/request-ledger.ts'
import { type ChainTransactions, columnsOf, findByEvent } from './account-events-repository.ts'
import { queueEnrichments } from './enrichments-repository.ts'
import { addPendingReplays } from './pending-replays-repository.ts'
import { readRows } from './read-rows.ts'

/** A payment that a bridge delivered and whose source (chain, transaction, payer) is still to be looked up, or is not final yet. */
export interface CarriedPayment {
  readonly accountId: number
  readonly paymentId: string
  /** CAIP-2, of the chain where the bridge delivered. */
  readonly chainId: string
  /** Of the delivery. */
  readonly txHash: Hex
  /** Lookups that found nothing. */
  readonly attempts: number
  /** Where the source was seen; absent while it is unknown. */
  readonly seen?: SeenSource | undefined
}

/** A source transaction on a followed chain. A reorg there can remove it. */
export interface SeenSource {
  /** CAIP-2. */
  readonly chainId: string
  readonly txHash: Hex
  readonly blockNumber: number
  readonly blockHash: Hex
}

/** Where a payment came from. */
export interface PaymentSource {
  /** Canonical name; absent where the chain is not in the directory. */
  readonly network?: string | undefined
  readonly txHash: Hex
  readonly payer: Address
  /** Whether the source transaction, as we read it, shows the same payer. */
  readonly isProven: boolean
}

const UNSEEN = { source_chain_id: null, source_tx_hash: null, source_block_number: null, source_block_hash: null }

const CROSSCHAIN = codeOfType('CROSSCHAIN')

/**
 * Queues those of an account's payments that a bridge delivered and whose source is unknown. An entry that is there already belongs to a payment that
 * a reorg removed: its source is looked up again.
 */
export async function queueCarried({ trx, accountId, at }: LockedAccount, rows: readonly PaymentRow[]): Promise<void> {
  const queued = rows.flatMap(({ id, type, source_tx_hash, tx_hash, chain_id }) =>
    type === CROSSCHAIN && source_tx_hash === null && tx_hash !== null && chain_id !== null
      ? [{ account_id: accountId, payment_id: id, chain_id, tx_hash, due_at: at, ...UNSEEN }]
      : [],
  )
  if (queued.length === 0) return
  const reset = ['tx_hash', 'due_at', ...Object.keys(UNSEEN)]
  await trx('carried_payments').insert(queued).onConflict(['account_id', 'payment_id']).merge(reset)
}

/** Reads the entries that are due, longest due first. @param onlySeen - only those whose source was seen */
export async function findDueCarried(
  knex: Knex,
  { now, onlySeen }: { readonly now: Date; readonly onlySeen: boolean },
  limit: number,
): Promise<CarriedPayment[]> {
  const query = knex('carried_payments').where('due_at', '<=', now).orderBy('due_at').limit(limit)
  const rows = await (onlySeen ? query.whereNotNull('source_tx_hash') : query)
  return readRows<CarriedFields>(rows).map(toCarried)
}

type CarriedFields = Omit<CarriedPayment, 'seen'> & {
  readonly [Name in keyof SeenSource as `source${Capitalize<Name>}`]?: SeenSource[Name]
}

function toCarried(entry: CarriedFields): CarriedPayment {
  const { sourceChainId: chainId, sourceTxHash: txHash } = entry
  const { sourceBlockNumber: blockNumber, sourceBlockHash: blockHash } = entry
  const isSeen = chainId !== undefined && txHash !== undefined && blockNumber !== undefined && blockHash !== undefined
  return { ...entry, seen: isSeen ? { chainId, txHash, blockNumber, blockHash } : undefined }
}

/** Keeps an entry until its source is final. */
export async function keepSeen(
  knex: Knex,
  carried: CarriedPayment,
  { chainId, txHash, blockNumber, blockHash }: SeenSource,
  dueAt: Date,
): Promise<void> {
  const columns = {
    source_chain_id: chainId,
    source_tx_hash: hexToBytes(txHash),
    source_block_number: blockNumber,
    source_block_hash: hexToBytes(blockHash),
  }
  await entryOf(knex, carried).update({ ...columns, attempts: 0, due_at: dueAt })
}

function entryOf(knex: Knex, { accountId, paymentId }: CarriedPayment): Knex.QueryBuilder {
  return knex('carried_payments').where({ account_id: accountId, payment_id: paymentId })
}

export async function postponeCarried(
  knex: Knex,
  carried: CarriedPayment,
  { attempts, dueAt }: { readonly attempts: number; readonly dueAt: Date },
): Promise<void> {
  await entryOf(knex, carried).update({ attempts, due_at: dueAt })
}

export async function deleteCarried(knex: Knex, carried: CarriedPayment): Promise<void> {
  await entryOf(knex, carried).delete()
}

interface FoundSource {
  readonly source: PaymentSource
  readonly now: Date
  /** When to check the source. */
  readonly check?: { readonly seen: SeenSource; readonly dueAt: Date } | undefined
  /** Whether the chain that the bridge delivered on has an oracle, which is then asked about the payer. */
  readonly isScreened: boolean
}

/**
 * Stores where a payment came from. Deletes its entry, unless the source is to be checked until it is final. Does not touch a payment that is gone
 * or whose source is known already. Now that the payer is known, money that went to them may be a refund, and money that went to somebody else is
 * none, so the events of the request are read again.
 */
export async function storeSource(
  trx: Knex.Transaction,
  carried: CarriedPayment,
  { source, now, check, isScreened }: FoundSource,
): Promise<void> {
  const { accountId, paymentId } = carried
  const account = await lockAccount(trx, accountId, now)
  const columns = {
    source_tx_hash: hexToBytes(source.txHash),
    source_network: source.network ?? null,
    payer: addressToBytes(source.payer),
    marks: isScreened ? UNSCREENED : 0,
    line_hash: null,
    updated_at: now,
  }
  const unsourced = { account_id: accountId, id: paymentId, type: CROSSCHAIN, source_tx_hash: null }
  const changed = await changeWhere(account, unsourced, columns)
  if (changed.length > 0 && check !== undefined) await keepSeen(trx, carried, check.seen, check.dueAt)
  else await deleteCarried(trx, carried)
  if (changed.length === 0) return
  const row = await trx('payments')
    .where({ account_id: accountId, id: paymentId })
    .first<DeliveredRow>('payment_reference', 'event_index', 'request_id', 'block_number')
  await keepWord(trx, carried, source, row)
  if (isScreened && row.block_number !== null) {
    const lacking = { accountId, txHash: carried.txHash, blockNumber: Number(row.block_number) }
    await queueEnrichments(trx, carried.chainId, [{ ...lacking, lacks: new Set(['SCREENING']) }], now)
  }
  // An imported payment that names the source alone may be this one.
  if (row.request_id !== null) await settleStored(account, [row.request_id])
}

type DeliveredRow = Pick<PaymentRow, 'payment_reference' | 'event_index' | 'request_id' | 'block_number'>

/** Takes a source back that a reorg removed from its chain: source and payer are unknown again, and are looked up again. */
export async function takeSourceBack(trx: Knex.Transaction, carried: CarriedPayment, now: Date): Promise<void> {
  const { accountId, paymentId, seen } = carried
  if (seen === undefined) return
  const account = await lockAccount(trx, accountId, now)
  const columns = {
    source_tx_hash: null,
    source_network: null,
    payer: null,
    marks: 0,
    line_hash: null,
    updated_at: now,
  }
  const sourced = { account_id: accountId, id: paymentId, type: CROSSCHAIN, source_tx_hash: hexToBytes(seen.txHash) }
  await changeWhere(account, sourced, columns)
  const reported = await trx('reported_payers')
    .where(ofCarried(carried))
    .delete()
    .returning<{ topic: Buffer }[]>('topic')
  const topics = reported.map(({ topic }) => ({ accountId, topic: bytesToHex(topic) }))
  await addPendingReplays(trx, topics, true)
  await entryOf(trx, carried).update({ ...UNSEEN, attempts: 0, due_at: now })
}

/** @returns the ids of the payments that were changed */
async function changeWhere(account: LockedAccount, where: object, columns: object): Promise<string[]> {
  const rows = account.trx('payments').where(where)
  const before = await readPayments(account, rows.clone())
  return before.size === 0 ? [] : changePayments(account, before, rows.update(columns).toSQL())
}

/** Keeps what a bridge reported of a payment's event, and has the event read again; replaces what it reported before. */
async function keepWord(
  trx: Knex.Transaction,
  carried: CarriedPayment,
  source: PaymentSource,
  { payment_reference, event_index }: DeliveredRow,
): Promise<void> {
  const { accountId, paymentId, chainId, txHash } = carried
  if (payment_reference === null || event_index === null) return
  const topic = topicOfReference(bytesToHex(payment_reference))
  await trx('reported_payers')
    .insert({
      ...columnsOf({ accountId, chainId, txHash, eventIndex: event_index }),
      payment_id: paymentId,
      topic: hexToBytes(topic),
      payer: addressToBytes(source.payer),
      source_tx_hash: hexToBytes(source.txHash),
      is_proven: source.isProven,
    })
    .onConflict(['account_id', 'chain_id', 'tx_hash', 'event_index'])
    .merge()
  await addPendingReplays(trx, [{ accountId, topic }], true)
}

/** Who paid an event that a bridge delivered, as the bridge reported it. It outlives the payment: it holds at every later reading of the event. */
export interface ReportedPayer {
  readonly payer: Address
  /** Whether the source transaction, as we read it, shows the same payer. Only then does it un-count a payment. */
  readonly isProven: boolean
}

/** Who a bridge said paid from a source; undefined where it said so of another source, or of none. */
export async function reportedPayerFrom(
  knex: Knex,
  carried: CarriedPayment,
  sourceTxHash: Hex,
): Promise<Address | undefined> {
  const row = await knex('reported_payers')
    .where({ ...ofCarried(carried), source_tx_hash: hexToBytes(sourceTxHash) })
    .first<{ payer: Buffer } | undefined>('payer')
  return row && addressFromBytes(row.payer)
}

function ofCarried({ accountId, chainId, txHash, paymentId }: CarriedPayment) {
  return { account_id: accountId, chain_id: chainId, tx_hash: hexToBytes(txHash), payment_id: paymentId }
}

/** Finds what bridges reported to an account about events in transactions. @returns by {@link findByEvent} */
export function findReportedPayers(
  knex: Knex,
  accountId: number,
  transactions: ChainTransactions,
): Promise<Map<string, ReportedPayer>> {
  return findByEvent(knex, 'reported_payers', 'payer, is_proven', { accountId, ...transactions })
}
