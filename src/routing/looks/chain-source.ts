import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from '../../domain/logger.ts'
import { type Admission, createBreaker } from '../../nodes/breaker.ts'
import { RpcFailure } from '../../nodes/json-rpc.ts'
import type { GasMeter } from '../measuring/gas-meter.ts'
import type { GasAnswer, GasQuestion } from '../measuring/question.ts'
import type { Ask, ChainReader, Reading } from './look-reader.ts'

/** One URL of a chain with what is known of how it does. */
export interface ChainSource {
  admit(): Admission
  /** Milliseconds until its budget allows a request; 0 when it does now. */
  readyInMs(): number
  /**
   * Reads through it.
   *
   * @param timeoutMs - whole milliseconds
   * @param signal - fires when nobody waits any more
   * @param check - throws an RpcFailure when what others told shows that it is wrong
   * @throws RpcFailure, also when the time is over; the signal's reason when it fires
   */
  read(
    asks: readonly Ask[],
    timeoutMs: number,
    signal: AbortSignal,
    check: (reading: Reading) => void,
  ): Promise<Reading>
  /**
   * Measures the gas of transactions through it. That it cannot says nothing of how well it answers reads, so the breaker counts a failure
   * only where the node asks to be left alone.
   *
   * @param timeoutMs - whole milliseconds
   * @returns undefined where it could not
   * @throws the signal's reason when it fires
   */
  measure(question: GasQuestion, timeoutMs: number, signal: AbortSignal): Promise<GasAnswer | undefined>
  /** Finds out how its node measures gas; what fails is left for later. */
  learn(timeoutMs: number, signal: AbortSignal): Promise<void>
  /** How well its node measures gas, best first: 0 to 2. */
  readonly gasRank: () => number
  /** Whether it fails, and is asked nothing for a while. */
  readonly isLeftAlone: () => boolean
  /** The time of the newest block that it told of; 0 while there is none. */
  readonly head: () => number
  /** Milliseconds after which it may be asked again, once it has failed. */
  readonly againInMs: () => number
  /** Why it failed last. */
  readonly lastFailure: () => RpcFailure | undefined
}

export interface ChainSourceOptions {
  readonly reader: ChainReader
  readonly meter: GasMeter
  /** How the log names it: the rest of its URL may be a key. */
  readonly name: { readonly chain: string; readonly node: string }
  readonly requestsPerSecond: number | undefined
  /** Of a request that is given up: how long it must have been without an answer for that to be its fault. */
  readonly softMs: number
  readonly clock: () => number
  readonly logger: Logger
}

/** Why a request is given up whose answer another URL gave meanwhile that was asked later. */
export const ANOTHER_ANSWERED = new Error('another URL answered')

/** Why one is given up that was asked later than the one that answered. */
export const NOT_NEEDED = new Error('it is not needed any more')

const TIME_IS_OVER = new Error('the time is over')

/** Callers who wait for as long as the source may take leave just before its time is over. */
const NEARLY_ALL = 0.9

const NOT_MEASURED = 'the node did not tell the gas of transactions'

/** Makes the source of a URL. */
export function createChainSource(options: ChainSourceOptions): ChainSource {
  const { reader, meter, name, clock, logger, softMs } = options
  let isLeftAlone = false
  const breaker = createBreaker((change) => {
    isLeftAlone = change.open
    if (change.open) logger.warn({ ...name, detail: change.detail }, 'the node fails and is left alone for a while')
    else logger.info(name, 'the node answers again')
  })
  const budget = createBudget(options.requestsPerSecond, clock)
  let head = 0
  let lastFailure: RpcFailure | undefined

  function fail(failure: RpcFailure, opensAtOnce: boolean): void {
    lastFailure = failure
    const { message: detail, retryAfterMs } = failure
    breaker.fail({ detail, opensAtOnce, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }, clock())
  }

  /** @returns undefined where it failed or took too long */
  async function ask<T>(asking: (signal: AbortSignal) => Promise<T>, timeoutMs: number, signal: AbortSignal) {
    const limit = startLimit(timeoutMs, signal)
    try {
      const readyInMs = budget.readyInMs()
      if (readyInMs > 0) await wait(readyInMs, undefined, { signal: limit.signal })
      budget.take()
      return await asking(limit.signal)
    } catch (error) {
      signal.throwIfAborted()
      if (!limit.isOver() && !(error instanceof RpcFailure)) throw error
      if (error instanceof RpcFailure && error.retryAfterMs !== undefined) fail(error, false)
      const detail = limit.isOver() ? `nothing came within ${timeoutMs} ms` : String(error)
      logger.debug({ ...name, detail }, NOT_MEASURED)
      return undefined
    } finally {
      limit.stop()
    }
  }

  return {
    gasRank: () => meter.rank(),
    isLeftAlone: () => isLeftAlone,
    measure: (question, timeoutMs, signal) => ask((limit) => meter.measure(question, limit), timeoutMs, signal),
    learn: (timeoutMs, signal) => ask((limit) => meter.learn(limit), timeoutMs, signal),
    admit: () => breaker.admit(clock()),
    readyInMs: () => budget.readyInMs(),
    head: () => head,
    againInMs: () => breaker.againInMs(clock()),
    lastFailure: () => lastFailure,
    async read(asks, timeoutMs, signal, check) {
      budget.take()
      const limit = startLimit(timeoutMs, signal)
      try {
        const reading = await reader.read(asks, limit.signal)
        head = Math.max(head, reading.timestampSec)
        check(reading)
        breaker.succeed()
        return reading
      } catch (error) {
        if (limit.isOver()) {
          const failure = new RpcFailure('UNREACHABLE', `nothing came within ${timeoutMs} ms`, { cause: error })
          fail(failure, true)
          throw failure
        }
        if (signal.aborted) {
          const elapsedMs = limit.elapsedMs()
          const wasBeaten = signal.reason === ANOTHER_ANSWERED
          const opensAtOnce = elapsedMs >= (wasBeaten ? softMs : NEARLY_ALL * timeoutMs)
          if (!wasBeaten && elapsedMs < softMs) breaker.abandon()
          else fail(new RpcFailure('UNREACHABLE', `nothing came for ${elapsedMs} ms`), opensAtOnce)
          throw signal.reason
        }
        if (error instanceof RpcFailure) fail(error, error.isLie)
        else breaker.abandon()
        throw error
      } finally {
        limit.stop()
      }
    },
  }
}

/** A signal that fires after a time, or with another. */
function startLimit(timeoutMs: number, signal: AbortSignal) {
  const controller = new AbortController()
  const startedAt = performance.now()
  const follow = () => controller.abort(signal.reason)
  let isOver = false
  const timer = setTimeout(() => {
    isOver = true
    controller.abort(TIME_IS_OVER)
  }, timeoutMs)
  if (signal.aborted) follow()
  signal.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    isOver: () => isOver,
    elapsedMs: () => Math.round(performance.now() - startedAt),
    stop() {
      clearTimeout(timer)
      signal.removeEventListener('abort', follow)
    },
  }
}

/** At most so many a second, and a second's worth at once. */
function createBudget(perSecond: number | undefined, clock: () => number) {
  let left = perSecond ?? 0
  let countedAtMs = clock()

  function refill(rate: number): void {
    const nowMs = clock()
    left = Math.min(rate, left + (Math.max(0, nowMs - countedAtMs) * rate) / 1_000)
    countedAtMs = nowMs
  }

  return {
    readyInMs(): number {
      if (perSecond === undefined) return 0
      refill(perSecond)
      return left >= 1 ? 0 : Math.ceil(((1 - left) * 1_000) / perSecond)
    },
    take(): void {
      if (perSecond === undefined) return
      refill(perSecond)
      left -= 1
    },
  }
}
