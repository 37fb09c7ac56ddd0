import { type WaybillError, waybillError } from '../errors.ts'
import { type Call, type Messages, whenComplete } from './call.ts'
import type { Interceptor } from './call-core.ts'

/**
 * Ends a call when its time is up or its caller hangs up: the signal fires, which cancels the work beneath, and the call
 * fails at once, whether the work listens or not. After the answer the signal stays silent.
 *
 * @param maxCallMs - the longest that a unary call may take. It also bounds what callers ask for, and stands for those who ask
 *   for nothing; streams last as long as their callers want
 */
export function keepDeadline(maxCallMs: number): Interceptor {
  return ({ desc }, next) => {
    const limitMs = desc.methodKind === 'unary' ? maxCallMs : undefined
    return async (call) => {
      const timeoutMs = shorter(call.incoming.readTimeoutMs(), limitMs)
      if (timeoutMs !== undefined && timeoutMs <= 0) throw waybillError('DEADLINE_EXCEEDED', { timeoutMs: 0 })
      const { ended, dispose } = watch(call, timeoutMs)
      try {
        const answer = await Promise.race([next(call), ended])
        if (Symbol.asyncIterator in answer) return whenComplete(untilEnded(answer, ended), dispose)
        dispose()
        return answer
      } catch (error) {
        dispose()
        throw error
      }
    }
  }
}

function shorter(askedMs: number | undefined, limitMs: number | undefined): number | undefined {
  if (askedMs === undefined) return limitMs
  return limitMs === undefined ? askedMs : Math.min(askedMs, limitMs)
}

/** The longest delay of a timer, about 25 days, in ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

interface Watch {
  /** Rejects when the call is to end before its answer is there. */
  readonly ended: Promise<never>
  readonly dispose: () => void
}

function watch(call: Call, timeoutMs: number | undefined): Watch {
  const { promise: ended, reject } = Promise.withResolvers<never>()
  // Nobody may be waiting any more.
  ended.catch(() => {})
  let done = false
  const end = (error: WaybillError) => {
    if (done) return
    done = true
    reject(error)
    call.abort(error)
  }
  const { onHangUp, stopping } = call.incoming
  onHangUp(() => end(waybillError('CALL_CANCELLED', {})))
  const stop = () => end(waybillError('SHUTTING_DOWN', {}))
  if (stopping?.aborted) stop()
  else stopping?.addEventListener('abort', stop, { once: true })
  let timer: NodeJS.Timeout | undefined
  if (timeoutMs !== undefined) {
    call.deadlineAtMs = Date.now() + timeoutMs
    const expire = () => end(waybillError('DEADLINE_EXCEEDED', { timeoutMs: Math.round(timeoutMs) }))
    timer = setTimeout(expire, Math.min(timeoutMs, LONGEST_TIMER_MS))
  }
  const dispose = () => {
    done = true
    clearTimeout(timer)
    stopping?.removeEventListener('abort', stop)
  }
  return { ended, dispose }
}

async function* untilEnded(messages: Messages, ended: Promise<never>): Messages {
  const iterator = messages[Symbol.asyncIterator]()
  try {
    for (;;) {
      const result = await Promise.race([iterator.next(), ended])
      if (result.done === true) return
      yield result.value
    }
  } finally {
    // Not awaited: what does not listen to the signal would hold up the end.
    iterator.return?.()?.catch(() => {})
  }
}
