/**
 * Lets those who ask for the same thing at the same time share one reading of it, and bounds how many readings are under way: who
 * watches must not take the database's connections from who asks.
 */
export interface SharedReads<T> {
  /**
   * Reads, or joins who reads already.
   *
   * @param name - equal for what is equal
   * @throws the signal's reason when it fires; the reading is broken off when nobody waits for it any more
   */
  get(name: string, read: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T>
}

interface Reading<T> {
  readonly result: Promise<T>
  readonly controller: AbortController
  joined: number
}

export function createSharedReads<T>({ mostAtOnce }: { readonly mostAtOnce: number }): SharedReads<T> {
  const readings = new Map<string, Reading<T>>()
  const queue: (() => void)[] = []
  let underWay = 0

  async function inTurn(read: (signal: AbortSignal) => Promise<T>, signal: AbortSignal): Promise<T> {
    if (underWay >= mostAtOnce) await new Promise<void>((resolve) => queue.push(resolve))
    else underWay += 1
    try {
      signal.throwIfAborted()
      return await read(signal)
    } finally {
      // The place goes to the next one as it is.
      const next = queue.shift()
      if (next === undefined) underWay -= 1
      else next()
    }
  }

  function begin(name: string, read: (signal: AbortSignal) => Promise<T>): Reading<T> {
    const controller = new AbortController()
    const result = inTurn(read, controller.signal)
    const reading: Reading<T> = { result, controller, joined: 0 }
    const end = () => {
      if (readings.get(name) === reading) readings.delete(name)
    }
    result.then(end, end)
    readings.set(name, reading)
    return reading
  }

  return {
    async get(name, read, signal) {
      signal.throwIfAborted()
      const reading = readings.get(name) ?? begin(name, read)
      reading.joined += 1
      const { promise: aborted, reject } = Promise.withResolvers<never>()
      const onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      try {
        return await Promise.race([reading.result, aborted])
      } finally {
        signal.removeEventListener('abort', onAbort)
        reading.joined -= 1
        if (reading.joined === 0) {
          if (readings.get(name) === reading) readings.delete(name)
          reading.controller.abort()
        }
      }
    },
  }
}
