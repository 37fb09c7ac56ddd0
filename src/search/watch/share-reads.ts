/** Of all watches; a pool has eight connections by default. */
const MAX_AT_ONCE = 3

interface SharedRead<T> {
  readonly result: Promise<T>
  readonly controller: AbortController
  callers: number
}

/**
 * Lets callers that want the same thing at the same time share one read of it, and limits how many reads run at once, so that watches do
 * not take all database connections from other calls. The function that it returns starts a read, or joins the running one of the same name. It
 * throws the signal's reason when that fires; the read is cancelled when its last caller has left.
 */
export function createShareRead<T>() {
  const readings = new Map<string, SharedRead<T>>()
  const queue: (() => void)[] = []
  let running = 0

  async function inOrder(read: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (running >= MAX_AT_ONCE) await new Promise<void>((resolve) => queue.push(resolve))
    else running += 1
    try {
      signal.throwIfAborted()
      return await read(signal)
    } finally {
      // the next in the queue takes over this read's slot
      const next = queue.shift()
      if (next === undefined) running -= 1
      else next()
    }
  }

  function begin(name: string, read: (signal: AbortSignal) => Promise<T>): SharedRead<T> {
    const controller = new AbortController()
    const result = inOrder(read, controller.signal)
    const reading: SharedRead<T> = { result, controller, callers: 0 }
    const end = () => {
      if (readings.get(name) === reading) readings.delete(name)
    }
    result.then(end, end)
    readings.set(name, reading)
    return reading
  }

  return async (name: string, read: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> => {
    signal.throwIfAborted()
    const reading = readings.get(name) ?? begin(name, read)
    reading.callers += 1
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const onAbort = () => reject(signal.reason)
    signal.addEventListener('abort', onAbort, { once: true })
    try {
      return await Promise.race([reading.result, aborted])
    } finally {
      signal.removeEventListener('abort', onAbort)
      reading.callers -= 1
      if (reading.callers === 0) {
        if (readings.get(name) === reading) readings.delete(name)
        reading.controller.abort()
      }
    }
  }
}
