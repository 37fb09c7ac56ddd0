import { waybillError } from '../../errors/waybill-error.ts'
import type { Answers, Call } from './call.ts'
import { holderOf } from './call-holder.ts'
import { createFairTurns, type TakeTurn, TooManyAtOnceError } from './fair-turns.ts'
import type { Interceptor, TurnKind } from './served-method.ts'

/** How much work of each kind this process does at once. */
export interface TurnLimits {
  /** Pages of searches, lists and exports. */
  readonly maxSearches: number
  readonly maxSearchesPerKey: number
  /** Each reads all payments that match, so most connections are left for others. */
  readonly maxSummaries: number
  readonly maxSummariesPerKey: number
}

/** Each turn holds a connection to a database server. One is left for work that needs no turn; searches have the rest. */
const SUMMARIES_OF_SERVER = 2
const LEFT_OF_SERVER = 1

/**
 * @param servers - database servers that such work is read from
 * @param connections - to each server
 */
export function turnLimitsOf(servers: number, connections: number): TurnLimits {
  return {
    maxSearches: servers * Math.max(1, connections - SUMMARIES_OF_SERVER - LEFT_OF_SERVER),
    maxSearchesPerKey: 4,
    maxSummaries: servers * SUMMARIES_OF_SERVER,
    maxSummariesPerKey: 1,
  }
}

/** The part of its remaining time that a call may wait for its turn. The rest is for the work. */
const WAITING_SHARE = 0.5

/**
 * Gives each key its fair part of expensive work; further calls wait for their turn, however many they are: a call that waits is a running
 * call, and those have shares. A unary call keeps its turn until its work has
 * ended, which may be some time after it was cancelled. A stream takes a turn for each message, and has none while its reader takes the
 * message.
 *
 * @throws WaybillError TOO_MANY_AT_ONCE, which says when to retry
 */
export function takeTurns(limits: TurnLimits): Interceptor {
  const { maxSearches, maxSearchesPerKey, maxSummaries, maxSummariesPerKey } = limits
  const turns: Readonly<Record<TurnKind, TakeTurn>> = {
    page: createFairTurns({
      places: maxSearches,
      placesEach: maxSearchesPerKey,
    }),
    summary: createFairTurns({
      places: maxSummaries,
      placesEach: maxSummariesPerKey,
    }),
  }
  const limitOf = { page: maxSearchesPerKey, summary: maxSummariesPerKey }

  return ({ turn: kind }, next) => {
    if (kind === undefined) return next
    const take = async (call: Call): Promise<() => void> => {
      const leftMs = (call.deadlineAtMs ?? Number.POSITIVE_INFINITY) - Date.now()
      try {
        return await turns[kind](holderOf(call).name, {
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
      if (call.method.methodKind !== 'unary') return inTurns((await next(call)) as Answers, () => take(call))
      const end = await take(call)
      try {
        return await next(call)
      } finally {
        end()
      }
    }
  }
}

async function* inTurns(answers: Answers, take: () => Promise<() => void>): Answers {
  const iterator = answers[Symbol.asyncIterator]()
  try {
    for (;;) {
      const result = await nextInTurn(iterator, take)
      if (result.done === true) return
      yield result.value
    }
  } finally {
    await iterator.return?.()
  }
}

async function nextInTurn(iterator: AsyncIterator<object>, take: () => Promise<() => void>) {
  const end = await take()
  try {
    return await iterator.next()
  } finally {
    end()
  }
}
