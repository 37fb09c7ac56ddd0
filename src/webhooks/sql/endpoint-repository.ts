import type { Knex } from 'knex'
import type { Account } from '../../domain/account.ts'
import { inTransaction, runCancellable } from '../../postgres/cancellable.ts'
import { type AuditAction, type AuditEntry, insertAuditEntry } from '../../store/audit-repository.ts'
import type { Delivery, Endpoint, EventKind, PauseReason } from '../rules/endpoint.ts'

export type EndpointRepository = ReturnType<typeof createEndpointRepository>

/** A change of an endpoint for the audit log. */
export interface EndpointChange extends Pick<AuditEntry, 'actor' | 'keyId' | 'at'> {
  readonly action: AuditAction
}

/** What callers may set of an endpoint, and its id. */
type EndpointTerms = Pick<Endpoint, 'id' | 'url' | 'kinds' | 'filter' | 'description'>

/** Columns that a caller's change sets. */
export type EndpointPatch = Partial<
  Pick<EndpointRow, 'url' | 'kinds' | 'filter' | 'description' | 'secret_number' | 'old_secret_until' | 'position'>
> & { readonly pause?: Endpoint['paused'] | null }

interface EndpointRow {
  account_id: number
  id: string
  url: string
  kinds: EventKind[]
  filter: string
  description: string | null
  created_at: Date
  secret_number: number
  old_secret_until: Date | null
  paused_at: Date | null
  pause_reason: PauseReason | null
  generation: number
  position: bigint
  lost_changes: bigint
  ended: bigint
}

/**
 * Creates the repository of endpoints. Callers' changes are scoped to one account, count the generation, and are written to the audit log in the same
 * transaction.
 */
export function createEndpointRepository(knex: Knex) {
  const ofAccount = (account: Account, on: Knex = knex) =>
    on<EndpointRow>('webhook_endpoints').where({ account_id: account.id })

  return {
    /**
     * Stores an endpoint that begins at the newest change.
     *
     * @param refuse - called with the number of the account's endpoints; when it throws, nothing is stored
     */
    insert: (
      account: Account,
      { id, ...terms }: EndpointTerms,
      change: EndpointChange,
      refuse: (count: number) => void,
      signal?: AbortSignal,
    ): Promise<Endpoint> =>
      inTransaction(knex, signal, async (trx) => {
        // Two calls at once would both find a place for the last endpoint.
        await trx('accounts').where({ id: account.id }).forUpdate().first('id')
        refuse((await ofAccount(account, trx).select('id')).length)
        const log = await trx('account_changes').where({ account_id: account.id }).first<{ last_change: bigint }>()
        const row = {
          account_id: account.id,
          id,
          ...terms,
          kinds: [...terms.kinds],
          created_at: change.at,
          position: log?.last_change ?? 0n,
        }
        const [made] = await trx('webhook_endpoints').insert(row).returning<EndpointRow[]>('*')
        await audit(trx, account, id, change)
        return endpointOf(made as EndpointRow)
      }),
    /** In the order of their creation. */
    async list(account: Account, signal?: AbortSignal): Promise<Endpoint[]> {
      const query = ofAccount(account).orderBy(['created_at', 'id'])
      return (await runCancellable(knex, query, signal)).map(endpointOf)
    },
    /** Undefined where the account has no such endpoint. */
    async find(account: Account, id: string, signal?: AbortSignal): Promise<Endpoint | undefined> {
      const [row] = await runCancellable(knex, ofAccount(account).where({ id }), signal)
      return row === undefined ? undefined : endpointOf(row)
    },
    /**
     * Changes an endpoint. Whoever sends to it begins anew.
     *
     * @param patch - given the endpoint as it is
     * @returns undefined where the account has no such endpoint
     */
    update: (
      account: Account,
      id: string,
      patch: (found: Endpoint) => EndpointPatch,
      change: EndpointChange,
      signal?: AbortSignal,
    ): Promise<Endpoint | undefined> =>
      inTransaction(knex, signal, async (trx) => {
        const found = await ofAccount(account, trx).where({ id }).forUpdate().first<EndpointRow>()
        if (found === undefined) return undefined
        const { pause, ...columns } = patch(endpointOf(found))
        const set = {
          ...columns,
          ...(pause !== undefined && { paused_at: pause?.at ?? null, pause_reason: pause?.reason ?? null }),
          generation: found.generation + 1,
        }
        const stored = trx('webhook_endpoints').where({ account_id: account.id, id })
        const [row] = await stored.update(set).returning<EndpointRow[]>('*')
        const parked = trx('parked_deliveries').where({ account_id: account.id, endpoint_id: id })
        // Replayed changes come again, and what was paused starts with its first retry.
        if (columns.position !== undefined) await parked.clone().where('change', '>', String(columns.position)).delete()
        if (pause === null) await parked.whereNotNull('due_at').update({ attempts: 0, due_at: change.at })
        await audit(trx, account, id, change)
        return endpointOf(row as EndpointRow)
      }),
    /** @returns whether the account had it */
    remove: (account: Account, id: string, change: EndpointChange, signal?: AbortSignal): Promise<boolean> =>
      inTransaction(knex, signal, async (trx) => {
        if ((await ofAccount(account, trx).where({ id }).delete()) === 0) return false
        for (const table of ['parked_deliveries', 'ended_deliveries']) {
          await trx(table).where({ account_id: account.id, endpoint_id: id }).delete()
        }
        await audit(trx, account, id, change)
        return true
      }),
    ...readsOf(knex),
    /** The endpoints of some groups of accounts that are not paused. */
    async listActive(groups: readonly number[], of: number, signal?: AbortSignal): Promise<Endpoint[]> {
      const query = knex('webhook_endpoints')
        .whereNull('paused_at')
        .whereRaw('account_id % ? = any(?)', [of, [...groups]])
      return ((await runCancellable(knex, query, signal)) as EndpointRow[]).map(endpointOf)
    },
  }
}

/** What is read beside the endpoints themselves. */
function readsOf(knex: Knex) {
  return {
    /** How many deliveries are parked, by endpoint. */
    async countParked(account: Account, signal?: AbortSignal): Promise<ReadonlyMap<string, number>> {
      const query = knex('parked_deliveries').where({ account_id: account.id }).groupBy('endpoint_id')
      const counts = query.select('endpoint_id').count({ n: '*' })
      const rows = (await runCancellable<unknown>(knex, counts, signal)) as { endpoint_id: string; n: bigint }[]
      return new Map(rows.map(({ endpoint_id, n }) => [endpoint_id, Number(n)]))
    },
    /** The parked deliveries in the order of their next attempt, then the last ones that ended, newest first. */
    async deliveries(account: Account, id: string, limit: number, signal?: AbortSignal): Promise<Delivery[]> {
      const of = { account_id: account.id, endpoint_id: id }
      const parked = knex('parked_deliveries').where(of).orderByRaw('due_at nulls last, change').limit(limit)
      const ended = knex('ended_deliveries').where(of).orderBy('nth', 'desc').limit(limit)
      const rows = [await runCancellable(knex, parked, signal), await runCancellable(knex, ended, signal)]
      return (rows.flat() as DeliveryRow[]).map(deliveryOf).slice(0, limit)
    },
    /**
     * Reads which changes the log has.
     *
     * @returns the highest change that was pruned, and the last one
     */
    async extent(account: Account, signal?: AbortSignal): Promise<{ readonly pruned: bigint; readonly last: bigint }> {
      const query = knex('account_changes').where({ account_id: account.id }).select('pruned_change', 'last_change')
      const [row] = (await runCancellable(knex, query, signal)) as { pruned_change: bigint; last_change: bigint }[]
      return { pruned: row?.pruned_change ?? 0n, last: row?.last_change ?? 0n }
    },
    /** The last change before a moment; undefined where the log has none. */
    async lastBefore(account: Account, moment: Date, signal?: AbortSignal): Promise<bigint | undefined> {
      const query = knex('payment_changes').where({ account_id: account.id }).where('at', '<', moment)
      const [row] = (await runCancellable(knex, query.max({ change: 'change' }), signal)) as { change: bigint | null }[]
      return row?.change ?? undefined
    },
  }
}

function audit(trx: Knex.Transaction, account: Account, webhook: string, change: EndpointChange): Promise<void> {
  return insertAuditEntry(trx, { ...change, account: account.name, details: { webhook } })
}

function endpointOf(row: EndpointRow): Endpoint {
  const { paused_at, pause_reason } = row
  return {
    accountId: row.account_id,
    id: row.id,
    url: row.url,
    kinds: row.kinds,
    filter: row.filter,
    description: row.description ?? undefined,
    createdAt: row.created_at,
    secretNumber: row.secret_number,
    oldSecretUntil: row.old_secret_until ?? undefined,
    paused: paused_at === null || pause_reason === null ? undefined : { at: paused_at, reason: pause_reason },
    generation: row.generation,
    position: row.position,
    lostChanges: row.lost_changes,
    ended: row.ended,
  }
}

/** A row of `parked_deliveries`; one of `ended_deliveries` has no due_at. */
export interface DeliveryRow {
  change: bigint
  changed_at: Date
  kind: EventKind
  subject: string
  attempts: number
  attempted_at: Date | null
  due_at?: Date | null
  status: number | null
  failure: string | null
}

export function deliveryOf(row: DeliveryRow): Delivery {
  const isParked = row.due_at !== undefined
  return {
    change: row.change,
    at: row.changed_at,
    kind: row.kind,
    subject: row.subject,
    attempts: row.attempts,
    attemptedAt: row.attempted_at ?? undefined,
    dueAt: row.due_at ?? undefined,
    status: row.status ?? undefined,
    failure: row.failure ?? undefined,
    state: isParked ? (row.due_at === null ? 'WAITING' : 'RETRYING') : 'DELIVERED',
  }
}
