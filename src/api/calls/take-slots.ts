import { waybillError } from '../../errors/waybill-error.ts'
import { startTimer } from './alarms.ts'
import type { Answers, Call } from './call.ts'
import { holderOf } from './call-holder.ts'
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
export function takeSlots(limits: SlotLimits): Interceptor {
  const { maxSearches, maxSearchesPerKey, maxSummaries, maxSummariesPerKey } = limits
  const slots: Readonly<Record<SlotKind, TakeSlot>> = {
    page: createFairSlots({
      places: maxSearches,
      placesEach: maxSearchesPerKey,
    }),
    summary: createFairSlots({
      places: maxSummaries,
      placesEach: maxSummariesPerKey,
    }),
  }
  const limitOf = { page: maxSearchesPerKey, summary: maxSummariesPerKey }

  return ({ slot: kind }, next) => {
    if (kind === undefined) return next
    const take = async (call: Call): Promise<() => void> => {
      const leftMs = (call.deadlineAtMs ?? Number.POSITIVE_INFINITY) - Date.now()
      try {
        return await slots[kind](holderOf(call).name, {
          signal: call.signal,
          untilMs: performance.now() + leftMs * WAITING_SHARE,
        })
      } catch (error) {
        if (!(error instanceof TooManyAtOnceError)) throw error
        const retryAfterSeconds = Math.max(1, Math.ceil(error.waitedMs / 1000))
        throw waybillError('TOO_MANY_AT_ONCE', { limit: limitOf[kind], retryAfterSeconds })
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
 * @throws TooManyAtOnceError; the signal's reason when it aborts before a slot is free
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

/** No slot was free in time. */
export class TooManyAtOnceError extends Error {
  override readonly name = 'TooManyAtOnceError'
  /** How long this call has waited, in milliseconds. */
  readonly waitedMs: number

  constructor(waitedMs: number) {
    super(`no slot within ${waitedMs} ms`)
    this.waitedMs = waitedMs
  }
}

interface Waiter {
  readonly begin: () => void
}

/** Somebody who has slots or waits for some. */
interface User {
  running: number
  /** In the order in which they came. */
  readonly waiting: Waiter[]
}

interface State {
  readonly options: FairSlotsOptions
  /** Whoever took or gave back a slot longest ago comes first. */
  readonly users: Map<string, User>
  running: number
}

/**
 * Shares out a scarce resource, so that a heavy user does not keep it from others. The next slot goes to the user with the fewest slots, and
 * between equals to the one who took or gave back a slot longest ago. A user's own calls get slots in the order in which they came.
 */
export function createFairSlots(options: FairSlotsOptions): TakeSlot {
  const state: State = { options, users: new Map(), running: 0 }
  const { places, placesEach } = options
  return async (who, terms) => {
    terms.signal.throwIfAborted()
    const user = state.users.get(who) ?? { running: 0, waiting: [] }
    if (state.running < places && user.running < placesEach) begin(state, who, user)
    else await wait(state, who, user, terms)
    return () => end(state, who, user)
  }
}

function begin(state: State, who: string, user: User): void {
  state.running += 1
  user.running += 1
  moveToEnd(state, who, user)
}

function end(state: State, who: string, user: User): void {
  state.running -= 1
  user.running -= 1
  moveToEnd(state, who, user)
  forgetIdle(state, who, user)
  giveFreeSlots(state)
}

function moveToEnd({ users }: State, who: string, user: User): void {
  users.delete(who)
  users.set(who, user)
}

function forgetIdle({ users }: State, who: string, { running, waiting }: User): void {
  if (running === 0 && waiting.length === 0) users.delete(who)
}

function giveFreeSlots(state: State): void {
  while (state.running < state.options.places) {
    const next = nextUser(state)
    if (next === undefined) return
    const [who, user] = next
    begin(state, who, user)
    user.waiting.shift()?.begin()
  }
}

function nextUser({ users, options: { placesEach } }: State): readonly [string, User] | undefined {
  let next: readonly [string, User] | undefined
  for (const entry of users) {
    const [, { running, waiting }] = entry
    const isNext = running < placesEach && running < (next?.[1].running ?? placesEach)
    if (waiting.length > 0 && isNext) next = entry
  }
  return next
}

function wait(state: State, who: string, user: User, { signal, untilMs }: WaitTerms): Promise<void> {
  const sinceMs = performance.now()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const settle = () => {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
  const waiter: Waiter = {
    begin() {
      settle()
      resolve()
    },
  }
  const leave = (error: unknown) => {
    settle()
    user.waiting.splice(user.waiting.indexOf(waiter), 1)
    forgetIdle(state, who, user)
    reject(error)
  }
  const onAbort = () => leave(signal.reason)
  const timer = startTimer(() => leave(new TooManyAtOnceError(performance.now() - sinceMs)), untilMs - sinceMs)
  signal.addEventListener('abort', onAbort, { once: true })
  state.users.set(who, user)
  user.waiting.push(waiter)
  return promise
}
