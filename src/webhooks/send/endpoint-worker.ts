import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from '../../domain/logger.ts'
import type { Lease } from '../../store/leases-repository.ts'
import { createDeliveryWindow, type DeliveryWindow } from '../rules/delivery-window.ts'
import type { Endpoint, Outcome, PauseReason, WebhookEvent } from '../rules/endpoint.ts'
import { secretsInForce, signEvent } from '../rules/sign-webhook.ts'
import type { DeliveryRepository, Parked } from '../sql/delivery-repository.ts'
import type { Slots } from './delivery-slots.ts'
import type { PostWebhook } from './post-webhook.ts'

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
/** Meanwhile one of them is tried as often as this, so that it is noticed when the endpoint is well again. */
const PROBE_EVERY_MS = 5 * 60_000
const LONGEST_WAIT_MS = 30_000
/** The log is read to know its last change. */
const UNKNOWN = -1n

/**
 * Sends the changes of an account to one endpoint, from its position on: each at least once, those of one payment or request in order. What fails is
 * parked with a clock of its own, and later changes of the same subject behind it. Ends when the endpoint is paused or a caller has changed it.
 *
 * @param lease - under which this process sends
 * @throws the signal's reason; the database's error
 */
export async function sendToEndpoint(options: WorkerOptions, endpoint: Endpoint, lease: Lease, signal: AbortSignal) {
  const { deliveries, slots, logger, now } = options
  const leave = slots.join()
  const ending = new AbortController()
  try {
    const until = AbortSignal.any([signal, ending.signal])
    const read = await options.source.open(endpoint, until)
    const window = createDeliveryWindow(endpoint, await deliveries.parkedSubjects(endpoint, until))
    const parked = { count: 0, dueAt: undefined }
    const on = { endpoint, lease, read, signal: until, window, parked, isFull: false, lastChange: UNKNOWN }
    await readParked(options, on)
    const reason = await work(options, on)
    if (!(await deliveries.pause(endpoint, reason, now()))) return
    logger.warn({ webhook: endpoint.id, host: new URL(endpoint.url).host, reason }, 'a webhook is paused')
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
  readonly window: DeliveryWindow
  parked: Parked
  /** Too much is parked, and the log says so. */
  isFull: boolean
  /** Of the log. */
  lastChange: bigint
}

/** @returns why the endpoint is to be paused */
async function work(options: WorkerOptions, on: Work): Promise<PauseReason> {
  const { window, signal } = on
  let wake = Promise.withResolvers<void>()
  let failure: { readonly error: unknown } | undefined
  const start = () => {
    if (signal.aborted) return
    for (const entry of window.begin(options.slots.limit())) void attempt(entry)
  }
  const attempt = async (entry: ReturnType<typeof window.begin>[number]) => {
    try {
      const outcome = await options.slots.run(() => postEvent(options, on.endpoint, entry.event, signal))
      window.settle(entry, outcome, options.now())
      start()
    } catch (error) {
      failure = { error }
    }
    wake.resolve()
  }
  for (;;) {
    signal.throwIfAborted()
    if (failure !== undefined) throw failure.error
    await readMore(options, on)
    await takeDue(options, on)
    start()
    await save(options, on)
    const pausing = window.pausing()
    if (pausing !== undefined) return pausing
    if (!window.hasNews()) await idle(options, on, wake.promise)
    wake = Promise.withResolvers()
  }
}

function hasSpace({ window, parked }: Work): boolean {
  return window.size() < WINDOW && parked.count + window.unsavedParked() < MAX_PARKED
}

async function readMore({ logger }: WorkerOptions, on: Work): Promise<void> {
  const { window, read, signal, endpoint } = on
  while (hasSpace(on) && window.through() !== on.lastChange) {
    const batch = await read({ after: window.through() }, signal)
    const lost = batch.prunedChange - window.through()
    if (lost > 0n) {
      const changes = Number(lost)
      logger.warn({ webhook: endpoint.id, changes }, 'changes were removed from the log before a webhook had them')
      window.lose(lost)
      continue
    }
    window.take(batch.events, batch.through)
    on.lastChange = batch.lastChange
  }
}

async function takeDue({ deliveries, now }: WorkerOptions, on: Work): Promise<void> {
  const { window, read, signal, endpoint } = on
  const at = now()
  if (on.parked.dueAt === undefined || on.parked.dueAt > at) return
  const limit = WINDOW / 2
  const due = await deliveries.due(endpoint, at, { limit, except: window.retrying() }, signal)
  on.parked = { ...on.parked, dueAt: due.length === limit ? at : undefined }
  for (const delivery of due) {
    const { change, attempts } = delivery
    const { events, prunedChange } = await read({ after: change - 1n, changes: 1 }, signal)
    // Under a filter that was changed it may be of another kind.
    const event = events.find((each) => each.change === change)
    // Without an event, the filter does not choose it any more, or it is not kept any more.
    if (event === undefined) window.drop(delivery, change <= prunedChange)
    else window.retry(event, attempts)
  }
}

async function save(options: WorkerOptions, on: Work): Promise<void> {
  const { deliveries, now } = options
  const { window, signal, endpoint } = on
  const progress = window.takeProgress()
  if (progress === undefined) return
  await deliveries.save(on.lease, endpoint, progress, now(), signal)
  if ([progress.failed, progress.behind, progress.unparked].every((list) => list.length === 0)) return
  // The endpoint is well again.
  if (on.parked.count >= MAX_PARKED && progress.unparked.length > 0) {
    await deliveries.bringForward(endpoint, 'ALL', now())
  }
  const subjects = await deliveries.parkedSubjects(endpoint, signal)
  await readParked(options, on)
  window.setParked(subjects)
}

async function readParked({ deliveries, logger, now }: WorkerOptions, on: Work): Promise<void> {
  const { endpoint, window, signal } = on
  on.parked = await deliveries.parked(endpoint, window.retrying(), signal)
  const { count, dueAt } = on.parked
  const wasFull = on.isFull
  // One that fills up again and again is logged once.
  on.isFull = count >= (wasFull ? MAX_PARKED / 2 : MAX_PARKED)
  if (on.isFull && !wasFull) {
    logger.warn(
      { webhook: endpoint.id, parked: count },
      'too many deliveries of a webhook have failed: no new ones are sent',
    )
  }
  const soon = new Date(now().getTime() + PROBE_EVERY_MS)
  if (count < MAX_PARKED || dueAt === undefined || dueAt <= soon) return
  await deliveries.bringForward(endpoint, 'FIRST', soon)
  on.parked = { count, dueAt: soon }
}

/** Waits until a delivery has ended, the log has more, or a retry is due. */
async function idle(options: WorkerOptions, on: Work, woken: Promise<void>): Promise<void> {
  const { source, now, longestWaitMs = LONGEST_WAIT_MS } = options
  const { parked, signal, endpoint, lastChange } = on
  const dueInMs = parked.dueAt === undefined ? longestWaitMs : parked.dueAt.getTime() - now().getTime()
  const timeoutMs = Math.min(Math.max(dueInMs, 0), longestWaitMs)
  const over = new AbortController()
  const until = AbortSignal.any([signal, over.signal])
  const other = hasSpace(on)
    ? source.waitForChange(endpoint.accountId, lastChange, timeoutMs, until)
    : sleep(timeoutMs, false, { signal: until })
  other.catch(() => {})
  try {
    if ((await Promise.race([woken, other])) === true) on.lastChange = UNKNOWN
  } finally {
    over.abort()
  }
}

/** Makes one attempt. @throws the signal's reason */
function postEvent(
  { post, now, master }: WorkerOptions,
  endpoint: Endpoint,
  event: WebhookEvent,
  signal: AbortSignal,
): Promise<Outcome> {
  const at = now()
  return post({ url: endpoint.url, ...signEvent(endpoint.id, event, secretsInForce(master, endpoint, at), at) }, signal)
}
