import type { Knex } from 'knex'
import { chunksOf } from '../domain/collections.ts'
import { formatDecimal, readStoredDecimal } from '../domain/decimal.ts'
import { hexToBytes } from '../domain/hex.ts'
import { rankOfSettledStatus } from '../domain/payment-request.ts'
import {
  changePayments,
  copyNewPayments,
  deletePayments,
  type LockedAccount,
  logRequests,
  readPaymentsById,
} from './payment-changes.ts'
import type { PaymentRow } from './payment-row.ts'
import { type LedgerRequestRow, type RefundRow, type RequestStanding, settleRequests } from './settle-requests.ts'
import { type RemovedEvent, removedKey, type Superseding, supersedeImports } from './supersede-imports.ts'

/**
 * The ledger of requests: loads their payments and refunds, settles them by `settle-requests.ts`, and stores what changed. Who changes the
 * payments or refunds of a request settles it in the same transaction.
 */

const LEDGER_COLUMNS =
  'request_id, payee, network, allowed_payers, metadata, amount, invoice_currency, status, paid, pending, held, overpaid'

/** Rows in one statement. PostgreSQL takes 65,535 bindings. */
const ROWS_A_STATEMENT = 500

/** Standings in one statement. Of thousands at once, the planner would rather read all requests than look these up, in each statement anew. */
const STANDINGS_A_STATEMENT = 200

/** From so many new rows on, COPY is faster than a statement with their values. */
const ROWS_TO_COPY = 20

/** Requests whose payments are held in memory at once. */
const REQUESTS_A_PAGE = 500

/**
 * Settles the stored ones of some requests, after it has decided which imported payments count beside what detection has found. For writers that are
 * not detection: an import, or the storing of requests.
 *
 * @param written - ids of payments that the transaction has written from lines
 */
export async function settleStored(
  account: LockedAccount,
  requestIds: readonly Buffer[],
  written?: ReadonlySet<string>,
): Promise<void> {
  const { trx, accountId, at: now } = account
  const named = requestIds.map((id) => id.toString('hex'))
  const { requests, payments } = await loadMeeting(trx, accountId, named)
  // New requests nearly always have no payment.
  if (requests.length === 0 || (payments.length === 0 && requests.every(isUntouched))) return
  const stored = new Map(payments.map((row) => [row.id, row]))
  const known = await loadSuperseding(account, requests, payments)
  const { rows, absorbed } = supersedeImports(payments, { ...known, now, ...(written && { written }) })
  await absorbPayments(account, absorbed, stored)
  const ids = requests.map(({ request_id }) => request_id.toString('hex'))
  const refunds = await loadRefunds(trx, accountId, ids)
  const { settled, standings } = settleRequests({ requests, payments: rows, refunds, stored, now })
  await savePayments(account, { rows: settled, stored })
  await saveStandings(account, standings)
}

/**
 * Loads requests with their payments, the other payments of the transactions of those that detection has found, and the requests of these.
 *
 * @param requestIds - hexadecimal digits
 */
export async function loadMeeting(
  trx: Knex,
  accountId: number,
  requestIds: readonly string[],
): Promise<{ readonly requests: readonly LedgerRequestRow[]; readonly payments: readonly PaymentRow[] }> {
  const requests = await loadRequests(trx, accountId, requestIds)
  const own = await loadPayments(trx, accountId, requests)
  const found = own.filter(({ detected }) => detected)
  const hashes = new Set(found.flatMap(({ tx_hash, source_tx_hash }) => [tx_hash, source_tx_hash].map(digitsOf)))
  const known = [...hashes].flatMap((hash) => hash ?? [])
  const sharing = await loadPaymentsOfTransactions(trx, accountId, known)
  const loaded = new Set(requests.map(({ request_id }) => digitsOf(request_id)))
  const others = sharing.flatMap(({ request_id }) => digitsOf(request_id) ?? []).filter((id) => !loaded.has(id))
  const more = await loadRequests(trx, accountId, others)
  const ofMore = await loadPayments(trx, accountId, more)
  const payments = new Map([...own, ...sharing, ...ofMore].map((row) => [row.id, row]))
  return {
    requests: [...requests, ...more].toSorted((a, b) => a.request_id.compare(b.request_id)),
    payments: [...payments.values()],
  }
}

function digitsOf(bytes: Buffer | null): string | undefined {
  return bytes?.toString('hex')
}

/** Loads what decides which imported payments count that meet no event. Asks only where there are such payments. */
export async function loadSuperseding(
  { trx, accountId }: Pick<LockedAccount, 'trx' | 'accountId'>,
  requests: readonly LedgerRequestRow[],
  payments: readonly PaymentRow[],
): Promise<Pick<Superseding, 'followed' | 'removed'>> {
  const asked = payments.filter(({ imported, detected, superseded }) => imported && !detected && !superseded)
  const hashes = asked.flatMap(({ tx_hash }) => tx_hash ?? [])
  const isUnproven = asked.some(({ tx_hash }) => tx_hash === null)
  const networks = new Set(isUnproven ? await trx('chain_state').pluck<string[]>('network') : [])
  const ofFollowed = requests.filter(({ network }) => networks.has(network))
  const removed = hashes.length === 0 ? [] : await findRemoved(trx, accountId, hashes)
  return {
    followed: new Set(ofFollowed.map(({ request_id }) => request_id.toString('hex'))),
    removed: new Set(removed.map(removedKey)),
  }
}

async function findRemoved(trx: Knex, accountId: number, hashes: readonly Buffer[]): Promise<RemovedEvent[]> {
  const { rows } = await trx.raw<{ rows: RemovedEvent[] }>(
    'select network, tx_hash, request_id from removed_events where account_id = ? and tx_hash = any(?)',
    [accountId, [...hashes]],
  )
  return rows
}

/**
 * Deletes the payments of events whose place an imported payment takes. Where such a payment came from may still be to be looked up.
 *
 * @param stored - payments as they are stored, by id
 */
export async function absorbPayments(
  account: LockedAccount,
  absorbed: ReadonlyMap<string, PaymentRow>,
  stored: ReadonlyMap<string, PaymentRow>,
): Promise<void> {
  const gone = [...absorbed].filter(([, { id }]) => stored.has(id))
  if (gone.length === 0) return
  const ids = gone.map(([, { id }]) => id)
  await deletePayments(account, await readPaymentsById(account, ids))
  for (const [id, event] of gone) {
    const ofPayment = (payment_id: string) =>
      account.trx('carried_payments').where({ account_id: account.accountId, payment_id })
    await ofPayment(id).delete()
    await ofPayment(event.id).update({ payment_id: id })
  }
}

/** Gives requests the imported payments that name their reference and no request id. */
export async function claimPayments(account: LockedAccount, requestIds: readonly Buffer[]): Promise<void> {
  const { trx, accountId } = account
  const asked = [accountId, accountId, [...requestIds]]
  const { rows } = await trx.raw<{ rows: { id: string; request_id: Buffer; updated_at: Date }[] }>(FIND_CLAIMED, asked)
  if (rows.length === 0) return
  const ids = rows.map(({ id }) => id)
  const before = await readPaymentsById(account, ids)
  const columns = [ids, rows.map(({ request_id }) => request_id), rows.map(({ updated_at }) => updated_at)]
  await changePayments(account, before, { sql: CLAIM, bindings: [...columns, accountId] })
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
const isUntouched = ({ status, paid, held }: LedgerRequestRow) =>
  status === rankOfSettledStatus('OPEN') && [paid, held].every((sum) => readStoredDecimal(sum).units === 0n)

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
  const ids = [...new Set(requestIds)].map(hexToBytes)
  const rows = await lookup<LedgerRequestRow>(trx, accountId, `${LEDGER_COLUMNS} from requests`, ids)
  return rows.toSorted((a, b) => a.request_id.compare(b.request_id))
}

/** Rows that belong to requests. Each request is looked up; see {@link loadRequests}. */
async function lookup<Row>(trx: Knex, accountId: number, select: string, ids: readonly Buffer[]): Promise<Row[]> {
  if (ids.length === 0) return []
  const { rows } = await trx.raw<{ rows: Row[] }>(
    `select r.* from unnest(?::bytea[]) as asked (id) cross join lateral
       (select ${select} where account_id = ? and request_id = asked.id offset 0) r`,
    [[...ids], accountId],
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

/** Loads all payments of requests. */
export function loadPayments(
  trx: Knex,
  accountId: number,
  requests: readonly Pick<LedgerRequestRow, 'request_id'>[],
): Promise<PaymentRow[]> {
  const ids = requests.map(({ request_id }) => request_id)
  return lookup<PaymentRow>(trx, accountId, '* from payments', ids)
}

/**
 * Loads the payments of transactions, and those that came from them on another chain. Each hash is looked up: of thousands at once, the planner would
 * rather read all payments.
 *
 * @param hashes - hexadecimal digits
 */
export async function loadPaymentsOfTransactions(
  trx: Knex,
  accountId: number,
  hashes: readonly string[],
): Promise<PaymentRow[]> {
  if (hashes.length === 0) return []
  const asked = hashes.map((hash) => Buffer.from(hash, 'hex'))
  const { rows } = await trx.raw<{ rows: PaymentRow[] }>(
    `select p.* from unnest(?::bytea[]) as asked (hash) cross join lateral
       (select * from payments where account_id = ? and tx_hash = asked.hash offset 0) p
     union all
     select p.* from unnest(?::bytea[]) as asked (hash) cross join lateral
       (select * from payments where account_id = ? and source_tx_hash = asked.hash and tx_hash is distinct from asked.hash offset 0) p`,
    [asked, accountId, asked, accountId],
  )
  return rows
}

/**
 * Ids of the requests of payments that detection has found in transactions, or that came from them.
 *
 * @param hashes - hexadecimal digits
 */
export async function findRequestsOfTransactions(
  trx: Knex,
  accountId: number,
  hashes: readonly string[],
): Promise<Buffer[]> {
  const rows = await loadPaymentsOfTransactions(trx, accountId, hashes)
  return rows.flatMap(({ detected, request_id }) => (detected && request_id !== null ? [request_id] : []))
}

/**
 * Loads all refunds of requests.
 *
 * @param requestIds - hexadecimal digits
 */
export function loadRefunds(trx: Knex, accountId: number, requestIds: readonly string[]): Promise<RefundRow[]> {
  return lookup<RefundRow>(trx, accountId, '* from refunds', [...new Set(requestIds)].map(hexToBytes))
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
  for (const some of chunksOf(changed, ROWS_A_STATEMENT)) {
    const values = some.map((row) => ({ ...toInsert(row), changed_at: account.at }))
    const columns = Object.keys(values[0] ?? {}).filter((column) => column !== 'account_id' && column !== 'id')
    const upsert = account.trx('payments').insert(values).onConflict(['account_id', 'id']).merge(columns)
    const ids = some.map(({ id }) => id)
    await changePayments(account, await readPaymentsById(account, ids), upsert.toSQL())
  }
}

/** The row as a binding: lists of JSON columns are text, since pg takes a list for an array. */
function toInsert(row: PaymentRow): Record<string, unknown> {
  return {
    ...row,
    fees: JSON.stringify(row.fees),
    exchange_rates: JSON.stringify(row.exchange_rates),
    refunds: JSON.stringify(row.refunds),
    status_history: JSON.stringify(row.status_history),
  }
}

/** Stores the standings of requests, and logs them. All writers give them in the order of their ids, so that they lock rows in one order. */
export async function saveStandings(account: LockedAccount, standings: readonly RequestStanding[]): Promise<void> {
  const { trx, accountId } = account
  for (const some of chunksOf(standings, STANDINGS_A_STATEMENT)) {
    await trx.raw(SAVE_STANDINGS, [
      some.map(({ requestId }) => requestId),
      some.map(({ status }) => rankOfSettledStatus(status)),
      some.map(({ paidAmount }) => formatDecimal(paidAmount)),
      some.map(({ pendingAmount }) => formatDecimal(pendingAmount)),
      some.map(({ heldAmount }) => formatDecimal(heldAmount)),
      accountId,
    ])
  }
  await logRequests(
    account,
    standings.map(({ requestId }) => requestId),
  )
}

const SAVE_STANDINGS = `
  update requests set status = standing.status, paid = standing.paid, pending = standing.pending, held = standing.held,
    overpaid = standing.held > requests.amount
  from unnest(?::bytea[], ?::smallint[], ?::numeric[], ?::numeric[], ?::numeric[]) as standing(request_id, status, paid, pending, held)
  where requests.account_id = ? and requests.request_id = standing.request_id`
