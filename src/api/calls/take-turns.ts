import { waybillError } from '../../errors/waybill-error.ts'
import type { Answers, Call } from './call.ts'
import type { Interceptor } from './call-core.ts'
import { createFairTurns, type FairTurns, TooManyAtOnceError } from './fair-turns.ts'

/** Work that is shared out fairly among keys: what reads pages out of many payments, and what reads all of them. */
export type TurnKind = 'page' | 'summary'

/** How much is worked on at once in this process. */
export interface TurnLimits {
  /** Pages of searches, lists and exports. */
  readonly maxSearches: number
  readonly maxSearchesPerKey: number
  /** Each reads all that matches, so they leave most connections to others. */
  readonly maxSummaries: number
  readonly maxSummariesPerKey: number
  /** Of each kind, for one key. */
  readonly maxWaitingPerKey: number
}

/** Each holds one of the connections to a server, of which one is left to whatever needs no turn; searches have the rest. */
const SUMMARIES_OF_SERVER = 2
const LEFT_OF_SERVER = 1

/**
 * @param servers - of the database, from which such work is read as a rule
 * @param connections - to each of them
 */
export function turnLimitsOf(servers: number, connections: number): TurnLimits {
  return {
    maxSearches: servers * Math.max(1, connections - SUMMARIES_OF_SERVER - LEFT_OF_SERVER),
    maxSearchesPerKey: 4,
    maxSummaries: servers * SUMMARIES_OF_SERVER,
    maxSummariesPerKey: 1,
    maxWaitingPerKey: 250,
  }
}

/** The part of the time that a call has left which it may wait for its turn: with the rest it has to be done. */
const WAITING_SHARE = 0.5

/**
 * Lets the calls of one key that cost much have their fair part of what can be done at once. The others wait for their turn, which is the
 * same over every protocol. A unary call has its turn until its work has ended, which is after it was cancelled, not when; a stream for
 * each message, and none while its reader takes that.
 *
 * @throws WaybillError TOO_MANY_AT_ONCE, with when to come back
 */
export function takeTurns(limits: TurnLimits, nowMs: () => number = () => performance.now()): Interceptor {
  const { maxSearches, maxSearchesPerKey, maxSummaries, maxSummariesPerKey, maxWaitingPerKey: waitingEach } = limits
  const turns: Readonly<Record<TurnKind, FairTurns>> = {
    page: createFairTurns({ places: maxSearches, placesEach: maxSearchesPerKey, waitingEach, nowMs }),
    summary: createFairTurns({ places: maxSummaries, placesEach: maxSummariesPerKey, waitingEach, nowMs }),
  }
  const limitOf = { page: maxSearchesPerKey, summary: maxSummariesPerKey }

  return ({ turn: kind }, next) => {
    if (kind === undefined) return next
    const take = async (call: Call): Promise<() => void> => {
      const leftMs = (call.deadlineAtMs ?? Number.POSITIVE_INFINITY) - Date.now()
      try {
        return await turns[kind].take(whoIs(call), { signal: call.signal, untilMs: nowMs() + leftMs * WAITING_SHARE })
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

/** A platform key acts for many accounts, which are not to wait for each other. */
function whoIs({ keyId, account }: Call): string {
  return `${keyId ?? ''} ${account?.id ?? ''}`
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
