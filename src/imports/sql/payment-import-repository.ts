import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import type { Payment } from '../../domain/payment.ts'
import { waybillError } from '../../errors/waybill-error.ts'
import { inTransaction } from '../../postgres/cancellable.ts'
import { copyText } from '../../postgres/copy-rows.ts'
import { classifyDatabaseError } from '../../postgres/database-error.ts'
import { changePayments, insertPayments, type LockedAccount, lockAccount } from '../../store/payment-changes.ts'
import { encodePaymentRow } from '../../store/payment-copy.ts'
import { paymentColumns } from '../../store/payment-row.ts'
import { settleStored } from '../../store/request-ledger.ts'
import type { Outcome } from '../import-lines.ts'
import { splitRounds } from '../import-rounds.ts'
import { type LinePayment, originOf } from '../new-payments.ts'

/** Outcomes by the payment's index in the batch. */
type Outcomes = Map<number, Outcome>

/** Stores imported payments. */
export interface PaymentImportRepository {
  /**
   * Stores a batch in one transaction, with the result of storing its payments one after the other.
   *
   * A payment with a new id is inserted. A payment with a stored id replaces the stored one if its `updatedAt` is later, unless the stored
   * one was detected on chain, which has precedence. An event belongs to one payment: another id with the same event is refused. A payment
   * without a request id gets that of the stored request with its payment reference. The named requests are settled in the same transaction.
   *
   * @returns one outcome a payment, in their order
   */
  write(account: Account, batch: readonly LinePayment[]): Promise<readonly Outcome[]>
}

/** An attempt fails when another process stores the same event or id at the same moment. */
const MAX_ATTEMPTS = 5

const UNCHANGED: Outcome = { kind: 'unchanged' }
const WRITTEN: Outcome = { kind: 'written' }

export function createPaymentImportRepository(knex: Knex, now: () => Date): PaymentImportRepository {
  const attempt = (account: Account, batch: readonly LinePayment[], rounds: readonly (readonly number[])[]) =>
    inTransaction(knex, undefined, async (trx) => {
      const outcomes: Outcomes = new Map()
      const touched = new Map<string, Buffer>()
      let locked: LockedAccount | undefined
      for (const [nth, places] of rounds.entries()) {
        const due = await findDue(trx, account, batch, places)
        if (due.length === 0) continue
        const isFirst = locked === undefined
        // Locked only before the first write, so that unchanged payments wait for nobody.
        locked ??= await lockAccount(trx, account.id, now())
        await stage(trx, account, { batch, due, isFirst })
        for (const id of await findTouchedRequests(locked, batch, due)) touched.set(id.toString('hex'), id)
        const toCome = rounds.length === batch.length ? NOBODY : idsOfRounds(batch, rounds.slice(nth))
        await merge(locked, { batch, due, outcomes, toCome })
      }
      if (locked !== undefined) await settleStored(locked, [...touched.values()])
      return batch.map((_, place) => outcomes.get(place) ?? UNCHANGED)
    })

  return {
    async write(account, batch) {
      let rounds = splitRounds(batch)
      for (let attempts = 1; ; attempts++) {
        try {
          return await attempt(account, batch, rounds)
        } catch (error) {
          if (error instanceof OrderMattersError) {
            rounds = batch.map((_, place) => [place])
            continue
          }
          const kind = classifyDatabaseError(error)
          if (attempts >= MAX_ATTEMPTS || (kind !== 'unique' && kind !== 'serialization')) throw error
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
  const { rows } = await trx.raw<{ rows: { nth: bigint; is_new: boolean }[] }>(FIND_DUE, [
    arrayText(payments.map(({ id }) => id)),
    arrayText(payments.map(({ updatedAt }) => updatedAt.toISOString())),
    arrayText(hashes),
    arrayText(payments.map(({ eventIndex }) => eventIndex)),
    arrayText(payments.map(({ network }) => network)),
    account.id,
  ])
  return rows.map(({ nth, is_new: isNew }) => ({ place: places[Number(nth) - 1] as number, isNew }))
}

/** `offset 0` keeps the planner from reading all payments of the account: each row is looked up by its key. */
const FIND_DUE = `
  select k.nth, p.id is null as is_new
  from unnest(?::uuid[], ?::timestamptz[], ?::text[], ?::int[], ?::text[])
    with ordinality as k(id, updated_at, tx_hash, event_index, network, nth)
  left join lateral (select * from payments where account_id = ? and id = k.id offset 0) p on true
  where p.id is null
    or (p.updated_at < k.updated_at and not p.detected)
    or (k.tx_hash is not null and
      (p.tx_hash, p.event_index, p.network) is distinct from (decode(k.tx_hash, 'hex'), k.event_index, k.network))
  order by k.nth`

/** The text of an array. Ids, times, hashes, numbers and network names have no character that needs quoting. */
function arrayText(values: readonly (string | number | undefined)[]): string {
  return `{${values.map((value) => value ?? 'NULL').join(',')}}`
}

interface Staging {
  readonly batch: readonly LinePayment[]
  readonly due: readonly Due[]
  readonly isFirst: boolean
}

/** The table is dropped with the transaction, because a pooler gives the session to others afterwards. */
async function stage(trx: Knex.Transaction, account: Account, { batch, due, isFirst }: Staging): Promise<void> {
  await trx.raw(isFirst ? CREATE_STAGE : EMPTY_STAGE)
  const rowOf = ({ place }: Due): string => {
    const payment = batch[place] as LinePayment
    return `${place}\t${encodePaymentRow(payment, originOf(account.id, payment))}`
  }
  const target = { table: 'staged_payments', columns: ['place', ...paymentColumns] }
  await copyText(trx, target, [Buffer.from(due.map(rowOf).join(''))])
  await trx.raw(NAME_REQUESTS, [account.id])
}

const CREATE_STAGE = `create temporary table staged_payments (like payments, place int not null) on commit drop`
const EMPTY_STAGE = `delete from staged_payments`

/** The rules by which an event counts for a request, as far as a payment has their fields. Of several requests the oldest counts. */
const NAME_REQUESTS = `
  update staged_payments s set request_id = (
    select r.request_id from requests r
    where r.account_id = ? and r.payment_reference = s.payment_reference and r.network = s.network
      and (s.payee is null or r.payee = s.payee)
    order by r.created_at, r.request_id limit 1)
  where s.request_id is null and s.payment_reference is not null`

/** The stored requests of staged payments and of the rows that they replace. */
async function findTouchedRequests(
  { trx, accountId }: LockedAccount,
  batch: readonly LinePayment[],
  due: readonly Due[],
): Promise<Buffer[]> {
  const replaced = arrayText(due.filter(({ isNew }) => !isNew).map(({ place }) => (batch[place] as LinePayment).id))
  const bindings = [replaced, accountId, accountId, accountId]
  const { rows } = await trx.raw<{ rows: { request_id: Buffer }[] }>(FIND_TOUCHED, bindings)
  return rows.map(({ request_id }) => request_id)
}

/** The last condition makes the query cheap for the many accounts that have no requests. */
const FIND_TOUCHED = `
  select r.request_id from (
    select request_id from staged_payments where request_id is not null
    union select p.request_id from unnest(?::uuid[]) as replaced(id)
    cross join lateral (select request_id from payments where account_id = ? and id = replaced.id offset 0) p
    where p.request_id is not null
  ) named
  cross join lateral (select request_id from requests where account_id = ? and request_id = named.request_id offset 0) r
  where exists (select from requests where account_id = ?)`

interface Merging {
  readonly batch: readonly LinePayment[]
  readonly due: readonly Due[]
  /** Receives the outcomes. */
  readonly outcomes: Outcomes
  /** Ids in this or later rounds, which may still move to other events. */
  readonly toCome: ReadonlySet<string>
}

/** Writes the staged payments into `payments`, except those whose event belongs to another payment. */
async function merge(account: LockedAccount, { batch, due, outcomes, toCome }: Merging): Promise<void> {
  const { trx, accountId } = account
  const placeOf = new Map(due.map(({ place }) => [(batch[place] as LinePayment).id, place]))
  const idsOf = (some: readonly Due[]) => arrayText(some.map(({ place }) => (batch[place] as LinePayment).id))
  const setWritten = (ids: readonly string[]) => {
    for (const id of ids) outcomes.set(placeOf.get(id) as number, WRITTEN)
  }
  const takeClashes = async () => {
    const { rows } = await trx.raw<{ rows: { place: number; id: string }[] }>(TAKE_CLASHES, [accountId, accountId])
    if (rows.some(({ id }) => toCome.has(id))) throw new OrderMattersError()
    for (const { place, id } of rows)
      outcomes.set(place, { kind: 'bad', error: eventTaken(batch[place] as LinePayment, id) })
  }
  const update = async (some: readonly Due[]) => {
    if (some.length === 0) return
    setWritten(await changePayments(account, { sql: UPDATE_STORED, bindings: [accountId, idsOf(some)] }))
  }

  await takeClashes()
  await update(due.filter(({ isNew }) => !isNew))
  const fresh = idsOf(due.filter(({ isNew }) => isNew))
  setWritten(await insertPayments(account, { sql: INSERT_NEW, bindings: [accountId, fresh] }))
  const left = due.filter(({ isNew, place }) => isNew && !outcomes.has(place))
  if (left.length === 0) return
  // Another process stored these ids or events before this transaction took the lock.
  await takeClashes()
  await update(left)
}

/** The network is compared outside the look-up: on a new table without statistics the planner would prefer the index of networks. */
const TAKE_CLASHES = `
  with clashes as materialized (
    select s.place, p.id from staged_payments s
    cross join lateral (
      select id, network from payments
      where account_id = ? and tx_hash = s.tx_hash and event_index = s.event_index offset 0) p
    where p.network = s.network and p.id <> s.id
  ), taken as (
    delete from staged_payments s using clashes where s.account_id = ? and s.place = clashes.place
  )
  select place, id from clashes`

const replaced = paymentColumns.filter((column) => column !== 'account_id' && column !== 'id')

const UPDATE_STORED = `
  update payments set (${replaced.join(', ')}) = (${replaced.map((column) => `s.${column}`).join(', ')})
  from staged_payments s
  where payments.account_id = ? and payments.id = any(?::uuid[]) and payments.id = s.id
    and payments.updated_at < s.updated_at and not payments.detected`

const INSERT_NEW = `
  insert into payments (${paymentColumns.join(', ')})
  select ${paymentColumns.map((column) => `s.${column}`).join(', ')} from staged_payments s
  where s.account_id = ? and s.id = any(?::uuid[])
  order by s.place
  on conflict do nothing`

function eventTaken({ txHash, eventIndex = 0, network }: Payment, id: string) {
  return waybillError('EVENT_TAKEN', { txHash: txHash ?? '', eventIndex, network, value: id })
}
