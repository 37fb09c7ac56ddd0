import { setTimeout as sleepFor } from 'node:timers/promises'
import type { DailyBudget } from './daily-budget.ts'
import { currentLane, type Lane } from './node-policy.ts'
import type { Pacing } from './pacing.ts'
import { RpcError } from './rpc-error.ts'

export interface SlotOptions {
  readonly maxWaitMs: number
  readonly signal?: AbortSignal | undefined
}

interface SlotsOptions {
  /** The host of the URL, for errors. */
  readonly host: string
  readonly pacing: Pacing
  readonly budget: DailyBudget | undefined
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

/**
 * Makes the queue in which requests to one URL wait until its rate, its pause and its daily budget allow them.
 *
 * @returns a function that waits until a request of so many calls may be sent, and counts it. Lanes are served in their order of priority. It
 *   gives what `send` gave; not a promise where the request may be sent at once. It throws an RpcError RATE_LIMITED when the node asked for a
 *   longer pause than `maxWaitMs`, or when the daily budget leaves nothing for the lane; and the signal's reason
 */
export function createSlots({ host, pacing, budget, clock, send, sleep = sleepUntilAborted }: SlotsOptions) {
  const waiters: Waiter[] = []
  /** Ends the sleep of `serveWaiters`. Absent: it is not running. */
  let asleep: AbortController | undefined

  function take(calls: number, { maxWaitMs, signal }: SlotOptions): number | Promise<number> {
    const lane = currentLane()
    if (waiters.length === 0 && readyInMs(lane) === 0) return send(calls, lane)
    signal?.throwIfAborted()
    const slot = Promise.withResolvers<number>()
    const waiter: Waiter = { calls, lane, maxWaitMs, slot }
    const leave = () => {
      remove(waiter)
      slot.reject(signal?.reason)
    }
    signal?.addEventListener('abort', leave, { once: true })
    waiters.push(waiter)
    // Now, not when the sleep before the first waiter's slot is over.
    rejectImpatient()
    if (asleep === undefined) void serveWaiters()
    return slot.promise.finally(() => signal?.removeEventListener('abort', leave))
  }

  function readyInMs(lane: Lane): number {
    return Math.max(pacing.readyInMs(), pacing.pauseMs(), budget?.readyInMs(lane) ?? 0)
  }

  function remove(waiter: Waiter): void {
    const at = waiters.indexOf(waiter)
    if (at >= 0) waiters.splice(at, 1)
    if (waiters.length === 0) asleep?.abort()
  }

  /** Serves the waiters one after the other, by lane and then by arrival, until none is left. */
  async function serveWaiters(): Promise<void> {
    asleep = new AbortController()
    while (true) {
      rejectImpatient()
      const next = firstOf(waiters)
      if (next === undefined) break
      const waitMs = readyInMs(next.lane)
      if (waitMs > 0 && !(await sleepUndisturbed(waitMs))) continue
      // A waiter of a higher lane may have come during the sleep. The wait is not computed again: a fixed clock would never reach its end.
      const served = firstOf(waiters) ?? next
      remove(served)
      served.slot.resolve(send(served.calls, served.lane))
    }
    asleep = undefined
  }

  /** @returns false where the waiters left, or the node asked for a longer pause: then the wait has to be computed again */
  async function sleepUndisturbed(ms: number): Promise<boolean> {
    const pausedUntilMs = pacing.pausedUntilMs() ?? 0
    const sleeping = (asleep = new AbortController())
    await sleep(ms, sleeping.signal)
    return !sleeping.signal.aborted && (pacing.pausedUntilMs() ?? 0) <= pausedUntilMs
  }

  /** Rejects the waiters whose pause is longer than they may wait, and those whose lane has nothing left of the daily budget. */
  function rejectImpatient(): void {
    const pausedMs = pacing.pauseMs()
    for (const waiter of waiters.slice()) {
      // A waiter that waits for the budget would delay those of other lanes, so it is rejected at once.
      const budgetMs = budget?.readyInMs(waiter.lane) ?? 0
      const waitMs = Math.max(pausedMs, budgetMs)
      if (budgetMs === 0 && waitMs <= waiter.maxWaitMs) continue
      remove(waiter)
      const isForBudget = budget !== undefined && budgetMs > pausedMs
      const detail = isForBudget
        ? describeBudget(budget, waitMs, clock())
        : `it asked to be left alone${againIn(waitMs)}`
      waiter.slot.reject(new RpcError('RATE_LIMITED', detail, { host, retryAfterMs: waitMs }))
    }
  }

  return take
}

async function sleepUntilAborted(ms: number, signal: AbortSignal): Promise<void> {
  await sleepFor(ms, undefined, { signal }).catch(() => {})
}

/** The waiter of the highest lane that came first. */
function firstOf(waiters: readonly Waiter[]): Waiter | undefined {
  return LANES.flatMap((lane) => waiters.find((each) => each.lane === lane) ?? [])[0]
}

/** Why the budget allows no request now, and when it does. */
function describeBudget({ perDay, isUsedUp }: DailyBudget, waitMs: number, nowMs: number): string {
  const budgetText = `its budget of ${perDay} requests a day`
  if (!isUsedUp()) return `what is left today of ${budgetText} is kept for new blocks and routes${againIn(waitMs)}`
  const until = new Date(nowMs + waitMs).toISOString().slice(0, 16).replace('T', ' ')
  return `${budgetText} is used up: it is asked again at ${until} UTC`
}

const againIn = (waitMs: number) => `: it is asked again in ${Math.ceil(waitMs / 1_000)} s`
