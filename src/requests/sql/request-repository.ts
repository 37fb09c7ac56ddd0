import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { formatDecimal, readStoredDecimal } from '../../domain/decimal.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { paymentReferenceOf, topicOfReference } from '../../domain/payment-reference.ts'
import {
  balanceAt,
  type PaymentRequest,
  type RequestBalance,
  settledStatusOfRank,
} from '../../domain/payment-request.ts'
import { inTransaction, runCancellable } from '../../postgres/cancellable.ts'
import { lockAccount } from '../../store/payment-changes.ts'
import { claimPayments, settleStored } from '../../store/request-ledger.ts'

/** A request, and how it stood when it was read. */
export interface RequestWithBalance {
  readonly request: PaymentRequest
  readonly balance: RequestBalance
}

/** Requests of accounts. Every call is scoped to one. */
export interface RequestRepository {
  /** Stores a request with its topics, unless its id is stored. Returns the stored one. */
  insert(account: Account, request: PaymentRequest, signal?: AbortSignal): Promise<PaymentRequest>
  /** Stores many requests. A request whose id is stored stays as it is. */
  insertMany(account: Account, requests: readonly PaymentRequest[], signal?: AbortSignal): Promise<void>
  findById(account: Account, requestId: string, signal?: AbortSignal): Promise<RequestWithBalance | undefined>
  findByReference(account: Account, reference: Hex, signal?: AbortSignal): Promise<RequestWithBalance | undefined>
  /** Those of the requests that are stored, in no order. */
  findMany(account: Account, requestIds: readonly string[], signal?: AbortSignal): Promise<RequestWithBalance[]>
  /** Stores the time of cancellation. Does nothing for a request that is cancelled or not stored. */
  cancel(account: Account, requestId: string, at: Date, signal?: AbortSignal): Promise<void>
  /** The claim on an idempotency key; undefined when nobody used the key. */
  findIdempotencyClaim(account: Account, key: string, signal?: AbortSignal): Promise<IdempotencyClaim | undefined>
  /** Claims an idempotency key unless it is taken. Returns the claim that holds. */
  claimIdempotencyKey(account: Account, claim: IdempotencyClaim, signal?: AbortSignal): Promise<IdempotencyClaim>
}

/** Which request an idempotency key created. */
export interface IdempotencyClaim {
  readonly key: string
  /** Hash of the terms that were sent with it. */
  readonly termsHash: Buffer
  readonly requestId: string
  readonly createdAt: Date
}

interface TermsRow {
  request_id: Buffer
  salt: Buffer
  payment_reference: Buffer
  payee: Buffer
  amount: string
  invoice_currency: string
  payment_currency: string
  network: string
  reference: string | null
  refund_address: Buffer | null
  created_at: Date
  expires_at: Date | null
  cancelled_at: Date | null
}

/** The columns of `requests` that are written first. Settling writes the others. */
export interface RequestRow extends TermsRow {
  account_id: number
  topic: Buffer
  refund_topic: Buffer | null
}

/** A row of `requests`, with what settling wrote. */
export interface BalanceRow extends TermsRow {
  status: number
  paid: string
  pending: string
  held: string
}

/** Rows in one statement. PostgreSQL takes 65,535 bindings. */
const ROWS_A_STATEMENT = 500

/** Creates the repository on a database. */
export function createRequestRepository(knex: Knex, now = () => new Date()): RequestRepository {
  const rowsOf = (account: Account) => knex<BalanceRow & RequestRow>('requests').where({ account_id: account.id })
  const withBalance = (row: BalanceRow) => requestWithBalanceOf(row, now())

  async function findById(account: Account, requestId: string, signal?: AbortSignal) {
    const query = rowsOf(account).where({ request_id: hexToBytes(requestId) })
    const [row] = await runCancellable(knex, query, signal)
    return row === undefined ? undefined : withBalance(row)
  }

  async function findTerms(trx: Knex, account: Account, requestId: string): Promise<PaymentRequest | undefined> {
    const row = await trx<TermsRow & { account_id: number }>('requests')
      .where({ account_id: account.id, request_id: hexToBytes(requestId) })
      .first()
    return row === undefined ? undefined : requestOfRow(row)
  }

  return {
    findById,
    insert: (account, request, signal) =>
      inTransaction(knex, signal, async (trx) => {
        await completeStored(trx, account, await insertRequests(trx, account, [request]), now())
        const stored = await findTerms(trx, account, request.requestId)
        if (stored === undefined) throw new Error('the conflicting request no longer exists; try again')
        return stored
      }),
    insertMany: (account, requests, signal) =>
      inTransaction(knex, signal, async (trx) => {
        const stored: StoredKeys[] = []
        for (let i = 0; i < requests.length; i += ROWS_A_STATEMENT) {
          stored.push(...(await insertRequests(trx, account, requests.slice(i, i + ROWS_A_STATEMENT))))
        }
        await completeStored(trx, account, stored, now())
      }),
    async findByReference(account, reference, signal) {
      const named = rowsOf(account).where({ payment_reference: hexToBytes(reference) })
      const [row] = await runCancellable(knex, named.orderBy('created_at').limit(1), signal)
      return row === undefined ? undefined : withBalance(row)
    },
    async findMany(account, requestIds, signal) {
      const query = rowsOf(account).whereIn('request_id', requestIds.map(hexToBytes))
      return (await runCancellable(knex, query, signal)).map(withBalance)
    },
    async cancel(account, requestId, at, signal) {
      const query = knex('requests')
        .where({ account_id: account.id, request_id: hexToBytes(requestId), cancelled_at: null })
        .update({ cancelled_at: at })
      await runCancellable(knex, query, signal)
    },
    findIdempotencyClaim: (account, key, signal) => inTransaction(knex, signal, (trx) => findClaim(trx, account, key)),
    claimIdempotencyKey: (account, claim, signal) =>
      inTransaction(knex, signal, async (trx) => {
        await trx('idempotency_keys')
          .insert({
            account_id: account.id,
            key: claim.key,
            terms_hash: claim.termsHash,
            request_id: hexToBytes(claim.requestId),
            created_at: claim.createdAt,
          })
          .onConflict(['account_id', 'key'])
          .ignore()
        return (await findClaim(trx, account, claim.key)) ?? claim
      }),
  }
}

async function findClaim(trx: Knex, account: Account, key: string): Promise<IdempotencyClaim | undefined> {
  const row = await trx('idempotency_keys').where({ account_id: account.id, key }).first()
  if (row === undefined) return undefined
  return {
    key: row.key,
    termsHash: row.terms_hash,
    requestId: row.request_id.toString('hex'),
    createdAt: row.created_at,
  }
}

/** @returns the keys of those that were not stored yet */
function insertRequests(trx: Knex, account: Account, requests: readonly PaymentRequest[]): Promise<StoredKeys[]> {
  return trx('requests')
    .insert(requests.map((request) => rowOfRequest(account, request)))
    .onConflict(['account_id', 'request_id'])
    .ignore()
    .returning(['request_id', 'topic', 'refund_topic'])
}

type StoredKeys = Pick<RequestRow, 'request_id' | 'topic' | 'refund_topic'>

/**
 * Completes the storing of new requests: stores their topics, gives them the imported payments that name their references, and settles
 * them. It also notes that earlier payments under these topics are still to be attached. Call it with new requests only: the terms of a
 * stored one may bring another salt, whose topics nobody uses.
 *
 * Call it once and last in a transaction. Transactions that store the same requests wait for each other's keys, and must not hold the
 * lock of the account while they wait.
 */
export async function completeStored(
  trx: Knex.Transaction,
  account: Account,
  stored: readonly StoredKeys[],
  now: Date,
): Promise<void> {
  const topics = stored.flatMap(({ topic, refund_topic }) => (refund_topic === null ? [topic] : [topic, refund_topic]))
  const distinct = new Map(topics.map((topic) => [topic.toString('hex'), { topic, account_id: account.id }]))
  if (distinct.size === 0) return
  const known = [...distinct.values()]
  await trx('reference_topics').insert(known).onConflict(['topic', 'account_id']).ignore()
  const note = trx.raw('excluded.note')
  await trx('pending_replays').insert(known).onConflict(['topic', 'account_id']).merge({ note })
  const requestIds = stored.map(({ request_id }) => request_id)
  const locked = await lockAccount(trx, account.id, now)
  await claimPayments(locked, requestIds)
  await settleStored(locked, requestIds)
}

function topicsOf(request: PaymentRequest): { topic: Buffer; refund_topic: Buffer | null } {
  const topic = hexToBytes(topicOfReference(request.paymentReference))
  if (request.refundAddress === undefined) return { topic, refund_topic: null }
  const refundReference = paymentReferenceOf(request.requestId, request.salt, request.refundAddress)
  return { topic, refund_topic: hexToBytes(topicOfReference(refundReference)) }
}

/** The row of a request. */
export function rowOfRequest(account: Account, request: PaymentRequest): RequestRow {
  return {
    account_id: account.id,
    ...topicsOf(request),
    request_id: hexToBytes(request.requestId),
    salt: hexToBytes(request.salt),
    payment_reference: hexToBytes(request.paymentReference),
    payee: addressToBytes(request.payee),
    amount: formatDecimal(request.amount),
    invoice_currency: request.invoiceCurrency,
    payment_currency: request.paymentCurrency,
    network: request.network,
    reference: request.reference ?? null,
    refund_address: request.refundAddress === undefined ? null : addressToBytes(request.refundAddress),
    created_at: request.createdAt,
    expires_at: request.expiresAt ?? null,
    cancelled_at: request.cancelledAt ?? null,
  }
}

/** The request of a row, and how it stands at a moment. */
export function requestWithBalanceOf(row: BalanceRow, now: Date): RequestWithBalance {
  const request = requestOfRow(row)
  const settled = {
    status: settledStatusOfRank(row.status),
    paidAmount: readStoredDecimal(row.paid),
    pendingAmount: readStoredDecimal(row.pending),
    heldAmount: readStoredDecimal(row.held),
  }
  return { request, balance: balanceAt(request, settled, now.getTime()) }
}

/** The request of a row. */
export function requestOfRow(row: TermsRow): PaymentRequest {
  return {
    requestId: row.request_id.toString('hex'),
    salt: row.salt.toString('hex'),
    paymentReference: bytesToHex(row.payment_reference),
    payee: addressFromBytes(row.payee),
    amount: readStoredDecimal(row.amount),
    invoiceCurrency: row.invoice_currency,
    paymentCurrency: row.payment_currency,
    network: row.network,
    reference: row.reference ?? undefined,
    refundAddress: row.refund_address === null ? undefined : addressFromBytes(row.refund_address),
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    cancelledAt: row.cancelled_at ?? undefined,
  }
}
