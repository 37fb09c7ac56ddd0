import type { Knex } from 'knex'
import { inTransaction, runCancellable } from '../../postgres/cancellable.ts'
import { assertLeaseHeld, type Lease } from '../../store/leases-repository.ts'
import type { Attempt, Progress } from '../rules/delivery-window.ts'
import type { DeliveredChange, Delivery, Endpoint, PauseReason } from '../rules/endpoint.ts'
import { type DeliveryRow, deliveryOf } from './endpoint-repository.ts'

export type DeliveryRepository = ReturnType<typeof createDeliveryRepository>

/** What is parked. */
export interface Parked {
  readonly count: number
  /** The next attempt; undefined where nothing is parked. */
  readonly dueAt: Date | undefined
}

/** A caller has changed the endpoint or removed it: whoever sends to it begins anew. */
export class EndpointChangedError extends Error {
  override readonly name = 'EndpointChangedError'
}

/** Ended deliveries that are kept, for each endpoint. */
const ENDED_KEPT = 100

/** Creates the repository of deliveries, for the process that sends to an endpoint. */
export function createDeliveryRepository(knex: Knex) {
  return {
    /** The first parked change of each subject that has any. */
    async parkedSubjects({ accountId, id }: Endpoint, signal?: AbortSignal): Promise<Map<string, bigint>> {
      const query = knex('parked_deliveries')
        .where({ account_id: accountId, endpoint_id: id })
        .groupBy('subject')
        .select('subject')
        .min({ first: 'change' })
      const rows = (await runCancellable(knex, query, signal)) as { subject: string; first: bigint }[]
      return new Map(rows.map(({ subject, first }) => [subject, first]))
    },
    /** @param except - changes whose retry is not stored yet: they count, but their next attempt does not */
    async parked({ accountId, id }: Endpoint, except: readonly bigint[], signal?: AbortSignal): Promise<Parked> {
      const due = knex.raw('min(due_at) filter (where change <> all(?::bigint[])) as due', [except.map(String)])
      const query = knex('parked_deliveries').where({ account_id: accountId, endpoint_id: id })
      const [row] = (await runCancellable(knex, query.count({ n: '*' }).select(due), signal)) as [
        { n: bigint; due: Date | null },
      ]
      return { count: Number(row.n), dueAt: row.due ?? undefined }
    },
    /** Has all parked deliveries tried by a time, or only the first, in an attempt that does not count. */
    async bringForward({ accountId, id }: Endpoint, which: 'FIRST' | 'ALL', at: Date): Promise<void> {
      const of = { account_id: accountId, endpoint_id: id }
      const rows = knex('parked_deliveries').where(of).where('due_at', '>', at)
      if (which === 'ALL') return void (await rows.update({ due_at: at }))
      const first = knex('parked_deliveries').where(of).whereNotNull('due_at').orderBy(['due_at', 'change']).limit(1)
      await rows.whereIn('change', first.select('change')).update({ due_at: at, attempts: knex.raw('attempts - 1') })
    },
    /** Parked deliveries that are due, the longest due first. */
    async due(
      { accountId, id }: Endpoint,
      now: Date,
      { limit, except }: { readonly limit: number; readonly except: readonly bigint[] },
      signal?: AbortSignal,
    ): Promise<Delivery[]> {
      const query = knex('parked_deliveries')
        .where({ account_id: accountId, endpoint_id: id })
        .where('due_at', '<=', now)
        .whereNotIn('change', except.map(String))
        .orderBy(['due_at', 'change'])
        .limit(limit)
      return ((await runCancellable(knex, query, signal)) as DeliveryRow[]).map(deliveryOf)
    },
    /**
     * Stores what has happened, in one transaction that holds the lease.
     *
     * @throws EndpointChangedError, LeaseLostError; then nothing is stored
     */
    save: (lease: Lease, endpoint: Endpoint, progress: Progress, now: Date, signal?: AbortSignal): Promise<void> =>
      inTransaction(knex, signal, async (trx) => {
        await assertLeaseHeld(trx, lease)
        const ended = await moveOn(trx, endpoint, progress)
        const of = { account_id: endpoint.accountId, endpoint_id: endpoint.id }
        const { delivered, failed, behind, unparked } = progress
        if (unparked.length > 0) {
          const rows = trx('parked_deliveries').where(of)
          await rows
            .whereIn(
              'change',
              unparked.map(({ change }) => String(change)),
            )
            .delete()
        }
        if (failed.length > 0) {
          const rows = failed.map((each) => ({ ...of, ...rowOf(each), ...attemptOf(each), due_at: each.dueAt }))
          const parked = trx('parked_deliveries').insert(rows).onConflict(['account_id', 'endpoint_id', 'change'])
          await parked.merge(['attempts', 'attempted_at', 'due_at', 'status', 'failure'])
        }
        if (behind.length > 0) {
          const rows = behind.map((each) => ({ ...of, ...rowOf(each) }))
          await trx('parked_deliveries').insert(rows).onConflict(['account_id', 'endpoint_id', 'change']).ignore()
        }
        const subjects = [...new Set([...unparked, ...behind].map(({ subject }) => subject))]
        if (subjects.length > 0) await trx.raw(PROMOTE, { ...ofEndpoint(endpoint), subjects, now })
        await keepEnded(trx, of, ended - BigInt(delivered.length), delivered)
      }),
    /** Pauses an endpoint that was not changed meanwhile. @returns whether it did */
    async pause({ accountId, id, generation }: Endpoint, reason: PauseReason, at: Date): Promise<boolean> {
      const set = { paused_at: at, pause_reason: reason, generation: generation + 1 }
      return (await knex('webhook_endpoints').where({ account_id: accountId, id, generation }).update(set)) === 1
    },
  }
}

/** @returns how many deliveries have ended by now */
async function moveOn(trx: Knex.Transaction, endpoint: Endpoint, progress: Progress): Promise<bigint> {
  const { rows } = await trx.raw<{ rows: { ended: bigint }[] }>(
    `update webhook_endpoints set position = :position, lost_changes = lost_changes + :lost, ended = ended + :ended
     where account_id = :accountId and id = :endpointId and generation = :generation returning ended`,
    {
      ...ofEndpoint(endpoint),
      generation: endpoint.generation,
      position: String(progress.position),
      lost: String(progress.lostChanges),
      ended: progress.delivered.length,
    },
  )
  const [row] = rows
  if (row === undefined) throw new EndpointChangedError(`the endpoint ${endpoint.id} was changed`)
  return row.ended
}

async function keepEnded(
  trx: Knex.Transaction,
  of: { account_id: number; endpoint_id: string },
  before: bigint,
  delivered: readonly Attempt[],
): Promise<void> {
  const rows = delivered.map((each, index) => {
    const nth = before + BigInt(index)
    return { ...of, ...rowOf(each), ...attemptOf(each), nth: String(nth), slot: Number(nth % BigInt(ENDED_KEPT)) }
  })
  if (rows.length === 0) return
  const insert = trx('ended_deliveries').insert(rows.slice(-ENDED_KEPT))
  await insert.onConflict(['account_id', 'endpoint_id', 'slot']).merge()
}

const ofEndpoint = ({ accountId, id }: Endpoint) => ({ accountId, endpointId: id })

function rowOf({ change, at, kind, subject }: DeliveredChange) {
  return { change: String(change), changed_at: at, kind, subject }
}

function attemptOf({ attempts, attemptedAt, outcome }: Attempt) {
  const { status = null, failure = null } = outcome
  return { attempts, attempted_at: attemptedAt, status, failure }
}

/** The next delivery of each subject is due at once. */
const PROMOTE = `
  update parked_deliveries set due_at = :now
  where account_id = :accountId and endpoint_id = :endpointId and due_at is null and change in (
    select min(change) from parked_deliveries
    where account_id = :accountId and endpoint_id = :endpointId and subject = any(:subjects) group by subject)`
