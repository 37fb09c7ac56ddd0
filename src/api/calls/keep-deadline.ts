import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { createAlarms, type SetAlarm } from '../listener/alarms.ts'
import { type Answers, type Call, isStream, whenComplete } from './call.ts'
import type { Interceptor, ServedMethod } from './call-core.ts'
import { createReaderPace, type ReaderPace } from './reader-pace.ts'

/** How long calls may take, and their readers. */
export interface TimeLimits {
  /** The longest that a unary call may take. It also bounds what callers ask for, and stands for those who ask for nothing. In milliseconds. */
  readonly maxCallMs: number
  /** The same of a stream, whose caller may have forgotten it. */
  readonly maxStreamMs: number
  /** How long the reader of a stream may take nothing, or be late in all, while there is something for it. In milliseconds. */
  readonly maxStallMs: number
  /** How many rows a second the reader of an export must take. */
  readonly minRowsPerSecond: number
  /** How many messages a second the reader of any other stream must take, while there are any for it. */
  readonly minMessagesPerSecond: number
}

/**
 * Ends a call when its time is up or its caller hangs up: the signal fires, which cancels the work beneath, and the call
 * fails at once, whether the work listens or not. After the answer the signal stays silent.
 */
export function keepDeadline(limits: TimeLimits): Interceptor {
  const { maxCallMs, maxStreamMs } = limits
  const setAlarm = createAlarms()
  return (method, next) => {
    const { desc, rowsOf = oneRow } = method
    const isLong = desc.methodKind !== 'unary'
    const limitMs = isLong ? maxStreamMs : maxCallMs
    return async (call) => {
      const askedMs = call.incoming.readTimeoutMs()
      if (askedMs !== undefined && askedMs <= 0) throw waybillError('DEADLINE_EXCEEDED', { timeoutMs: 0 })
      const isOurs = askedMs === undefined || askedMs > limitMs
      const timeoutMs = isOurs ? limitMs : askedMs
      const { unlessEnded, ended, dispose } = watch(call, timeoutMs, setAlarm, () => {
        if (call.isReading === true) return waybillError('REQUEST_TOO_SLOW', { timeoutMs: shownMs(timeoutMs) })
        if (isLong && isOurs) return waybillError('STREAM_EXPIRED', { limitMs })
        return waybillError('DEADLINE_EXCEEDED', { timeoutMs: shownMs(timeoutMs) })
      })
      try {
        const answer = await unlessEnded(next(call))
        if (isStream(answer)) {
          const pace = paceOf(call, method, limits)
          const disposeAll = () => {
            pace.dispose()
            dispose()
          }
          return whenComplete(untilEnded(answer, ended(), pace, rowsOf), disposeAll)
        }
        dispose()
        return answer
      } catch (error) {
        dispose()
        throw error
      }
    }
  }
}

function oneRow(): number {
  return 1
}

function paceOf(call: Call, { rowsOf }: ServedMethod, limits: TimeLimits): ReaderPace {
  const { maxStallMs: slackMs, minRowsPerSecond, minMessagesPerSecond } = limits
  const unit = rowsOf === undefined ? 'messages' : 'rows'
  const rowsPerSecond = rowsOf === undefined ? minMessagesPerSecond : minRowsPerSecond
  const onTooSlow = () =>
    call.end?.(waybillError('READER_TOO_SLOW', { perSecond: rowsPerSecond, unit, limitMs: slackMs }))
  return createReaderPace({ rowsPerSecond, slackMs, onTooSlow })
}

/** Whole milliseconds, but for what is shorter than one. */
function shownMs(timeoutMs: number): number {
  return timeoutMs < 1 ? timeoutMs : Math.round(timeoutMs)
}

interface Watch {
  /**
   * Settles as the work does, or rejects when the call is to end before. Promise.race would hold the answer for as long as
   * anybody can still end the call: until the last of it is out.
   */
  readonly unlessEnded: <T>(work: Promise<T>) => Promise<T>
  /** Rejects when the call is to end before its answer is out. */
  readonly ended: () => Promise<never>
  readonly dispose: () => void
}

function watch(call: Call, timeoutMs: number, setAlarm: SetAlarm, whyExpired: () => WaybillError): Watch {
  let done = false
  let failure: WaybillError | undefined
  let fail: (error: WaybillError) => void = ignore
  let callOff = ignore
  const { onHangUp, stopping } = call.incoming
  // Nobody else does it for a stream that ends before anybody has begun to read it.
  const letGo = () => {
    done = true
    callOff()
    stopping?.removeEventListener('abort', stop)
  }
  const end = (error: WaybillError) => {
    if (done) return
    letGo()
    failure = error
    fail(error)
    call.abort(error)
  }
  const stop = () => end(waybillError('SHUTTING_DOWN', {}))
  call.end = end
  call.deadlineAtMs = Date.now() + timeoutMs
  callOff = setAlarm(timeoutMs, () => end(whyExpired()))
  onHangUp(() => end(waybillError('CALL_CANCELLED', {})))
  if (stopping?.aborted) stop()
  else if (!done) stopping?.addEventListener('abort', stop, { once: true })
  const dispose = () => {
    letGo()
    // What it rejects has settled, and would hold the answer for as long as the call is known.
    fail = ignore
  }
  const unlessEnded = <T>(work: Promise<T>): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    fail = reject
    if (failure !== undefined) reject(failure)
    work.then(resolve, reject)
    return promise
  }
  const ended = () => {
    const { promise, reject } = Promise.withResolvers<never>()
    // Nobody may be waiting any more.
    promise.catch(() => {})
    fail = reject
    if (failure !== undefined) reject(failure)
    return promise
  }
  return { unlessEnded, ended, dispose }
}

function ignore(): void {}

async function* untilEnded(
  answers: Answers,
  ended: Promise<never>,
  reader: ReaderPace,
  rowsOf: (message: object) => number,
): Answers {
  const iterator = answers[Symbol.asyncIterator]()
  let fail = (_error: unknown) => {}
  let failure: { readonly error: unknown } | undefined
  // Listened to once a call: a race for each message would keep something of every one until the stream ends.
  ended.catch((error: unknown) => {
    failure = { error }
    fail(error)
  })
  try {
    for (;;) {
      if (failure !== undefined) throw failure.error
      const result = await new Promise<IteratorResult<object>>((resolve, reject) => {
        fail = reject
        iterator.next().then(resolve, reject)
      })
      if (result.done === true) return
      reader.given()
      yield result.value
      reader.taken(rowsOf(result.value))
    }
  } finally {
    // Not awaited: what does not listen to the signal would hold up the end.
    iterator.return?.()?.catch(() => {})
  }
}
