/** A signal that fires after a time, or with another signal. */
export interface TimeLimit {
  readonly signal: AbortSignal
  /** Whether the time ran out before the other signal fired. */
  isOver(): boolean
  /** Since the start, whole milliseconds. */
  elapsedMs(): number
  /** Ends the timer. To be called once nothing waits for the signal any more. */
  stop(): void
}

const TIME_IS_OVER = new Error('the time is over')

/**
 * Starts a time limit.
 *
 * @param timeoutMs - whole milliseconds; undefined for no limit but the other signal
 */
export function startTimeLimit(timeoutMs: number | undefined, signal: AbortSignal | undefined): TimeLimit {
  const startedAt = performance.now()
  const elapsedMs = () => Math.round(performance.now() - startedAt)
  // Nothing to add to the other signal: a controller and a listener would cost more than the rest of a request.
  if (timeoutMs === undefined && signal !== undefined) return { signal, isOver: () => false, elapsedMs, stop() {} }
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
    isOver: () => isOver,
    elapsedMs,
    stop() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', follow)
    },
  }
}
