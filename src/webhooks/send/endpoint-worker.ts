import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../domain/logger.ts'
import type { Lease } from '../../store/leases-repository.ts'
import type { DeliveredChange, Delivery, Endpoint, Outcome, PauseReason, WebhookEvent } from '../rules/endpoint.ts'
import { nextAttemptAt } from '../rules/retry-delivery.ts'
import { bodyOf, headersOf, secretsInForce, webhookIdOf } from '../rules/sign-webhook.ts'
import type { DeliveryRepository, Progress } from '../sql/delivery-repository.ts'
import type { PostWebhook } from './post-webhook.ts'
import type { Slots } from './slots.ts'

/** What an endpoint sees of a range of the log. */
export interface ChangeBatch {
  /** In the order of changes. */
  readonly events: readonly WebhookEvent[]
  /** The last change of the range: the next one begins after it. */
  readonly through: bigint
  /** The last change of the log. */
  readonly lastChange: bigint
  /** The last change that was pruned. */
  readonly prunedChange: bigint
}

/** Reads a range of the log. @param changes - to look at, at most; by default as many as fit */
export type ReadChanges = (
  range: { readonly after: bigint; readonly changes?: number },
  signal: AbortSignal,
) => Promise<ChangeBatch>

/** Where changes come from. */
export interface ChangeSource {
  /** @throws WaybillError of kind INVALID_INPUT for a filter that is no longer valid */
  readonly open: (
    endpoint: Pick<Endpoint, 'accountId' | 'kinds' | 'filter'>,
    signal: AbortSignal,
  ) => Promise<ReadChanges>
  /** Waits until the account's last change is another, but no longer than the time. */
  readonly waitForChange: (
    accountId: number,
    change: bigint,
    timeoutMs: number,
    signal: AbortSignal,
  ) => Promise<boolean>
}

export interface WorkerOptions {
  readonly source: ChangeSource
  readonly deliveries: DeliveryRepository
  readonly post: PostWebhook
  readonly slots: Slots
  readonly logger: Logger
  readonly now: () => Date
  /** From which secrets are derived. */
  readonly master: Uint8Array
  /** Until the clock is looked at again; default 30,000. Tests with a clock of their own give a shorter time. */
  readonly longestWaitMs?: number | undefined
}

/** Deliveries that are held in memory, of one endpoint. */
const WINDOW = 128
/** Beyond so many parked deliveries nothing new is read: what is not read stays in the log. */
const MAX_PARKED = 1_000
/** Of one endpoint. */
const MAX_AT_ONCE = 8

/** A delivery that is to be made or under way. */
interface Entry {
  readonly event: WebhookEvent
  /** Attempts made. */
  readonly attempts: number
  /** It was parked. */
  readonly isRetry: boolean
  isSending: boolean
}

/**
 * Sends the changes of an account to one endpoint, from its position on: each at least once, those of one payment or request in order. What fails is
 * parked with a clock of its own, and later changes of the same subject behind it. Ends when the endpoint is paused or a caller has changed it.
 *
 * @param lease - under which this process sends
 * @throws the signal's reason; the database's error
 */
export async function sendToEndpoint(options: WorkerOptions, endpoint: Endpoint, lease: Lease, signal: AbortSignal) {
  const leave = options.slots.join()
  const ending = new AbortController()
  try {
    const until = AbortSignal.any([signal, ending.signal])
    const read = await options.source.open(endpoint, until)
    const worker = createWorker(options, { endpoint, lease, read, signal: until })
    await worker.run()
  } finally {
    leave()
    ending.abort(new Error('the worker has ended'))
  }
}

interface Work {
  readonly endpoint: Endpoint
  readonly lease: Lease
  readonly read: ReadChanges
  readonly signal: AbortSignal
}

/** What has happened since the last save. */
type News = { -readonly [K in 'delivered' | 'failed' | 'behind' | 'unparked']: Progress[K][number][] } & {
  lostChanges: bigint
}

/** The log is read to know it. */
const UNKNOWN = -1n

const noNews = (): News => ({ delivered: [], failed: [], behind: [], unparked: [], lostChanges: 0n })

function createWorker(options: WorkerOptions, { endpoint, lease, read, signal }: Work) {
  const { source, deliveries, slots, logger, now, longestWaitMs = 30_000 } = options
  const queue = new Set<Entry>()
  const busy = new Set<string>()
  /** The first parked change of each subject. */
  let parkedSubjects = new Map<string, bigint>()
  let parked: { count: number; dueAt: Date | undefined } = { count: 0, dueAt: undefined }
  let news = noNews()
  let through = endpoint.position
  let savedPosition = through
  let lastChange = UNKNOWN
  /** Grows with each success and is halved by each failure: an endpoint that times out holds one slot. */
  let atOnce = 4
  let pausing: PauseReason | undefined
  let trouble: { readonly error: unknown } | undefined
  let wake = Promise.withResolvers<void>()

  const position = () => {
    const open = [...queue].filter(({ isRetry }) => !isRetry).map(({ event }) => event.change)
    return open.reduce((least, change) => (change <= least ? change - 1n : least), through)
  }
  const retrying = () => [...queue].filter(({ isRetry }) => isRetry).map(({ event }) => event.change)
  const hasSpace = () => queue.size < WINDOW && parked.count + news.failed.length + news.behind.length < MAX_PARKED

  async function readMore(): Promise<void> {
    while (hasSpace() && through !== lastChange) {
      const batch = await read({ after: through }, signal)
      const lost = batch.prunedChange - through
      if (lost > 0n) {
        logger.warn(
          { webhook: endpoint.id, changes: Number(lost) },
          'changes were removed from the log before a webhook had them',
        )
        news.lostChanges += lost
        through = batch.prunedChange
        continue
      }
      for (const event of batch.events) queue.add({ event, attempts: 0, isRetry: false, isSending: false })
      through = batch.through
      lastChange = batch.lastChange
    }
  }

  async function takeDue(): Promise<void> {
    const at = now()
    if (parked.dueAt === undefined || parked.dueAt > at) return
    const due = await deliveries.due(endpoint, at, { limit: WINDOW / 2, except: retrying() }, signal)
    parked.dueAt = due.length === WINDOW / 2 ? at : undefined
    for (const delivery of due) {
      const event = await readAgain(delivery)
      if (event === undefined) news.unparked.push(delivery)
      else queue.add({ event, attempts: delivery.attempts, isRetry: true, isSending: false })
    }
  }

  /** Undefined where the filter does not choose it any more, or the log does not have it. */
  async function readAgain({ change, kind }: Delivery): Promise<WebhookEvent | undefined> {
    const { events } = await read({ after: change - 1n, changes: 1 }, signal)
    return events.find((event) => event.change === change && event.kind === kind)
  }

  function start(): void {
    const limit = Math.min(atOnce, slots.limit())
    for (const entry of queue) {
      if (busy.size >= limit || pausing !== undefined || signal.aborted) return
      const { subject, change } = entry.event
      if (entry.isSending || busy.has(subject)) continue
      const first = parkedSubjects.get(subject)
      if (entry.isRetry || first === undefined) {
        entry.isSending = true
        busy.add(subject)
        void attempt(entry)
        continue
      }
      queue.delete(entry)
      // What comes before the first parked one was delivered before a restart.
      if (change > first) news.behind.push(entry.event)
    }
  }

  async function attempt(entry: Entry): Promise<void> {
    const { event } = entry
    let outcome: Outcome
    try {
      outcome = await slots.run(() => postEvent(options, endpoint, event, signal))
    } catch (error) {
      // Stopped: whoever goes on from the position sends it again.
      trouble = { error }
      wake.resolve()
      return
    }
    queue.delete(entry)
    busy.delete(event.subject)
    settle(entry, outcome)
    start()
    wake.resolve()
  }

  function settle({ event, attempts, isRetry }: Entry, outcome: Outcome): void {
    const attemptedAt = now()
    const ended = { ...event, attempts: attempts + 1, attemptedAt, outcome }
    if (outcome.failure === undefined) {
      news.delivered.push(ended)
      if (isRetry) news.unparked.push(event)
      atOnce = Math.min(MAX_AT_ONCE, atOnce + 1)
      return
    }
    const dueAt = nextAttemptAt(ended.attempts, attemptedAt, outcome.retryAt)
    if (outcome.status === 410) pausing = 'GONE'
    else if (dueAt === undefined) pausing = 'RETRIES_EXHAUSTED'
    news.failed.push({ ...ended, dueAt: dueAt ?? attemptedAt })
    if (!parkedSubjects.has(event.subject)) parkedSubjects.set(event.subject, event.change)
    atOnce = Math.max(1, Math.floor(atOnce / 2))
  }

  async function save(): Promise<void> {
    const changed = news
    const isParkedChanged = [changed.failed, changed.behind, changed.unparked].some((list) => list.length > 0)
    const next = position()
    if (!isParkedChanged && changed.delivered.length === 0 && next === savedPosition) return
    news = noNews()
    await deliveries.save(lease, endpoint, { ...changed, position: next, now: now() }, signal)
    savedPosition = next
    if (!isParkedChanged) return
    const subjects = await deliveries.parkedSubjects(endpoint, signal)
    parked = await deliveries.parked(endpoint, retrying(), signal)
    // What has failed or was parked since is stored by the next save.
    for (const each of [...news.failed, ...news.behind] as DeliveredChange[]) {
      if (!subjects.has(each.subject)) subjects.set(each.subject, each.change)
    }
    parkedSubjects = subjects
  }

  /** Waits until a delivery has ended, the log has more, or a retry is due. */
  async function idle(): Promise<void> {
    const dueInMs = parked.dueAt === undefined ? longestWaitMs : parked.dueAt.getTime() - now().getTime()
    const timeoutMs = Math.min(Math.max(dueInMs, 0), longestWaitMs)
    const over = new AbortController()
    const until = AbortSignal.any([signal, over.signal])
    const other = hasSpace()
      ? source.waitForChange(endpoint.accountId, lastChange, timeoutMs, until)
      : sleep(timeoutMs, false, { signal: until })
    other.catch(() => {})
    const hasMore = await Promise.race([wake.promise, other])
    over.abort()
    if (hasMore === true) lastChange = UNKNOWN
    wake = Promise.withResolvers()
  }

  return {
    async run(): Promise<void> {
      parkedSubjects = await deliveries.parkedSubjects(endpoint, signal)
      parked = await deliveries.parked(endpoint, [], signal)
      for (;;) {
        signal.throwIfAborted()
        if (trouble !== undefined) throw trouble.error
        await readMore()
        await takeDue()
        start()
        await save()
        if (pausing !== undefined) break
        if (news.delivered.length === 0 && news.failed.length === 0 && news.behind.length === 0) await idle()
      }
      if (await deliveries.pause(endpoint, pausing, now())) {
        logger.warn({ webhook: endpoint.id, host: new URL(endpoint.url).host, reason: pausing }, 'a webhook is paused')
      }
    },
  }
}

/** Makes one attempt. @throws the signal's reason */
async function postEvent(
  { post, now, master }: WorkerOptions,
  endpoint: Endpoint,
  event: WebhookEvent,
  signal: AbortSignal,
): Promise<Outcome> {
  const at = now()
  const body = bodyOf(event)
  const headers = headersOf(webhookIdOf(endpoint.id, event), body, secretsInForce(master, endpoint, at), at)
  return post({ url: endpoint.url, body, headers }, signal)
}
