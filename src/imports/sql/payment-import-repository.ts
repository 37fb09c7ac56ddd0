import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { addressToBytes } from '../../domain/address.ts'
import { hexToBytes } from '../../domain/hex.ts'
import type { Payment } from '../../domain/payment.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { classifyDatabaseError } from '../../postgres/database-error.ts'
import {
  copyPaymentTexts,
  type LockedAccount,
  lockAccount,
  logArrivals,
  nameRequestOfRow,
  readPaymentsById,
  replacePayments,
} from '../../store/payment-changes.ts'
import { findRequestsOfTransactions, settleStored } from '../../store/request-ledger.ts'
import type { Outcome } from '../lines/import-lines.ts'
import { eventOf, splitRounds } from '../lines/import-rounds.ts'
import type { LinePayment } from '../lines/payment-batch.ts'

/** Outcomes by the payment's index in the batch. */
type Outcomes = Map<number, Outcome>

/** An attempt fails when another process stores the same event or id at the same moment. */
const MAX_ATTEMPTS = 5

const UNCHANGED: Outcome = { kind: 'unchanged' }
const WRITTEN: Outcome = { kind: 'written' }

/** Stores imported payments. */
export function createPaymentImportRepository(knex: Knex, now: () => Date) {
  const attempt = (account: Account, batch: readonly LinePayment[], rounds: readonly (readonly number[])[]) =>
    inTransaction(knex, undefined, async (trx) => {
      const outcomes: Outcomes = new Map()
      const touched = new Set<string>()
      let locked: LockedAccount | undefined
      for (const [nth, places] of rounds.entries()) {
        // Locked only before the first write, so that unchanged payments wait for nobody. Others may have written until then.
        if (locked === undefined && (await findDue(trx, account, batch, places)).length === 0) continue
        locked ??= await lockAccount(trx, account.id, now())
        const due = await findDue(trx, account, batch, places)
        const toCome = rounds.length === batch.length ? NOBODY : idsOfRounds(batch, rounds.slice(nth))
        const free = await leaveOutClashes(trx, account, { batch, due, outcomes, toCome })
        const of = (isNew: boolean) =>
          free.filter((each) => each.isNew === isNew).map(({ place }) => batch[place] as LinePayment)
        for (const id of await store(locked, { added: of(true), replaced: of(false) })) touched.add(id)
        for (const { place } of free) outcomes.set(place, WRITTEN)
      }
      const written = batch.filter((_, place) => outcomes.get(place) === WRITTEN)
      if (locked !== undefined) {
        await settleStored(locked, [...touched].map(hexToBytes), new Set(written.map(({ id }) => id)))
      }
      return batch.map((_, place) => outcomes.get(place) ?? UNCHANGED)
    })

  const insert = (account: Account, batch: readonly LinePayment[]) =>
    inTransaction(knex, undefined, async (trx) => {
      const locked = await lockAccount(trx, account.id, now())
      const touched = await store(locked, { added: batch, replaced: [] })
      await settleStored(locked, touched.map(hexToBytes), new Set(batch.map(({ id }) => id)))
      return batch.map(() => WRITTEN)
    })

  return {
    /**
     * Stores a batch in one transaction, with the result of storing its payments one after the other.
     *
     * A payment with a new id is inserted. A payment with a stored id replaces the stored one if its `updatedAt` is later than that of its line, unless the stored
     * one was detected on chain, which has precedence. An event belongs to one payment: another id with the same event is refused. A payment
     * without a request id gets that of the stored request with its payment reference. The named requests are settled in the same transaction.
     *
     * @param seemNew - no id of the batch seems to be stored. Then nothing is compared before ids or events prove to be taken
     * @returns one outcome a payment, in their order
     */
    async write(account: Account, batch: readonly LinePayment[], seemNew = false): Promise<readonly Outcome[]> {
      let rounds = splitRounds(batch)
      let isInserted = seemNew && rounds.length === 1
      for (let attempts = 1; ; attempts++) {
        try {
          return await (isInserted ? insert(account, batch) : attempt(account, batch, rounds))
        } catch (error) {
          if (error instanceof OrderMattersError) {
            rounds = batch.map((_, place) => [place])
            continue
          }
          const kind = classifyDatabaseError(error)
          if (attempts >= MAX_ATTEMPTS || (kind !== 'unique' && kind !== 'serialization')) throw error
          isInserted = false
        }
      }
    },
  }
}

/** A payment has the event of another, which may give it up later in the batch: then payments must be stored one by one. */
class OrderMattersError extends Error {
  override readonly name = 'OrderMattersError'
}

const NOBODY: ReadonlySet<string> = new Set()

function idsOfRounds(batch: readonly LinePayment[], rounds: readonly (readonly number[])[]): ReadonlySet<string> {
  return new Set(rounds.flatMap((places) => places.map((place) => (batch[place] as LinePayment).id)))
}

/** A payment that may change something. */
interface Due {
  readonly place: number
  /** Whether its id is not stored yet. */
  readonly isNew: boolean
  /** Whether it is to be written: it is new, or it was updated later than the stored one. Its event may still belong to another payment. */
  readonly isWanted: boolean
}

/**
 * The payments that are not stored, were updated later, or are stored with another event. The others change nothing, which the keys alone
 * show.
 */
async function findDue(
  trx: Knex,
  account: Account,
  batch: readonly LinePayment[],
  places: readonly number[],
): Promise<Due[]> {
  const payments = places.map((place) => batch[place] as LinePayment)
  const hashes = payments.map(({ txHash, eventIndex }) => (eventIndex === undefined ? undefined : txHash?.slice(2)))
  const { rows } = await trx.raw<{ rows: { nth: bigint; is_new: boolean; is_wanted: boolean }[] }>(FIND_DUE, [
    arrayText(payments.map(({ id }) => id)),
    arrayText(payments.map(({ updatedAt }) => updatedAt.toISOString())),
    arrayText(hashes),
    arrayText(payments.map(({ eventIndex }) => eventIndex)),
    arrayText(payments.map(({ network }) => network)),
    account.id,
  ])
  return rows.map(({ nth, is_new: isNew, is_wanted: isWanted }) => ({
    place: places[Number(nth) - 1] as number,
    isNew,
    isWanted,
  }))
}

/**
 * Whether a line is later than that of the stored row. Settling moves a row's `updated_at`, which must not keep a line out; a line with exactly that
 * time is an export of the row.
 */
const IS_LATER = '(coalesce(p.line_updated_at, p.updated_at) < k.updated_at and p.updated_at <> k.updated_at)'

/** `offset 0` keeps the planner from reading all payments of the account: each row is looked up by its key. */
const FIND_DUE = `
  select k.nth, p.id is null as is_new, p.id is null or (${IS_LATER} and not p.detected) as is_wanted
  from unnest(?::uuid[], ?::timestamptz[], ?::text[], ?::int[], ?::text[])
    with ordinality as k(id, updated_at, tx_hash, event_index, network, nth)
  left join lateral (select * from payments where account_id = ? and id = k.id offset 0) p on true
  where p.id is null
    or (${IS_LATER} and not p.detected)
    or (k.tx_hash is not null and
      (p.tx_hash, p.event_index, p.network) is distinct from (decode(k.tx_hash, 'hex'), k.event_index, k.network))
  order by k.nth`

/** The text of an array. Ids, times, hashes, numbers and network names have no character that needs quoting. */
function arrayText(values: readonly (string | number | undefined)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}

interface Checking {
  readonly batch: readonly LinePayment[]
  readonly due: readonly Due[]
  /** Receives the outcomes of payments whose event belongs to another. */
  readonly outcomes: Outcomes
  /** Ids in this or later rounds, which may still move to other events. */
  readonly toCome: ReadonlySet<string>
}

/** @returns the payments to write, without those whose event belongs to another payment */
async function leaveOutClashes(
  trx: Knex,
  account: Account,
  { batch, due, outcomes, toCome }: Checking,
): Promise<readonly Due[]> {
  const withEvent = due.filter(({ place }) => eventOf(batch[place] as LinePayment) !== undefined)
  const payments = withEvent.map(({ place }) => batch[place] as LinePayment)
  const clashes = await findClashes(trx, account, payments)
  if ([...clashes.values()].some((id) => toCome.has(id))) throw new OrderMattersError()
  const places = new Map([...clashes].map(([nth, id]) => [withEvent[nth]?.place, id]))
  return due.filter(({ place, isWanted }) => {
    const id = places.get(place)
    if (id === undefined) return isWanted
    const { txHash = '', eventIndex = 0, network } = batch[place] as LinePayment
    outcomes.set(place, { kind: 'bad', error: waybillError('EVENT_TAKEN', { txHash, eventIndex, network, value: id }) })
    return false
  })
}

/** @returns by the index of a payment, the id of the other payment that has its event */
async function findClashes(
  trx: Knex,
  account: Account,
  payments: readonly LinePayment[],
): Promise<ReadonlyMap<number, string>> {
  if (payments.length === 0) return new Map()
  const { rows } = await trx.raw<{ rows: { nth: bigint; id: string }[] }>(FIND_CLASHES, [
    arrayText(payments.map(({ id }) => id)),
    arrayText(payments.map(({ txHash }) => txHash?.slice(2))),
    arrayText(payments.map(({ eventIndex }) => eventIndex)),
    arrayText(payments.map(({ network }) => network)),
    account.id,
  ])
  return new Map(rows.map(({ nth, id }) => [Number(nth) - 1, id]))
}

/** The network is compared outside the lookup: on a new table without statistics the planner would prefer the index of networks. */
const FIND_CLASHES = `
  select k.nth, p.id
  from unnest(?::uuid[], ?::text[], ?::int[], ?::text[]) with ordinality as k(id, tx_hash, event_index, network, nth)
  cross join lateral (
    select id, network from payments
    where account_id = ? and tx_hash = decode(k.tx_hash, 'hex') and event_index = k.event_index offset 0) p
  where p.network = k.network and p.id <> k.id`

/**
 * Writes payments, in the place of the stored rows with their ids.
 *
 * @returns ids of the requests that the payments name, or that the replaced rows named
 */
async function store(
  account: LockedAccount,
  { added, replaced }: { readonly added: readonly LinePayment[]; readonly replaced: readonly LinePayment[] },
): Promise<readonly string[]> {
  const { trx, accountId } = account
  const payments = [...added, ...replaced]
  if (payments.length === 0) return []
  const ids = replaced.map(({ id }) => id)
  const before = await readPaymentsById(account, ids)
  const hasRequests = await hasAnyRequest(trx, accountId)
  const named = hasRequests ? await nameRequests(trx, accountId, payments) : payments
  const rows = named.map(({ row }) => row)
  await replacePayments(account, before, () => copyPaymentTexts(account, rows))
  const arrivals = added.map(({ counted }) => counted)
  await logArrivals(account, arrivals)
  if (!hasRequests) return []
  const found = await findRequestsOfTransactions(trx, accountId, payments.flatMap(hashesOf))
  return [
    ...named.flatMap(({ requestId }) => requestId ?? []),
    ...[...before.values()].flatMap(({ request_id }) => request_id?.toString('hex') ?? []),
    ...found.map((id) => id.toString('hex')),
  ]
}

/** The digits of the transactions of a payment that names a reference: detection may have found it. */
function hashesOf({ paymentReference, txHash, sourceTxHash }: LinePayment): string[] {
  if (paymentReference === undefined) return []
  return [txHash, sourceTxHash].flatMap((hash) => hash?.slice(2) ?? [])
}

/** Gives payments without a request id that of the stored request with their payment reference. */
async function nameRequests(
  trx: Knex,
  accountId: number,
  payments: readonly LinePayment[],
): Promise<readonly LinePayment[]> {
  const isUnnamed = ({ requestId, paymentReference }: LinePayment) =>
    requestId === undefined && paymentReference !== undefined
  const unnamed = payments.filter(isUnnamed)
  const names = await findNames(trx, accountId, unnamed)
  const nameOf = new Map(unnamed.map(({ id }, nth) => [id, names.get(nth)]))
  return payments.map((payment) => {
    const requestId = nameOf.get(payment.id)
    return requestId === undefined ? payment : { ...payment, requestId, row: nameRequestOfRow(payment.row, requestId) }
  })
}

/** Whether an account has requests. Many have none; this saves them the other queries on requests. */
async function hasAnyRequest(trx: Knex, accountId: number): Promise<boolean> {
  const { rows } = await trx.raw<{ rows: unknown[] }>('select 1 from requests where account_id = ? limit 1', [
    accountId,
  ])
  return rows.length > 0
}

/**
 * Finds the stored requests of payments that have a payment reference and no request id.
 *
 * @returns request ids by the payment's index in the list
 */
async function findNames(
  trx: Knex,
  accountId: number,
  unnamed: readonly Pick<Payment, 'paymentReference' | 'network' | 'payee'>[],
): Promise<ReadonlyMap<number, string>> {
  if (unnamed.length === 0) return new Map()
  const bindings: unknown[] = [
    unnamed.map(({ paymentReference }) => hexToBytes(paymentReference ?? '')),
    unnamed.map(({ network }) => network),
    unnamed.map(({ payee }) => (payee === undefined ? null : addressToBytes(payee))),
    accountId,
  ]
  const found = await trx.raw<{ rows: { nth: bigint; request_id: Buffer }[] }>(
    FIND_NAMES,
    bindings as Knex.RawBinding[],
  )
  return new Map(found.rows.map(({ nth, request_id: id }) => [Number(nth) - 1, id.toString('hex')]))
}

/** The rules by which an event counts for a request, as far as a payment has their fields. Of several requests the oldest counts. */
const FIND_NAMES = `
  select k.nth, r.request_id
  from unnest(?::bytea[], ?::text[], ?::bytea[]) with ordinality as k(payment_reference, network, payee, nth)
  cross join lateral (
    select request_id from requests
    where account_id = ? and payment_reference = k.payment_reference and network = k.network
      and (k.payee is null or payee = k.payee)
    order by created_at, request_id limit 1) r`
