import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { isLogDue } from '../../domain/logger.ts'
import { kindOf, WaybillError } from '../../errors/waybill-error.ts'
import { LeaseLostError } from '../../store/leases-repository.ts'
import type { Endpoint } from '../rules/endpoint.ts'
import { GROUPS } from '../rules/share-groups.ts'
import { EndpointChangedError } from '../sql/delivery-repository.ts'
import type { EndpointRepository } from '../sql/endpoint-repository.ts'
import { groupLease, holdGroups, LEASE_MS, releaseGroups } from '../sql/group-leases.ts'
import { createSlots } from './delivery-slots.ts'
import { sendToEndpoint, type WorkerOptions } from './endpoint-worker.ts'

export interface SenderOptions extends Omit<WorkerOptions, 'slots'> {
  readonly knex: Knex
  readonly endpoints: Pick<EndpointRepository, 'listActive'>
}

export type Sender = ReturnType<typeof createSender>

interface Running {
  readonly endpoint: Endpoint
  readonly stopping: AbortController
  readonly done: Promise<void>
}

/** So long before its leases end, a process that cannot renew them stops sending. */
const SAFETY_MS = 1_000

/** Creates what sends for the endpoints of this process's share of the accounts. */
export function createSender(options: SenderOptions) {
  const { knex, endpoints, deliveries, logger, now } = options
  const owner = randomUUID()
  const slots = createSlots()
  const running = new Map<string, Running>()
  let deadline: NodeJS.Timeout | undefined
  let loggedAtMs: number | undefined

  function start(endpoint: Endpoint): void {
    const stopping = new AbortController()
    const lease = groupLease(groupOf(endpoint), owner)
    const done = sendToEndpoint({ ...options, slots }, endpoint, lease, stopping.signal)
      .catch((error: unknown) => explainEnd(endpoint, error, stopping.signal))
      .finally(() => running.delete(endpoint.id))
    running.set(endpoint.id, { endpoint, stopping, done })
  }

  /** The next round starts it again, unless it is paused. */
  async function explainEnd(endpoint: Endpoint, error: unknown, signal: AbortSignal): Promise<void> {
    if (signal.aborted || error instanceof EndpointChangedError || error instanceof LeaseLostError) return
    if (error instanceof WaybillError && kindOf(error.reason) === 'INVALID_INPUT') {
      await deliveries.pause(endpoint, 'INVALID_FILTER', now())
      logger.warn({ webhook: endpoint.id, err: error }, 'a webhook is paused: its filter is no longer valid')
      return
    }
    if (!isLogDue(loggedAtMs, performance.now())) return
    loggedAtMs = performance.now()
    logger.warn({ webhook: endpoint.id, err: error }, 'sending webhooks failed; trying again')
  }

  async function stopAll(): Promise<void> {
    const stopped = [...running.values()]
    for (const { stopping } of stopped) stopping.abort(new Error('the process no longer sends for this account'))
    await Promise.all(stopped.map(({ done }) => done))
  }

  return {
    /** Renews this process's share, and starts and stops what has changed. Call it every two seconds. */
    async round(signal?: AbortSignal): Promise<void> {
      const startedMs = performance.now()
      const groups = await holdGroups(knex, owner)
      clearTimeout(deadline)
      deadline = setTimeout(() => void stopAll(), LEASE_MS - SAFETY_MS - (performance.now() - startedMs))
      deadline.unref()
      const active = new Map((await endpoints.listActive(groups, GROUPS, signal)).map((each) => [each.id, each]))
      for (const { endpoint, stopping } of running.values()) {
        if (active.get(endpoint.id)?.generation === endpoint.generation) continue
        stopping.abort(new Error('the endpoint was changed, paused or given to another process'))
      }
      // One that is stopping starts again in the next round: two would send at once.
      if (signal?.aborted !== true) for (const [id, endpoint] of active) if (!running.has(id)) start(endpoint)
    },
    /** The accounts for which it sends changes of requests, with the time of their first such endpoint. */
    accountsWithRequests(): ReadonlyMap<number, Date> {
      const since = new Map<number, Date>()
      for (const { endpoint } of running.values()) {
        const { accountId, kinds, createdAt } = endpoint
        const known = since.get(accountId)
        if (kinds.includes('request.updated') && (known === undefined || createdAt < known))
          since.set(accountId, createdAt)
      }
      return since
    },
    /** Stops, and leaves the endpoints to others. */
    async end(): Promise<void> {
      clearTimeout(deadline)
      await stopAll()
      await releaseGroups(knex, owner)
    },
  }
}

const groupOf = ({ accountId }: Endpoint) => accountId % GROUPS
