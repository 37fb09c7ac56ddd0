import type { Telemetry } from '../../domain/telemetry/telemetry.ts'
import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { startTimer } from './alarms.ts'
import { type Answers, type Call, holderOf } from './call.ts'
import type { Interceptor, SlotKind } from './served-method.ts'

/** How much work of each kind this process does at once. */
export interface SlotLimits {
  /** Pages of searches, lists and exports. */
  readonly maxSearches: number
  readonly maxSearchesPerKey: number
  /** Each reads all payments that match, so most connections are left for others. */
  readonly maxSummaries: number
  readonly maxSummariesPerKey: number
}

/** Each slot holds a connection to a database server. One is left for work that needs no slot; searches have the rest. */
const SUMMARIES_OF_SERVER = 2
const LEFT_OF_SERVER = 1

/**
 * @param servers - database servers that such work is read from
 * @param connections - to each server
 */
export function slotLimitsOf(servers: number, connections: number): SlotLimits {
  return {
    maxSearches: servers * Math.max(1, connections - SUMMARIES_OF_SERVER - LEFT_OF_SERVER),
    maxSearchesPerKey: 4,
    maxSummaries: servers * SUMMARIES_OF_SERVER,
    maxSummariesPerKey: 1,
  }
}

const WAITING = {
  name: 'waybill_slots_waiting',
  help: 'Calls that wait for a slot, by kind of work.',
  labels: ['kind'],
}

/** The part of its remaining time that a call may wait for its slot. The rest is for the work. */
const WAITING_SHARE = 0.5

/**
 * Gives each key its fair part of expensive work; further calls wait for their slot, however many they are: a call that waits is a running
 * call, and those have shares. A unary call keeps its slot until its work has
 * ended, which may be some time after it was cancelled. A stream takes a slot for each message, and has none while its reader takes the
 * message.
 *
 * @throws WaybillError TOO_MANY_AT_ONCE, which says when to retry
 */
export function takeSlots({
  telemetry,
  ...limits
}: SlotLimits & { readonly telemetry?: Telemetry | undefined }): Interceptor {
  const { maxSearches, maxSearchesPerKey, maxSummaries, maxSummariesPerKey } = limits
  const slots: Readonly<Record<SlotKind, TakeSlot>> = {
    page: createFairSlots({ places: maxSearches, placesEach: maxSearchesPerKey }),
    summary: createFairSlots({ places: maxSummaries, placesEach: maxSummariesPerKey }),
  }
  const waiting: Record<SlotKind, number> = { page: 0, summary: 0 }
  telemetry?.meter?.observe([WAITING], () =>
    Object.entries(waiting).map(([kind, value]) => [WAITING.name, value, { kind }]),
  )

  return ({ slot: kind }, next) => {
    if (kind === undefined) return next
    const take = async (call: Call): Promise<() => void> => {
      const leftMs = (call.deadlineAtMs ?? Number.POSITIVE_INFINITY) - Date.now()
      const untilMs = performance.now() + leftMs * WAITING_SHARE
      const span = telemetry?.tracer?.begin('wait for a slot', 'INTERNAL', { 'waybill.slot': kind })
      waiting[kind] += 1
      try {
        return await slots[kind](holderOf(call).name, { signal: call.signal, untilMs })
      } finally {
        waiting[kind] -= 1
        span?.end()
      }
    }
    return async (call) => {
      if (call.method.methodKind !== 'unary') return inSlices((await next(call)) as Answers, () => take(call))
      const end = await take(call)
      try {
        return await next(call)
      } finally {
        end()
      }
    }
  }
}

async function* inSlices(answers: Answers, take: () => Promise<() => void>): Answers {
  const iterator = answers[Symbol.asyncIterator]()
  try {
    for (;;) {
      const result = await nextInOrder(iterator, take)
      if (result.done === true) return
      yield result.value
    }
  } finally {
    await iterator.return?.()
  }
}

async function nextInOrder(iterator: AsyncIterator<object>, take: () => Promise<() => void>) {
  const end = await take()
  try {
    return await iterator.next()
  } finally {
    end()
  }
}

/**
 * Waits for a slot.
 *
 * @param who - equal for those who share one part
 * @param untilMs - how long to wait, on the clock of `performance`
 * @returns gives the slot back; to be called once
 * @throws WaybillError TOO_MANY_AT_ONCE; the signal's reason when it aborts before a slot is free
 */
type TakeSlot = (who: string, terms: WaitTerms) => Promise<() => void>

interface WaitTerms {
  readonly signal: AbortSignal
  readonly untilMs: number
}

export interface FairSlotsOptions {
  /** Slots at once. */
  readonly places: number
  /** Slots at once of one user. The rest is left for others, who then need not wait for a slot. */
  readonly placesEach: number
}

/** Somebody who has slots or waits for some. */
interface User {
  running: number
  /** What begins each call that waits, in the order in which they came. */
  readonly waiting: (() => void)[]
}

/**
 * Shares out a scarce resource, so that a heavy user does not keep it from others. The next slot goes to the user with the fewest slots, and
 * between equals to the one who took or gave back a slot longest ago. A user's own calls get slots in the order in which they came.
 */
export function createFairSlots({ places, placesEach }: FairSlotsOptions): TakeSlot {
  /** Whoever took or gave back a slot longest ago comes first. */
  const users = new Map<string, User>()
  let running = 0

  function change(who: string, user: User, by: 1 | -1): void {
    running += by
    user.running += by
    users.delete(who)
    users.set(who, user)
  }

  function forgetIdle(who: string, user: User): void {
    if (user.running === 0 && user.waiting.length === 0) users.delete(who)
  }

  function end(who: string, user: User): void {
    change(who, user, -1)
    forgetIdle(who, user)
    while (running < places) {
      const next = nextUser()
      if (next === undefined) return
      change(...next, 1)
      next[1].waiting.shift()?.()
    }
  }

  function nextUser(): [string, User] | undefined {
    let next: [string, User] | undefined
    for (const entry of users) {
      const [, user] = entry
      const isNext = user.running < placesEach && user.running < (next?.[1].running ?? placesEach)
      if (user.waiting.length > 0 && isNext) next = entry
    }
    return next
  }

  function wait(who: string, user: User, { signal, untilMs }: WaitTerms): Promise<void> {
    const sinceMs = performance.now()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const settle = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    }
    const begin = () => {
      settle()
      resolve()
    }
    const leave = (error: unknown) => {
      settle()
      user.waiting.splice(user.waiting.indexOf(begin), 1)
      forgetIdle(who, user)
      reject(error)
    }
    const onAbort = () => leave(signal.reason)
    const timer = startTimer(() => leave(tooManyAtOnce(placesEach, performance.now() - sinceMs)), untilMs - sinceMs)
    signal.addEventListener('abort', onAbort, { once: true })
    users.set(who, user)
    user.waiting.push(begin)
    return promise
  }

  return async (who, terms) => {
    terms.signal.throwIfAborted()
    const user = users.get(who) ?? { running: 0, waiting: [] }
    if (running < places && user.running < placesEach) change(who, user, 1)
    else await wait(who, user, terms)
    return () => end(who, user)
  }
}

function tooManyAtOnce(limit: number, waitedMs: number): WaybillError {
  return waybillError('TOO_MANY_AT_ONCE', { limit, retryAfterSeconds: Math.max(1, Math.ceil(waitedMs / 1000)) })
}
