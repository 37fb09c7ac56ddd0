import type { Knex } from 'knex'
import { type Address, addressToBytes } from '../../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { codeOfType } from '../../domain/payment.ts'
import { topicOfReference } from '../../domain/payment-reference.ts'
import { changePayments, type LockedAccount, lockAccount } from '../../store/payment-changes.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import { addPendingReplays } from './pending-replays-repository.ts'

/** A payment that a bridge delivered and whose source (chain, transaction, payer) is still to be looked up. */
export interface CarriedPayment {
  readonly accountId: number
  readonly paymentId: string
  /** CAIP-2, of the chain where the bridge delivered. */
  readonly chainId: string
  /** Of the delivery. */
  readonly txHash: Hex
  /** Lookups that found nothing. */
  readonly attempts: number
}

/** Where a payment came from. */
export interface PaymentSource {
  /** Canonical name; absent where the chain is not in the directory. */
  readonly network?: string | undefined
  readonly txHash: Hex
  readonly payer: Address
}

interface Row {
  readonly account_id: number
  readonly payment_id: string
  readonly chain_id: string
  readonly tx_hash: Buffer
  readonly attempts: number
}

const CROSSCHAIN = codeOfType('CROSSCHAIN')

/** Queues those of an account's payments that a bridge delivered and whose source is unknown. */
export async function queueCarried({ trx, accountId, at }: LockedAccount, rows: readonly PaymentRow[]): Promise<void> {
  const queued = rows.flatMap(({ id, type, source_tx_hash, tx_hash, chain_id }) =>
    type === CROSSCHAIN && source_tx_hash === null && tx_hash !== null && chain_id !== null
      ? [{ account_id: accountId, payment_id: id, chain_id, tx_hash, due_at: at }]
      : [],
  )
  if (queued.length > 0) await trx('carried_payments').insert(queued).onConflict(['account_id', 'payment_id']).ignore()
}

/** Reads the entries that are due, longest due first. */
export async function findDueCarried(knex: Knex, now: Date, limit: number): Promise<CarriedPayment[]> {
  const rows = await knex<Row>('carried_payments').where('due_at', '<=', now).orderBy('due_at').limit(limit)
  return rows.map(({ account_id, payment_id, chain_id, tx_hash, attempts }) => ({
    accountId: account_id,
    paymentId: payment_id,
    chainId: chain_id,
    txHash: bytesToHex(tx_hash),
    attempts,
  }))
}

export async function postponeCarried(
  knex: Knex,
  { accountId, paymentId }: CarriedPayment,
  { attempts, dueAt }: { readonly attempts: number; readonly dueAt: Date },
): Promise<void> {
  await knex('carried_payments')
    .where({ account_id: accountId, payment_id: paymentId })
    .update({ attempts, due_at: dueAt })
}

export async function deleteCarried(knex: Knex, { accountId, paymentId }: CarriedPayment): Promise<void> {
  await knex('carried_payments').where({ account_id: accountId, payment_id: paymentId }).delete()
}

/**
 * Stores where a payment came from and deletes its entry. Does not touch a payment that is gone or whose source is known already. Now that the
 * payer is known, events that sent money back to him may be refunds, so the events under the payment's reference are replayed.
 */
export async function storeSource(
  trx: Knex.Transaction,
  carried: CarriedPayment,
  { source, now }: { readonly source: PaymentSource; readonly now: Date },
): Promise<void> {
  const { accountId, paymentId } = carried
  const account = await lockAccount(trx, accountId, now)
  const columns = {
    source_tx_hash: hexToBytes(source.txHash),
    source_network: source.network ?? null,
    payer: addressToBytes(source.payer),
    line_hash: null,
    updated_at: now,
  }
  const unsourced = { account_id: accountId, id: paymentId, type: CROSSCHAIN, source_tx_hash: null }
  const changed = await changePayments(account, trx('payments').where(unsourced).update(columns).toSQL())
  if (changed.length > 0) await replayReference(trx, accountId, paymentId)
  await deleteCarried(trx, carried)
}

async function replayReference(trx: Knex.Transaction, accountId: number, paymentId: string): Promise<void> {
  const row = await trx('payments')
    .where({ account_id: accountId, id: paymentId })
    .first<{ payment_reference: Buffer | null } | undefined>('payment_reference')
  if (!row?.payment_reference) return
  await addPendingReplays(trx, [{ accountId, topic: topicOfReference(bytesToHex(row.payment_reference)) }])
}
