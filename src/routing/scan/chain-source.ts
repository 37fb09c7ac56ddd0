import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from '../../domain/logger.ts'
import { untilAborted } from '../../domain/within.ts'
import { type Admission, type Breaker, createBreaker } from '../../nodes/breaker.ts'
import type { UrlLimits } from '../../nodes/node-limits.ts'
import { RpcError } from '../../nodes/rpc-error.ts'
import { startTimeLimit, type TimeLimit } from '../../nodes/time-limit.ts'
import type { GasMeter } from '../gas/gas-meter.ts'
import type { GasQuestion } from '../gas/steps.ts'
import type { Ask, ReadChain, Reading } from './scan-reader.ts'

/** One URL of a chain: its node, and what is known of how well the node works. */
export type ChainSource = ReturnType<typeof createChainSource>

/** How one read is done. */
export interface ReadTerms {
  /** What `admit` gave for it. */
  readonly admission: Admission
  /** Whole milliseconds. */
  readonly timeoutMs: number
  /** Fires when nobody waits any more. */
  readonly signal: AbortSignal
  /** Throws an RpcError when the answers of other nodes prove the reading wrong. */
  readonly check: (reading: Reading) => void
}

interface ChainSourceOptions {
  readonly readChain: ReadChain
  readonly meter: GasMeter
  /** Its name in the log; the rest of its URL may be a key. */
  readonly name: { readonly chain: string; readonly node: string }
  readonly limits: UrlLimits
  /** A request that is given up counts as the node's failure if it went without an answer for this long. */
  readonly softMs: number
  readonly clock: () => number
  readonly logger: Logger
}

/** Why a request is given up: a URL that was asked later has answered. */
export const ANOTHER_ANSWERED = new Error('another URL answered')

/** Why a request is given up: a URL that was asked before has answered. */
export const NOT_NEEDED = new Error('it is not needed any more')

/** The part of its time after which a request that is given up counts as timed out: callers leave just before the time is over. */
const NEARLY_ALL = 0.9

interface State extends ChainSourceOptions {
  readonly breaker: Breaker
  headSec: number
  lastFailure: RpcError | undefined
}

/** Makes the source of a URL. */
export function createChainSource(options: ChainSourceOptions) {
  const { meter, name, clock, logger, limits } = options
  let isLeftAlone = false
  const breaker = createBreaker((change) => {
    isLeftAlone = change.open
    limits.noteBreaker(options, change.open)
    if (change.open) logger.warn({ ...name, detail: change.detail }, 'the node fails and is left alone for a while')
    else logger.info(name, 'the node answers again')
  })
  const state: State = { ...options, breaker, headSec: 0, lastFailure: undefined }
  return {
    /** How well its node measures gas, best first: 0 to 2. */
    gasRank: () => meter.rank(),
    /** Whether its breaker is open. */
    isLeftAlone: () => isLeftAlone,
    /**
     * Measures the gas of transactions through it. A node that cannot may still answer reads well, so the breaker counts a failure only where
     * the node asks to be left alone.
     *
     * @param timeoutMs - whole milliseconds
     * @returns undefined where it could not
     * @throws the signal's reason when it fires
     */
    measure: (question: GasQuestion, timeoutMs: number, signal: AbortSignal) =>
      unlessFailed(state, (limit) => meter.measure(question, limit), timeoutMs, signal),
    /** Finds out how its node measures gas. A failure is not thrown; the first measurement then finds out. */
    learn: (timeoutMs: number, signal: AbortSignal) =>
      unlessFailed(state, (limit) => meter.learn(limit), timeoutMs, signal),
    /** Whether it may be asked now. A `PROBE` has to be read or released. */
    admit: () => admit(state),
    /** Gives up what `admit` gave, without a read. */
    release: (admission: Admission) => breaker.abandon(admission),
    /** Milliseconds until its pacing allows a request; 0 when it does now. */
    readyInMs: () => limits.readyInMs(),
    /** The time of the newest block that it has reported, seconds since 1970; 0 before the first. */
    headSec: () => state.headSec,
    /** Milliseconds until it may be asked again, if it has just failed. */
    againInMs: () => Math.max(breaker.againInMs(clock()), limits.pauseMs()),
    /** Why it failed last. */
    lastFailure: () => state.lastFailure,
    /**
     * Reads through it.
     *
     * @throws RpcError, also when the time is over; the signal's reason when it fires
     */
    read: (asks: readonly Ask[], terms: ReadTerms) => read(state, asks, terms),
  }
}

/** A node that asked detection to leave it alone is not asked by routes either. */
function admit({ breaker, limits, softMs, clock }: State): Admission {
  if (breaker.isClosed() && limits.pauseMs() > softMs) return 'NO'
  return breaker.admit(clock())
}

async function read(state: State, asks: readonly Ask[], terms: ReadTerms): Promise<Reading> {
  using limit = startTimeLimit(terms.timeoutMs, terms.signal)
  try {
    // A request takes a moment to end: its failure counts before a caller learns when to ask again.
    const reading = await untilAborted(state.readChain(asks, limit.signal), limit.signal)
    state.headSec = Math.max(state.headSec, reading.timestampSec)
    terms.check(reading)
    state.breaker.succeed()
    return reading
  } catch (error) {
    throw judgeFailure(state, error, limit, terms)
  }
}

/** Counts a failed read in the breaker. @returns what is to be thrown */
function judgeFailure(state: State, error: unknown, limit: TimeLimit, terms: ReadTerms): unknown {
  const { breaker, softMs } = state
  const { admission, timeoutMs, signal } = terms
  if (limit.isOver()) {
    const failure = new RpcError('TIMEOUT', `no answer within ${timeoutMs} ms`, { cause: error })
    fail(state, failure, true)
    return failure
  }
  if (signal.aborted) {
    const elapsedMs = limit.elapsedMs()
    const wasBeaten = signal.reason === ANOTHER_ANSWERED
    const opensAtOnce = elapsedMs >= (wasBeaten ? softMs : NEARLY_ALL * timeoutMs)
    if (!wasBeaten && elapsedMs < softMs) breaker.abandon(admission)
    else fail(state, new RpcError('TIMEOUT', `no answer for ${elapsedMs} ms`), opensAtOnce)
    return signal.reason
  }
  if (error instanceof RpcError) fail(state, error, error.kind === 'WRONG_CHAIN' || error.kind === 'BEHIND')
  else breaker.abandon(admission)
  return error
}

function fail(state: State, failure: RpcError, opensAtOnce: boolean): void {
  const { detail, retryAfterMs } = failure
  state.lastFailure = failure
  state.breaker.fail({ detail, opensAtOnce, retryAfterMs }, state.clock())
}

/** Asks for something that the node need not offer. @returns undefined where it failed or took too long */
async function unlessFailed<T>(
  state: State,
  ask: (signal: AbortSignal) => Promise<T>,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<T | undefined> {
  const { limits, logger, name } = state
  using limit = startTimeLimit(timeoutMs, signal)
  try {
    const readyInMs = limits.readyInMs()
    if (readyInMs > 0) await wait(readyInMs, undefined, { signal: limit.signal })
    return await ask(limit.signal)
  } catch (error) {
    signal.throwIfAborted()
    if (!limit.isOver() && !(error instanceof RpcError)) throw error
    if (error instanceof RpcError && error.retryAfterMs !== undefined) fail(state, error, false)
    const detail = limit.isOver() ? `no answer within ${timeoutMs} ms` : (error as RpcError).detail
    logger.debug({ ...name, detail }, 'the node did not measure the gas of transactions')
    return undefined
  }
}
