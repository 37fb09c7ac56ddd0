import type { Knex } from 'knex'
import { type Address, addressToBytes } from '../../domain/address.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { codeOfType } from '../../domain/payment.ts'
import { topicOfReference } from '../../domain/payment-reference.ts'
import { changePayments, type LockedAccount, lockAccount } from '../../store/payment-changes.ts'
import type { PaymentRow } from '../../store/payment-row.ts'
import { createPendingReplays } from './pending-replays-repository.ts'

/** A payment that a bridge delivered and whose beginning is to be looked up. */
export interface CarriedPayment {
  readonly accountId: number
  readonly paymentId: string
  /** CAIP-2, of the chain where it was delivered. */
  readonly chainId: string
  /** Of the delivery. */
  readonly txHash: Hex
  /** How often it was looked up in vain. */
  readonly attempts: number
}

/** Where a payment came from. */
export interface PaymentSource {
  /** Canonical name; absent for a chain without one. */
  readonly network?: string
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

/** Notes those of an account's rows that a bridge delivered and of which the chain alone does not tell who paid. */
export async function noteCarried({ trx, accountId, at }: LockedAccount, rows: readonly PaymentRow[]): Promise<void> {
  const notes = rows.flatMap(({ id, type, source_tx_hash, tx_hash, chain_id }) =>
    type === CROSSCHAIN && source_tx_hash === null && tx_hash !== null && chain_id !== null
      ? [{ account_id: accountId, payment_id: id, chain_id, tx_hash, due_at: at }]
      : [],
  )
  if (notes.length > 0) await trx('carried_payments').insert(notes).onConflict(['account_id', 'payment_id']).ignore()
}

/** The first of those that are due. */
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

/** Looks it up again at another time. */
export async function postponeCarried(
  knex: Knex,
  { accountId, paymentId }: CarriedPayment,
  { attempts, dueAt }: { readonly attempts: number; readonly dueAt: Date },
): Promise<void> {
  await knex('carried_payments')
    .where({ account_id: accountId, payment_id: paymentId })
    .update({ attempts, due_at: dueAt })
}

/** Looks it up no more. */
export async function dropCarried(knex: Knex, { accountId, paymentId }: CarriedPayment): Promise<void> {
  await knex('carried_payments').where({ account_id: accountId, payment_id: paymentId }).delete()
}

/**
 * Says where a payment came from, if it still stands and nobody has said it before, and looks it up no more. What was sent back to its payer
 * before he was known was no refund, so those events are looked at again.
 */
export async function storeSource(
  trx: Knex.Transaction,
  carried: CarriedPayment,
  { source, now }: { readonly source: PaymentSource; readonly now: Date },
): Promise<void> {
  const { accountId, paymentId } = carried
  const account = await lockAccount(trx, accountId, now)
  const told = {
    source_tx_hash: hexToBytes(source.txHash),
    source_network: source.network ?? null,
    payer: addressToBytes(source.payer),
    line_hash: null,
    updated_at: now,
  }
  const standing = { account_id: accountId, id: paymentId, type: CROSSCHAIN, source_tx_hash: null }
  const changed = await changePayments(account, trx('payments').where(standing).update(told).toSQL())
  if (changed.length > 0) await lookForRefunds(trx, accountId, paymentId)
  await dropCarried(trx, carried)
}

async function lookForRefunds(trx: Knex.Transaction, accountId: number, paymentId: string): Promise<void> {
  const row = await trx('payments').where({ account_id: accountId, id: paymentId }).first('payment_reference')
  const reference = (row as { payment_reference: Buffer | null } | undefined)?.payment_reference
  if (!reference) return
  await createPendingReplays(trx).add([{ accountId, topic: topicOfReference(bytesToHex(reference)) }])
}
