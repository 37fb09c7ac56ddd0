import { type WaybillError, waybillError } from '../../errors/waybill-error.ts'
import { createAlarms, type SetAlarm, startTimer } from './alarms.ts'
import { type Answers, type Call, type Ending, isStream, whenComplete } from './call.ts'
import { createRoster } from './roster.ts'
import type { Interceptor, ServedMethod } from './served-method.ts'

/** How long calls may take, and how slow their readers may be. */
export interface TimeLimits {
  /** The maximum of a unary call, in milliseconds. It is also the timeout of callers who ask for none, or for a longer one. */
  readonly maxCallMs: number
  /** The same for a stream, whose caller may have forgotten it. */
  readonly maxStreamMs: number
  /** How long the reader of a stream may take nothing, or how far it may fall behind in all, while messages wait. In milliseconds. */
  readonly maxStallMs: number
  /** How many rows a second the reader of an export must take. */
  readonly minRowsPerSecond: number
}

/** How many messages a second the reader of any other stream must take, while messages wait. That of a watch may need some time for each event. */
const MIN_MESSAGES_PER_SECOND = 1

/**
 * Ends a call when its deadline passes or its caller hangs up. The signal aborts, which cancels the work below, and the call fails at
 * once, even if the work ignores the signal. Once the answer is complete the signal does not abort any more.
 */
export function keepDeadline(limits: TimeLimits & Pick<Ending, 'cutting'>): Interceptor {
  const { maxCallMs, maxStreamMs, cutting } = limits
  const setAlarm = createAlarms()
  const running: RunningCalls = createRoster()
  cutting.addEventListener('abort', () => {
    for (const end of running.members()) end(waybillError('SHUTTING_DOWN', {}))
  })
  return (method, next) => {
    const { desc, rowsOf = () => 1 } = method
    const isLong = desc.methodKind !== 'unary'
    const limitMs = isLong ? maxStreamMs : maxCallMs
    return async (call) => {
      const askedMs = call.incoming.readTimeoutMs?.()
      if (askedMs !== undefined && askedMs <= 0) throw waybillError('DEADLINE_EXCEEDED', { timeoutMs: 0 })
      const isOurs = askedMs === undefined || askedMs > limitMs
      const timeoutMs = isOurs ? limitMs : askedMs
      const { unlessEnded, onEnd, dispose } = watch(call, { timeoutMs, setAlarm, running }, () => {
        if (call.isReading === true) return waybillError('REQUEST_TOO_SLOW', { timeoutMs: shownMs(timeoutMs) })
        if (isLong && isOurs) return waybillError('STREAM_EXPIRED', { limitMs })
        return waybillError('DEADLINE_EXCEEDED', { timeoutMs: shownMs(timeoutMs) })
      })
      try {
        const answer = await unlessEnded(next(call))
        if (!isStream(answer)) {
          dispose()
          return answer
        }
        const pace = paceOf(call, method, limits)
        return whenComplete(untilEnded(answer, onEnd, pace, rowsOf), () => {
          pace.dispose()
          dispose()
        })
      } catch (error) {
        dispose()
        throw error
      }
    }
  }
}

function paceOf(call: Call, { rowsOf }: ServedMethod, limits: TimeLimits): ReaderPace {
  const { maxStallMs: slackMs, minRowsPerSecond } = limits
  const unit = rowsOf === undefined ? 'messages' : 'rows'
  const rowsPerSecond = rowsOf === undefined ? MIN_MESSAGES_PER_SECOND : minRowsPerSecond
  const onTooSlow = () =>
    call.end?.(waybillError('READER_TOO_SLOW', { perSecond: rowsPerSecond, unit, limitMs: slackMs }))
  return createReaderPace({ rowsPerSecond, slackMs, onTooSlow })
}

/** Rounded to milliseconds, unless it is shorter than one. */
function shownMs(timeoutMs: number): number {
  return timeoutMs < 1 ? timeoutMs : Math.round(timeoutMs)
}

/** How each call that runs is ended. One roster, since a listener on a signal costs more. */
type RunningCalls = ReturnType<typeof createRoster<(error: WaybillError) => void>>

interface WatchTerms {
  readonly timeoutMs: number
  readonly setAlarm: SetAlarm
  readonly running: RunningCalls
}

function watch(call: Call, { timeoutMs, setAlarm, running }: WatchTerms, whyExpired: () => WaybillError) {
  let done = false
  let failure: WaybillError | undefined
  let fail: (error: WaybillError) => void = ignore
  let callOff = ignore
  const { onHangUp, stopping } = call.incoming
  // Called by `end`, since `dispose` is not called for a stream that ends before anybody has begun to read it.
  const letGo = () => {
    done = true
    leave()
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
  const leave = running.join(end)
  call.deadlineAtMs = Date.now() + timeoutMs
  callOff = setAlarm(timeoutMs, () => end(whyExpired()))
  onHangUp(() => end(waybillError('CALL_CANCELLED', {})))
  if (stopping?.aborted) stop()
  else if (!done) stopping?.addEventListener('abort', stop, { once: true })
  const dispose = () => {
    letGo()
    // Its promise has settled, and would keep the answer in memory for as long as the call exists.
    fail = ignore
  }
  /** Calls back when the call is ended before its answer is complete; only the last listener is called. */
  const onEnd: OnEnd = (listener) => {
    fail = listener
    if (failure !== undefined) listener(failure)
  }
  /**
   * Settles as the work does, or rejects when the call is ended before. Promise.race would hold the answer in memory for as long as the
   * call can be ended, which is until its last byte is sent.
   */
  const unlessEnded = <T>(work: Promise<T>): Promise<T> => {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    onEnd(reject)
    work.then(resolve, reject)
    return promise
  }
  return { unlessEnded, onEnd, dispose }
}

type OnEnd = (listener: (error: WaybillError) => void) => void

function ignore(): void {}

async function* untilEnded(
  answers: Answers,
  onEnd: OnEnd,
  reader: ReaderPace,
  rowsOf: (message: object) => number,
): Answers {
  const iterator = answers[Symbol.asyncIterator]()
  let fail: (error: WaybillError) => void = ignore
  let failure: WaybillError | undefined
  // One listener for the call: a race for each message would keep something of each message until the stream ends.
  onEnd((error) => {
    failure = error
    fail(error)
  })
  try {
    for (;;) {
      if (failure !== undefined) throw failure
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
    // Not awaited: a handler that ignores its signal would hold up the end.
    iterator.return?.()?.catch(() => {})
  }
}

/** How fast the reader of a stream must take its messages. */
interface PaceTerms {
  /** Rows a second, while rows are waiting. */
  readonly rowsPerSecond: number
  /** How long the reader may take nothing, or how far it may fall behind in all, in milliseconds. */
  readonly slackMs: number
  /** Called when the reader is too slow; again with each further message, if the call goes on. */
  readonly onTooSlow: () => void
}

type ReaderPace = ReturnType<typeof createReaderPace>

/**
 * Watches how fast a reader takes its messages. Keeps a credit of time for the reader of a stream. The credit runs down while a message waits. Each row that is taken earns the time
 * that it may take, and time in which nothing waits is earned as well. The credit never exceeds the slack.
 *
 * Each stream has one timer, which is only restarted: a stream may have a million messages.
 */
export function createReaderPace({ rowsPerSecond, slackMs, onTooSlow }: PaceTerms) {
  let isGiven = false
  let changedAtMs = performance.now()
  let creditMs = slackMs
  let timer: NodeJS.Timeout | undefined
  const onTimeout = () => {
    if (isGiven) onTooSlow()
  }
  /** @returns how long the state before has lasted, in milliseconds */
  const change = (toGiven: boolean): number => {
    const nowMs = performance.now()
    const sinceMs = nowMs - changedAtMs
    isGiven = toGiven
    changedAtMs = nowMs
    return sinceMs
  }
  return {
    /** A message waits for the reader. */
    given(): void {
      creditMs = Math.min(slackMs, creditMs + change(true))
      if (timer === undefined) timer = startTimer(onTimeout, slackMs)
      else timer.refresh()
    },
    /** The reader has taken the message. @param rows - how many rows it had */
    taken(rows: number): void {
      creditMs = Math.min(slackMs, creditMs + (rows * 1_000) / rowsPerSecond - change(false))
      if (creditMs < 0) onTooSlow()
    },
    dispose: () => clearTimeout(timer),
  }
}
