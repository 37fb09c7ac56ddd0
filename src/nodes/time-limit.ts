/** A signal that fires after a time, or with another signal. */
export type TimeLimit = ReturnType<typeof startTimeLimit>

const TIME_IS_OVER = new Error('the time is over')

/**
 * Starts a time limit.
 *
 * @param timeoutMs - whole milliseconds; undefined: only the other signal ends it
 */
export function startTimeLimit(timeoutMs: number | undefined, signal: AbortSignal | undefined) {
  const startedAt = performance.now()
  const elapsedMs = () => Math.round(performance.now() - startedAt)
  // Without a timeout the other signal is enough. A controller and a listener would cost more than the rest of a request.
  if (timeoutMs === undefined && signal !== undefined)
    return { signal, isOver: () => false, elapsedMs, [Symbol.dispose]() {} }
  const controller = new AbortController()
  let isOver = false
  const follow = () => controller.abort(signal?.reason)
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          isOver = !controller.signal.aborted
          controller.abort(TIME_IS_OVER)
        }, timeoutMs)
  if (signal?.aborted) follow()
  signal?.addEventListener('abort', follow, { once: true })
  return {
    signal: controller.signal,
    /** Whether the time ran out before the other signal fired. */
    isOver: () => isOver,
    /** Whole milliseconds since the start. */
    elapsedMs,
    /** Ends the timer, when nothing waits for the signal any more. */
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', follow)
    },
  }
}
