import { setTimeout as sleepFor } from 'node:timers/promises'
import type { DailyBudget } from './daily-budget.ts'
import { currentLane, type Lane } from './node-policy.ts'
import type { Pacing } from './pacing.ts'
import { RpcError } from './rpc-error.ts'

/** The queue in which requests to one URL wait until its rate, its pause and its daily budget allow them. */
export interface Slots {
  /**
   * Waits until a request may be sent, and counts it. Lanes are served in their order of priority.
   *
   * @param calls - in the request
   * @returns what `send` gave; not a promise where the request may be sent at once
   * @throws RpcError RATE_LIMITED when the node asked for a longer pause than `maxWaitMs`, or when the daily budget leaves nothing for the lane;
   *   the signal's reason
   */
  take(calls: number, options: SlotOptions): number | Promise<number>
  /** Milliseconds left of the pause that the node asked for; 0 when it is over. */
  pauseMs(): number
}

export interface SlotOptions {
  readonly maxWaitMs: number
  readonly signal?: AbortSignal | undefined
}

export interface SlotsOptions {
  /** The host of the URL, for errors. */
  readonly host: string
  readonly pacing: Pacing
  readonly budget: DailyBudget | undefined
  /** Size of the budget, for errors. */
  readonly requestsPerDay: number | undefined
  /** Milliseconds since 1970. */
  readonly clock: () => number
  /** Default a timer. */
  readonly sleep?: Sleep | undefined
  /** Counts a request that is sent now. @returns its number */
  readonly send: (calls: number, lane: Lane) => number
}

/** Sleeps. Ends early, without an error, when the signal fires. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>

/** The first goes first. */
const LANES: readonly Lane[] = ['LIVE', 'BACKFILL', 'ENRICHMENT']

interface Waiter {
  readonly calls: number
  readonly lane: Lane
  readonly maxWaitMs: number
  readonly slot: PromiseWithResolvers<number>
}

interface Queue extends SlotsOptions {
  readonly sleep: Sleep
  readonly waiters: Waiter[]
  /** Ends the sleep of `serveWaiters`. Absent: it is not running. */
  asleep: AbortController | undefined
}

/** Makes the queue of one URL, empty. */
export function createSlots(options: SlotsOptions): Slots {
  const queue: Queue = { ...options, sleep: options.sleep ?? sleepUntilAborted, waiters: [], asleep: undefined }
  return {
    take: (calls, slotOptions) => takeSlot(queue, calls, slotOptions),
    pauseMs: () => pauseMs(queue),
  }
}

async function sleepUntilAborted(ms: number, signal: AbortSignal): Promise<void> {
  await sleepFor(ms, undefined, { signal }).catch(() => {})
}

function takeSlot(queue: Queue, calls: number, { maxWaitMs, signal }: SlotOptions): number | Promise<number> {
  const lane = currentLane()
  if (queue.waiters.length === 0 && readyInMs(queue, lane) === 0) return queue.send(calls, lane)
  signal?.throwIfAborted()
  const slot = Promise.withResolvers<number>()
  const waiter: Waiter = { calls, lane, maxWaitMs, slot }
  const leave = () => {
    remove(queue, waiter)
    slot.reject(signal?.reason)
  }
  signal?.addEventListener('abort', leave, { once: true })
  queue.waiters.push(waiter)
  // Now, not when the sleep before the first waiter's slot is over.
  rejectImpatient(queue)
  if (queue.asleep === undefined) void serveWaiters(queue)
  return slot.promise.finally(() => signal?.removeEventListener('abort', leave))
}

function pauseMs({ pacing, clock }: Queue): number {
  const untilMs = pacing.pausedUntilMs()
  return untilMs === undefined ? 0 : untilMs - clock()
}

function readyInMs(queue: Queue, lane: Lane): number {
  return Math.max(queue.pacing.readyInMs(), pauseMs(queue), queue.budget?.readyInMs(lane) ?? 0)
}

function remove(queue: Queue, waiter: Waiter): void {
  const at = queue.waiters.indexOf(waiter)
  if (at >= 0) queue.waiters.splice(at, 1)
  if (queue.waiters.length === 0) queue.asleep?.abort()
}

/** Serves the waiters one after the other, by lane and then by arrival, until none is left. */
async function serveWaiters(queue: Queue): Promise<void> {
  queue.asleep = new AbortController()
  while (true) {
    rejectImpatient(queue)
    const next = firstWaiter(queue)
    if (next === undefined) break
    const waitMs = readyInMs(queue, next.lane)
    if (waitMs > 0 && !(await sleepUndisturbed(queue, waitMs))) continue
    // A waiter of a higher lane may have come during the sleep. The wait is not computed again: a fixed clock would never reach its end.
    const served = firstWaiter(queue) ?? next
    remove(queue, served)
    served.slot.resolve(queue.send(served.calls, served.lane))
  }
  queue.asleep = undefined
}

/** @returns false where the waiters left, or the node asked for a longer pause: then the wait has to be computed again */
async function sleepUndisturbed(queue: Queue, ms: number): Promise<boolean> {
  const { pacing } = queue
  const pausedUntilMs = pacing.pausedUntilMs() ?? 0
  const asleep = new AbortController()
  queue.asleep = asleep
  await queue.sleep(ms, asleep.signal)
  return !asleep.signal.aborted && (pacing.pausedUntilMs() ?? 0) <= pausedUntilMs
}

function firstWaiter({ waiters }: Queue): Waiter | undefined {
  for (const lane of LANES) {
    const first = waiters.find((each) => each.lane === lane)
    if (first !== undefined) return first
  }
  return undefined
}

/** Rejects the waiters whose pause is longer than they may wait, and those whose lane has nothing left of the daily budget. */
function rejectImpatient(queue: Queue): void {
  const { host, budget } = queue
  const pausedMs = pauseMs(queue)
  for (const waiter of queue.waiters.slice()) {
    // A waiter that waits for the budget would delay those of other lanes, so it is rejected at once.
    const budgetMs = budget?.readyInMs(waiter.lane) ?? 0
    const waitMs = Math.max(pausedMs, budgetMs)
    if (budgetMs === 0 && waitMs <= waiter.maxWaitMs) continue
    remove(queue, waiter)
    const detail = budgetMs > pausedMs ? describeBudget(queue, budgetMs) : `it asked to be left alone${againIn(waitMs)}`
    waiter.slot.reject(new RpcError('RATE_LIMITED', detail, { host, retryAfterMs: waitMs }))
  }
}

/** Why the budget allows no request now, and when it does. */
function describeBudget({ budget, requestsPerDay, clock }: Queue, waitMs: number): string {
  const budgetText = `its budget of ${requestsPerDay} requests a day`
  if (budget?.isUsedUp() !== true) {
    return `what is left today of ${budgetText} is kept for new blocks and routes${againIn(waitMs)}`
  }
  const until = new Date(clock() + waitMs).toISOString().slice(0, 16).replace('T', ' ')
  return `${budgetText} is used up: it is asked again at ${until} UTC`
}

const againIn = (waitMs: number) => `: it is asked again in ${Math.ceil(waitMs / 1_000)} s`
