import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { type Address, addressFromBytes, addressToBytes } from '../../domain/address.ts'
import { formatDecimal, readStoredDecimal } from '../../domain/decimal.ts'
import { bytesToHex, type Hex, hexToBytes } from '../../domain/hex.ts'
import { paymentReferenceOf, topicOfReference } from '../../domain/identifiers.ts'
import {
  balanceAt,
  type PaymentRequest,
  type RequestBalance,
  settledStatusOfRank,
} from '../../domain/payment-request.ts'
import { inTransaction, runCancellable } from '../../postgres/cancellable.ts'
import { copyRows } from '../../postgres/copy-rows.ts'
import { type AuditEntry, insertAuditEntry } from '../../store/audit-repository.ts'
import { lockAccount, logRequests } from '../../store/payment-changes.ts'
import { claimPayments, settleStored } from '../../store/request-ledger.ts'

/** A request, and how it stood when it was read. */
export interface RequestWithBalance {
  readonly request: PaymentRequest
  readonly balance: RequestBalance
}

export type RequestRepository = ReturnType<typeof createRequestRepository>

/** When a request was cancelled. */
export interface CancelledRequest {
  readonly requestId: string
  readonly at: Date
}

/** A request as an update leaves it, and the names of what it changes. */
export interface DecidedUpdate {
  readonly updated: PaymentRequest
  /** `title`, `metadata.order` */
  readonly changed: readonly string[]
}

/** Which request an idempotency key created. */
export interface IdempotencyClaim {
  readonly key: string
  /** Hash of the terms that were sent with it. */
  readonly termsHash: Buffer
  readonly requestId: string
  readonly createdAt: Date
}

/** The columns of `requests` that are written first. Settling writes the others. */
export type RequestRow = ReturnType<typeof rowOfRequest>

/** A row of `requests`, with what settling wrote. */
export interface BalanceRow extends RequestRow {
  status: number
  paid: string
  pending: string
  held: string
}

/** Creates the repository of requests on a database. Every call is scoped to one account. */
export function createRequestRepository(knex: Knex, now = () => new Date()) {
  const rowsOf = (account: Account, on = knex) => on<BalanceRow>('requests').where({ account_id: account.id })
  const withBalance = (row: BalanceRow) => requestWithBalanceOf(row, now())

  async function findById(account: Account, requestId: string, signal?: AbortSignal) {
    const query = rowsOf(account).where({ request_id: hexToBytes(requestId) })
    const [row] = await runCancellable(knex, query, signal)
    return row === undefined ? undefined : withBalance(row)
  }

  return {
    findById,

    /** Stores a request with its topics, unless its id is stored. Returns the stored one. */
    insert: (account: Account, request: PaymentRequest, signal?: AbortSignal): Promise<PaymentRequest> =>
      inTransaction(knex, signal, async (trx) => {
        const made = await trx('requests')
          .insert(rowOfRequest(account, request))
          .onConflict(['account_id', 'request_id'])
          .ignore()
          .returning<StoredKeys[]>(['request_id', 'topic', 'refund_topic'])
        await completeStored(trx, account, made, now())
        const [stored] = await rowsOf(account, trx).where({ request_id: hexToBytes(request.requestId) })
        if (stored === undefined) throw new Error('the conflicting request no longer exists; try again')
        return requestOfRow(stored)
      }),

    /**
     * Stores many requests with their topics in one transaction. A stored id stays as it is; of an id that occurs twice, the first is stored.
     *
     * @returns ids of the new requests, and every request of the batch as it is stored, by id
     */
    insertAll: (account: Account, requests: readonly PaymentRequest[], signal?: AbortSignal) =>
      inTransaction(knex, signal, async (trx) => {
        await trx.raw(CREATE_STAGE)
        const rows = requests.map((request) => rowOfRequest(account, request))
        const [first] = rows
        if (first === undefined) return { inserted: new Set<string>(), stored: new Map<string, PaymentRequest>() }
        const columns = Object.keys(first)
        const staged = rows.map((row, place) => [place, ...Object.values(row)])
        await copyRows(trx, { table: 'staged_requests', columns: ['place', ...columns] }, staged)
        const { rows: made } = await trx.raw<{ rows: RequestRow[] }>(insertNew(columns), [])
        await completeStored(trx, account, made, now())
        const ids = requests.map(({ requestId }) => hexToBytes(requestId))
        const { rows: stored } = await trx.raw<{ rows: RequestRow[] }>(FIND_STORED, [account.id, ids])
        return {
          inserted: new Set(made.map(({ request_id }) => request_id.toString('hex'))),
          stored: new Map(stored.map((row) => [row.request_id.toString('hex'), requestOfRow(row)])),
        }
      }),

    async findByReference(account: Account, reference: Hex, signal?: AbortSignal) {
      const named = rowsOf(account).where({ payment_reference: hexToBytes(reference) })
      const [row] = await runCancellable(knex, named.orderBy('created_at').limit(1), signal)
      return row === undefined ? undefined : withBalance(row)
    },
    /** Those of the requests that are stored, in no order. */
    async findMany(account: Account, requestIds: readonly string[], signal?: AbortSignal) {
      const query = rowsOf(account).whereIn('request_id', requestIds.map(hexToBytes))
      return (await runCancellable(knex, query, signal)).map(withBalance)
    },
    /** Stores when requests were cancelled. Does nothing for one that is cancelled or not stored. */
    cancel: (account: Account, cancelled: readonly CancelledRequest[], signal?: AbortSignal): Promise<void> =>
      inTransaction(knex, signal, async (trx) => {
        const locked = await lockAccount(trx, account.id, now())
        const ids = cancelled.map(({ requestId }) => hexToBytes(requestId))
        const asked = [ids, cancelled.map(({ at }) => at), account.id]
        const { rows } = await trx.raw<{ rows: { request_id: Buffer }[] }>(CANCEL, asked)
        await logRequests(
          locked,
          rows.map(({ request_id }) => request_id),
        )
      }),

    /** {@link applyUpdate} */
    update: (account: Account, requestId: string, update: Updating, signal?: AbortSignal): Promise<void> =>
      inTransaction(knex, signal, (trx) => applyUpdate(trx, account, hexToBytes(requestId), update)),

    /** The claim on an idempotency key; undefined when nobody used the key. */
    findIdempotencyClaim: (account: Account, key: string, signal?: AbortSignal) =>
      inTransaction(knex, signal, (trx) => findClaim(trx, account, key)),
    /** Claims an idempotency key unless it is taken. Returns the claim that holds. */
    claimIdempotencyKey: (account: Account, claim: IdempotencyClaim, signal?: AbortSignal) =>
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

/** How a request is updated, and by whom. */
export interface Updating extends Pick<AuditEntry, 'at' | 'actor' | 'keyId'> {
  /** Decides on the stored request; when it throws, nothing is stored. */
  readonly decide: (stored: PaymentRequest) => DecidedUpdate
}

/** Updates a request and its payments, and logs what changed. An expiry that moves is logged again when it is reached. */
async function applyUpdate(trx: Knex.Transaction, account: Account, id: Buffer, { decide, ...by }: Updating) {
  const locked = await lockAccount(trx, account.id, by.at)
  const stored = trx<BalanceRow>('requests').where({ account_id: account.id, request_id: id })
  const [row] = await stored.clone()
  if (row === undefined) return
  const { updated, changed } = decide(requestOfRow(row))
  if (changed.length === 0) return
  const { title, expires_at, metadata } = rowOfRequest(account, updated)
  const isMoved = row.expires_at?.getTime() !== expires_at?.getTime()
  await stored.clone().update({ title, expires_at, metadata, ...(isMoved && { expiry_logged: false }) })
  await settleStored(locked, [id])
  await logRequests(locked, [id])
  const details = { requestId: updated.requestId, changed }
  await insertAuditEntry(trx, { ...by, action: 'UPDATE_REQUEST', account: account.name, details })
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

type StoredKeys = Pick<RequestRow, 'request_id' | 'topic' | 'refund_topic'>

/**
 * Completes the storing of new requests: stores their topics, gives them the imported payments that name their references, and settles
 * them. It also notes that earlier payments under these topics are still to be attached. Call it with new requests only: the terms of a
 * stored one may bring another salt, whose topics nobody uses.
 *
 * Call it once and last in a transaction. Transactions that store the same requests wait for each other's keys, and must not hold the
 * lock of the account while they wait.
 */
async function completeStored(
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
function rowOfRequest(account: Account, request: PaymentRequest) {
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
    allowed_payers: request.allowedPayers?.join(' ') ?? null,
    created_at: request.createdAt,
    expires_at: request.expiresAt ?? null,
    title: request.title ?? null,
    return_url: request.returnUrl ?? null,
    metadata: request.metadata ?? null,
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
export function requestOfRow(row: RequestRow): PaymentRequest {
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
    allowedPayers: row.allowed_payers?.split(' ') as Address[] | undefined,
    createdAt: row.created_at,
    expiresAt: row.expires_at ?? undefined,
    title: row.title ?? undefined,
    returnUrl: row.return_url ?? undefined,
    metadata: row.metadata ?? undefined,
    cancelledAt: row.cancelled_at ?? undefined,
  }
}

const CREATE_STAGE = `create temporary table staged_requests (like requests including defaults, place int not null) on commit drop`

const insertNew = (columns: readonly string[]) => `
  insert into requests (${columns.join(', ')})
  select ${columns.join(', ')} from staged_requests order by place
  on conflict (account_id, request_id) do nothing
  returning *`

const FIND_STORED = 'select * from requests where account_id = ? and request_id = any(?)'

const CANCEL = `
  update requests set cancelled_at = reported.at
  from unnest(?::bytea[], ?::timestamptz[]) as reported(request_id, at)
  where account_id = ? and requests.request_id = reported.request_id and cancelled_at is null
  returning requests.request_id`
