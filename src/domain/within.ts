/** Waits for a promise until a signal fires. @throws the signal's reason */
export function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort)
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })
}

/**
 * Waits for a promise, but no longer than a time. What comes later is ignored, failures included.
 *
 * @param late - gives the outcome when the time is over, or throws
 */
export async function within<T, Late>(ms: number, promise: Promise<T>, late: () => Late): Promise<T | Late> {
  const over = Promise.withResolvers<void>()
  const timer = setTimeout(over.resolve, ms)
  try {
    return await Promise.race([promise, over.promise.then(late)])
  } finally {
    clearTimeout(timer)
  }
}
